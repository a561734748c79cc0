"""Names that synchronisers and merge tools give to a second version of a file, which must not run in addition to the
first.

Names that people also choose are not included: ``plan (1)``, ``plan 2``, ``plan - copy`` and ``plan-HOST``, as used by
Google Drive, iCloud and OneDrive, do not imply a conflict, unless the host name was made up by Windows; and
``db.backup`` may be a task.
"""

import re
import unicodedata
from collections.abc import Mapping
from functools import cache, reduce
from typing import Any

from claudomator_py.domain.errors import Problem, shown
from claudomator_py.values import dataclass, toml_data


@dataclass(frozen=True, slots=True)
class ConflictName:
    """How some programs name a second version.

    program: name for people. pattern: what is added to the name, searched for in the name without its suffix. example:
    such a name, without suffix. other: a similar name that does not match.
    """

    program: str
    pattern: re.Pattern[str]
    example: str
    other: str


@cache
def conflict_names() -> tuple[ConflictName, ...]:
    """Return the names of ``conflict_copies.toml``, in the order in which they are tried."""
    data = toml_data("claudomator_py.schema", "conflict_copies.toml")
    parts = {f"{{{name}}}": unicodedata.normalize("NFKC", part) for name, part in data["parts"].items()}
    return tuple(_name(entry, parts) for entry in data["names"])


def _name(entry: Mapping[str, Any], parts: Mapping[str, str]) -> ConflictName:
    pattern = reduce(lambda text, part: text.replace(*part), parts.items(), entry["pattern"])
    compiled = re.compile(pattern, re.IGNORECASE if entry.get("ignore_case") else 0)
    return ConflictName(entry["program"], compiled, entry["example"], entry["other"])


@cache
def _any() -> re.Pattern[str]:
    """What finds all that one of them finds, in one go, as nearly no file is named like these."""
    return re.compile("|".join(f"(?:{name.pattern.pattern})" for name in conflict_names()), re.IGNORECASE)


def conflict_problem(filename: str) -> Problem | None:
    """Return the refusal of a file whose name marks it as a second version; None for any other. filename: without
    folders."""
    # Full-width brackets, and letters written in composed or decomposed form, count as the usual ones.
    stem, dot, suffix = unicodedata.normalize("NFKC", filename).rpartition(".")
    if _any().search(stem) is None:
        return None
    for name in conflict_names():
        if match := name.pattern.search(stem):
            original = f"{stem[: match.start()]}{stem[match.end() :]}".removesuffix(dot + suffix) + dot + suffix
            message = f"is named like a second version of `{shown(original)}` that {name.program} left"
            remedy = (
                "keep the right one under its own name and delete the other, or rename this to have it read as well"
            )
            return Problem(message=message, remedy=remedy)
    return None
