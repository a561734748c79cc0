"""What an agent's tool call does, and whether that exceeds a reach."""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from claudomator_py.acts import DIGEST_LENGTH, Reach
from claudomator_py.acts.catalogue import catalogue
from claudomator_py.acts.pattern import Call, Place
from claudomator_py.acts.reading import acts
from claudomator_py.acts.walk import Act
from claudomator_py.texts import cut_line
from claudomator_py.values import dataclass, regex

_COMMANDS = ("command", "cmd", "script")
_PATHS = ("file_path", "filePath", "notebook_path", "absolute_path", "path", "filename")
_PATCHED = regex(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.MULTILINE)
_MAX_WORDS: Final = 200
_MAX_DESCRIBED: Final = 5


@dataclass(frozen=True, slots=True)
class BeyondReach:
    """A tool call that exceeds the run's reach. acts: those that exceed it, widest first."""

    acts: tuple[Act, ...]
    reach: Reach
    """The run's reach."""
    digest: str
    """Identifies the call together with what it does, so that a grant ends when a script it runs is changed."""

    @property
    def needs(self) -> Reach:
        """The smallest reach that allows it."""
        return self.acts[0].reach

    @property
    def does(self) -> str:
        """The exceeding acts in words: "`npm publish` publishes a package"."""
        descriptions = [f"`{act.command}` {act.does}" for act in self.acts[:_MAX_DESCRIBED]]
        more = len(self.acts) - len(descriptions)
        return "; ".join([*descriptions, f"and {more} more"] if more else descriptions)


def subject_of(given: Mapping[str, Any]) -> str:
    """Return the subject of a call, verbatim: its command, else its path or URL, else all its input as JSON."""
    for names in (_COMMANDS, _PATHS, ("url",)):
        for name in names:
            value = given.get(name)
            if isinstance(value, str):
                return value
            if isinstance(value, list) and all(isinstance(item, str) for item in value) and name in _COMMANDS:
                return json.dumps(value)
    return json.dumps(given, sort_keys=True, ensure_ascii=False)


def digest_of(*parts: str) -> str:
    """Return a digest of the strings in 16 hexadecimal digits."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:DIGEST_LENGTH]


def digest_of_acts(acts: Iterable[Act]) -> str:
    """Return a digest of the acts that does not depend on their order."""
    return digest_of(*sorted({f"{act.kind} {act.command}" for act in acts}))


def rule_for(tool: str, given: Mapping[str, Any], digest: str) -> str:
    """Return the permission rule that allows exactly this call. digest: as in ``BeyondReach``; the text after it is
    only for people to read."""
    words = cut_line(subject_of(given), _MAX_WORDS)
    return f"beyond-reach:{digest} {tool}({words if words.isprintable() else '...'})"


def exceeding(
    tool: str, given: Mapping[str, Any], reach: Reach, place: Place, allowed: Collection[str] = ()
) -> BeyondReach | None:
    """Return how the call exceeds the reach, or None if it does not. allowed: commands that a person allowed, see
    ``reading.acts``."""
    if reach is Reach.ANY:
        return None
    acts = [act for act in tool_acts(tool, given, place, allowed) if act.reach > reach]
    if not acts:
        return None
    digest = f"{digest_of(tool, subject_of(given))}.{digest_of_acts(acts)}"
    return BeyondReach(tuple(sorted(acts, key=lambda act: -act.reach.rank)), reach, digest)


def tool_acts(tool: str, given: Mapping[str, Any], place: Place, allowed: Collection[str]) -> tuple[Act, ...]:
    """Return what the call does beyond the working directory: distinct acts, as far as known."""
    data = catalogue()
    if any(fnmatchcase(tool, free) for free in data.free):
        return ()
    denied: list[Act] = []
    for name in _COMMANDS:
        if isinstance(command := given.get(name), str):
            denied += acts(command, place, allowed)
        elif isinstance(command, list) and command and all(isinstance(word, str) for word in command):
            denied += acts(_line(command), place, allowed)
    paths = [path for name in _PATHS if isinstance(path := given.get(name), str)]
    patch = next((text for name in ("input", "patch", "command") if isinstance(text := given.get(name), str)), "")
    patched = [match[1] or match[2] for match in _PATCHED.finditer(patch)]
    for program, concerned in (
        ("tee", [*(paths if tool in data.writing else ()), *patched]),
        ("cat", paths if tool in data.reading else ()),
    ):
        for path in concerned:
            call = Call(program, (path,), {}, place)
            denied += [Act(f"{tool} {path}", kind.kind, kind.reach, kind.does) for kind in data.kinds_of(call)]
    for expression, kind in data.tools:
        if expression.search(tool):
            denied.append(Act(tool, kind.kind, kind.reach, kind.does))
    return tuple(dict.fromkeys(denied))


def _line(words: list[str]) -> str:
    """Quote each word for the shell and join them."""
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
