"""What a tool call of an agent does, and whether it goes beyond a reach."""

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from claudomator_py.acts.catalogue import Catalogue, catalogue
from claudomator_py.acts.pattern import Call
from claudomator_py.acts.place import Place
from claudomator_py.acts.reach import Reach
from claudomator_py.acts.reading import Act, acts

_COMMANDS = ("command", "cmd", "script")
_PATHS = ("file_path", "filePath", "notebook_path", "absolute_path", "path", "filename")
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.MULTILINE)
_DIGEST: Final = 16
"""Characters of a digest."""
_MAX_WORDS: Final = 200
_RULE = re.compile(r"beyond-reach:([0-9a-f]{16})(?: |\Z)")


@dataclass(frozen=True, slots=True)
class BeyondReach:
    """A tool call that goes too far, with the act that goes farthest."""

    act: Act
    reach: Reach
    """What the run may."""


def subject_of(given: Mapping[str, Any]) -> str:
    """Return what a call is about, exactly: its command, else the file that it names, else all that it is given."""
    for names in (_COMMANDS, _PATHS, ("url",)):
        for name in names:
            value = given.get(name)
            if isinstance(value, str):
                return value
            if isinstance(value, list) and all(isinstance(one, str) for one in value) and name in _COMMANDS:
                return json.dumps(value)
    return json.dumps(given, sort_keys=True, ensure_ascii=False)


def digest_of(tool: str, subject: str) -> str:
    """Return what stands for exactly that call, in 16 hexadecimal digits."""
    return hashlib.sha256(f"{tool}\0{subject}".encode()).hexdigest()[:_DIGEST]


def rule_for(tool: str, given: Mapping[str, Any]) -> str:
    """Return what a person grants to allow exactly that call. What follows the digest is for people alone."""
    subject = subject_of(given)
    line = " ".join(subject.split())
    words = line if len(line) <= _MAX_WORDS else f"{line[: _MAX_WORDS - 3]}..."
    return f"beyond-reach:{digest_of(tool, subject)} {tool}({words if words.isprintable() else '...'})"


def without_words(rule: str) -> str | None:
    """Return the same rule with nothing of the call in it; None: it is no rule for a call beyond a reach."""
    found = _RULE.match(rule)
    return None if found is None else found[0].strip()


def digest_in(rule: str) -> str | None:
    """Return the digest of the call that the rule allows; None: it is no such rule."""
    found = _RULE.match(rule)
    return None if found is None else found[1]


def beyond(
    tool: str,
    given: Mapping[str, Any],
    reach: Reach,
    place: Place,
    granted: Collection[str] = (),
    known: Catalogue | None = None,
) -> BeyondReach | None:
    """Return how the call goes beyond the reach; None: it does not. granted: digests of calls that a person allowed."""
    if reach is Reach.ANY or digest_of(tool, subject_of(given)) in granted:
        return None
    found = [act for act in tool_acts(tool, given, place, known) if act.reach > reach]
    return BeyondReach(max(found, key=lambda act: act.reach.rank), reach) if found else None


def tool_acts(tool: str, given: Mapping[str, Any], place: Place, known: Catalogue | None = None) -> tuple[Act, ...]:
    """Return what the call does beyond the working directory, as far as that is known."""
    data = known or catalogue()
    if any(fnmatchcase(tool, free) for free in data.free):
        return ()
    found: list[Act] = []
    for name in _COMMANDS:
        if isinstance(command := given.get(name), str):
            found += acts(command, place, data)
        elif isinstance(command, list) and command and all(isinstance(word, str) for word in command):
            found += acts(_line(command), place, data)
    paths = [path for name in _PATHS if isinstance(path := given.get(name), str)]
    patch = next((text for name in ("input", "patch", "command") if isinstance(text := given.get(name), str)), "")
    patched = [one[1] or one[2] for one in _PATCHED.finditer(patch)]
    for program, concerned in (
        ("tee", [*(paths if tool in data.writing else ()), *patched]),
        ("cat", paths if tool in data.reading else ()),
    ):
        for path in concerned:
            call = Call(program, (path,), {}, place)
            found += [Act(f"{tool} {path}", kind.kind, kind.reach, kind.does) for kind in data.kinds_of(call)]
    for expression, kind in data.tools:
        if expression.search(tool):
            found.append(Act(tool, kind.kind, kind.reach, kind.does))
    return tuple(dict.fromkeys(found))


def _line(words: list[str]) -> str:
    """The command line of these words, each quoted."""
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
