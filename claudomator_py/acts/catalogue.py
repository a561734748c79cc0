"""The data of ``commands.toml`` as values, read once."""

import pkgutil
import re
import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from claudomator_py.acts.pattern import Call, Pattern
from claudomator_py.acts.reach import Reach
from claudomator_py.acts.task_files import TaskFile
from claudomator_py.acts.words import Files, WordTests
from claudomator_py.values import dataclass, regex

_VERSION = regex(r"(?<=[a-z])-?\d[\d.]*$")


@dataclass(frozen=True, slots=True)
class ActKind:
    """One entry of the data."""

    kind: str
    reach: Reach
    """The least that allows it."""
    does: str
    """In words for people: "publishes a package"."""


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A program that runs the command after it, see the data."""

    values: frozenset[str]
    skip: int


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What is known of commands."""

    patterns: Mapping[str, tuple[tuple[Pattern, ActKind], ...]]
    """By program."""
    globs: tuple[str, ...]
    """Programs of patterns that stand for several, such as ``mkfs.*``."""
    kinds: Mapping[str, ActKind]
    wrappers: Mapping[str, Wrapper]
    shell_options: Mapping[str, frozenset[str]]
    shell_words: frozenset[str]
    code_options: Mapping[str, frozenset[str]]
    values: Mapping[str, frozenset[str]]
    telling_names: tuple[str, ...]
    """Names of targets and scripts that tell what they do, with ``*`` for anything."""
    only_parsed: Mapping[str, frozenset[str]]
    """Options with which a program only looks whether a script can be parsed."""
    env_file_readers: Mapping[str, tuple[Pattern, ...]]
    """Commands that take variables from a file ``.env`` beside which they run, by program."""
    task_files: tuple[TaskFile, ...]
    starting: frozenset[str]
    """Variables whose values are commands that programs start."""
    plain_words: frozenset[str]
    files: Files
    code: tuple[tuple[re.Pattern[str], ActKind], ...]
    """What program code does that starts no other program."""
    tools: tuple[tuple[re.Pattern[str], ActKind], ...]
    """What tools of agents do, by their names."""
    writing: frozenset[str]
    """Tools of agents that write the file that they name."""
    reading: frozenset[str]
    free: tuple[str, ...]
    """Tools that need no fence, with ``*`` for anything."""

    def kinds_of(self, call: Call) -> list[ActKind]:
        """Return what the command does by itself, the farthest first."""
        found: dict[str, ActKind] = {}
        names = dict.fromkeys((call.program, without_version(call.program)))
        like = (glob for glob in self.globs if any(fnmatchcase(name, glob) for name in names))
        for program in (*names, *like):
            for pattern, kind in self.patterns.get(program, ()):
                if kind.kind not in found and pattern.matches(call):
                    found[kind.kind] = kind
        return sorted(found.values(), key=lambda kind: -kind.reach.rank)


def without_version(program: str) -> str:
    """Return the program's name without what tells versions apart: ``python3.12`` is ``python``."""
    return _VERSION.sub("", program)


@cache
def catalogue() -> Catalogue:
    """Return the data that comes with Claudomator. Raises ValueError where it is damaged."""
    return read(data())


def data() -> dict[str, Any]:
    """Return the data as it is written."""
    text = pkgutil.get_data("claudomator_py.acts", "commands.toml") or b""
    return tomllib.loads(text.decode())


def read(said: Mapping[str, Any]) -> Catalogue:
    """Return the data as values. Raises ValueError or KeyError."""
    files = Files(
        *(
            tuple(said[name])
            for name in ("scratch_folders", "secret_files", "public_files", "system_files", "protected_branches")
        )
    )
    known = WordTests(files).by_name()
    kinds: dict[str, ActKind] = {}
    patterns: dict[str, list[tuple[Pattern, ActKind]]] = {}
    env_file: dict[str, tuple[Pattern, ...]] = {}
    for text in said["env_file_readers"]:
        reader = Pattern.parse(text, known)
        env_file |= {program: (*env_file.get(program, ()), reader) for program in reader.programs}
    code: list[tuple[re.Pattern[str], ActKind]] = []
    tools: list[tuple[re.Pattern[str], ActKind]] = []
    for entry in said["act"]:
        kind = kinds[entry["kind"]] = ActKind(entry["kind"], Reach(entry["reach"]), entry["does"])
        for text in _lines(entry.get("commands", "")):
            pattern = Pattern.parse(text, known)
            for program in pattern.programs:
                patterns.setdefault(program, []).append((pattern, kind))
        code += [(re.compile(one), kind) for one in entry.get("code", ())]
        tools += [(re.compile(one), kind) for one in entry.get("tools", ())]
    return Catalogue(
        globs=tuple(program for program in patterns if "*" in program),
        patterns={program: tuple(found) for program, found in patterns.items()},
        kinds=kinds,
        wrappers={
            name: Wrapper(_options(one.get("values", "")), one.get("skip", 0)) for name, one in said["wrappers"].items()
        },
        shell_options={name: _options(text) for name, text in said["shell_options"].items()},
        shell_words=frozenset(said["shell_words"]["programs"]),
        code_options={name: _options(text) for name, text in said["interpreters"].items()},
        values={name: _options(text) for name, text in said["values"].items()},
        telling_names=tuple(said["telling_names"]),
        only_parsed={name: _options(text) for name, text in said["only_parsed"].items()},
        env_file_readers=env_file,
        task_files=tuple(TaskFile.read(one) for one in said["task_files"]),
        starting=frozenset(said["starting_variables"]),
        plain_words=frozenset(said["plain_words"]),
        files=files,
        code=tuple(code),
        tools=tuple(tools),
        writing=_options(said["tools"]["writing"]),
        reading=_options(said["tools"]["reading"]),
        free=tuple(said["tools"]["free"].split()),
    )


def _lines(text: str) -> list[str]:
    """The patterns of an entry: one a line, where an indented line continues the one before."""
    joined = re.sub(r"\n +", " ", re.sub(r"\|\n +", "|", text))
    return [line for line in joined.split("\n") if line]


def _options(text: str) -> frozenset[str]:
    return frozenset(text.split())
