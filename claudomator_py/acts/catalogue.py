"""The contents of ``commands.toml`` as values, read once per process."""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from claudomator_py.acts import Reach
from claudomator_py.acts.pattern import Call, Pattern
from claudomator_py.acts.task_files import TaskFile
from claudomator_py.acts.words import Files, WordTests
from claudomator_py.values import dataclass, regex, toml_data

_VERSION = regex(r"(?<=[a-z]{2})-?\d[\d.]*$")
"""A version at the end of a program's name. After a single letter, as in `k6`, it belongs to the name."""


@dataclass(frozen=True, slots=True)
class ActKind:
    """One kind of act: an ``[[act]]`` entry of the data."""

    kind: str
    reach: Reach
    """The smallest reach that allows it."""
    does: str
    """A verb phrase for people: "publishes a package"."""


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A program that runs the command after it, such as ``sudo``."""

    values: frozenset[str]
    """Its options that take the next word."""
    env: frozenset[str]
    """Those whose value sets a variable of the inner command."""
    skip: int
    """Words before the inner command."""
    dashes: bool
    """Whether the inner command follows ``--``, after any number of words."""
    program: str | None
    """What the inner words are given to, if they do not begin with a program themselves."""
    network: bool
    """Whether the command runs in a network of containers."""

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> "Wrapper":
        """Build a wrapper from its entry in ``commands.toml``."""
        return cls(
            _options(entry.get("values", "")),
            _options(entry.get("env", "")),
            entry.get("skip", 0),
            entry.get("dashes", False),
            entry.get("program"),
            entry.get("network", False),
        )


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Everything that ``commands.toml`` says about commands."""

    patterns: Mapping[str, tuple[tuple[Pattern, ActKind], ...]]
    """Patterns by program name."""
    globs: tuple[str, ...]
    """Program names in ``patterns`` that contain ``*``, such as ``mkfs.*``: for programs without patterns of their
    own."""
    kinds: Mapping[str, ActKind]
    wrappers: Mapping[str, Wrapper]
    far_shells: frozenset[str]
    """Programs that run the words after a host there, so that an option after these is not their own."""
    shell_options: Mapping[str, frozenset[str]]
    shell_words: frozenset[str]
    code_options: Mapping[str, frozenset[str]]
    preloading: Mapping[str, frozenset[str]]
    values: Mapping[str, frozenset[str]]
    telling_names: tuple[str, ...]
    """Globs for names of targets and scripts that suggest a deployment, for when their text cannot be read."""
    only_parsed: Mapping[str, frozenset[str]]
    """Options that make a program check a script's syntax without running it."""
    env_file_readers: Mapping[str, tuple[Pattern, ...]]
    """Commands that load variables from ``.env`` in their working directory, by program."""
    task_files: tuple[TaskFile, ...]
    starting: frozenset[str]
    """Variables whose value is a command that other programs run, such as ``GIT_SSH_COMMAND``."""
    plain_words: frozenset[str]
    files: Files
    code: tuple[tuple[re.Pattern[str], ActKind], ...]
    """Library calls in program code, as expressions."""
    tools: tuple[tuple[re.Pattern[str], ActKind], ...]
    """Expressions for names of agents' tools."""
    writing: frozenset[str]
    """Agents' tools that write the file they name."""
    reading: frozenset[str]
    """Agents' tools that read the file they name."""
    free: tuple[str, ...]
    """Globs for tools that are never checked."""

    def kinds_of(self, call: Call) -> list[ActKind]:
        """Return the kinds of act that the command itself commits, widest reach first."""
        act_kinds: dict[str, ActKind] = {}
        if call.asks_for_help and call.program not in self.far_shells:
            return []
        names = dict.fromkeys((call.program, without_version(call.program)))
        known = [name for name in names if name in self.patterns]
        for program in known or (glob for glob in self.globs if any(fnmatchcase(name, glob) for name in names)):
            for pattern, kind in self.patterns[program]:
                if kind.kind not in act_kinds and pattern.matches(call):
                    act_kinds[kind.kind] = kind
        return sorted(act_kinds.values(), key=lambda kind: -kind.reach.rank)


def without_version(program: str) -> str:
    """Return the program's name without its version suffix: ``python3.12`` becomes ``python``."""
    return _VERSION.sub("", program)


@cache
def catalogue() -> Catalogue:
    """Return the shipped catalogue. Raises ValueError if the data is damaged."""
    return read(data())


def data() -> dict[str, Any]:
    """Return ``commands.toml`` as parsed TOML."""
    return toml_data("claudomator_py.acts", "commands.toml")


def read(document: Mapping[str, Any]) -> Catalogue:
    """Build the catalogue from parsed TOML. Raises ValueError or KeyError."""
    kept = ("scratch_folders", "secret_files", "public_files", "system_files", "protected_branches", "local_contexts")
    files = Files(*(tuple(document[name]) for name in kept))
    known = WordTests(files).by_name()
    kinds: dict[str, ActKind] = {}
    patterns: dict[str, list[tuple[Pattern, ActKind]]] = {}
    env_file: dict[str, tuple[Pattern, ...]] = {}
    for text in document["env_file_readers"]:
        reader = Pattern.parse(text, known)
        env_file |= {program: (*env_file.get(program, ()), reader) for program in reader.programs}
    code: list[tuple[re.Pattern[str], ActKind]] = []
    tools: list[tuple[re.Pattern[str], ActKind]] = []
    for entry in document["act"]:
        kind = kinds[entry["kind"]] = ActKind(entry["kind"], Reach(entry["reach"]), entry["does"])
        for text in _lines(entry.get("commands", "")):
            pattern = Pattern.parse(text, known)
            for program in pattern.programs:
                patterns.setdefault(program, []).append((pattern, kind))
        code += [(re.compile(pattern), kind) for pattern in entry.get("code", ())]
        tools += [(re.compile(pattern), kind) for pattern in entry.get("tools", ())]
    return Catalogue(
        globs=tuple(program for program in patterns if "*" in program),
        patterns={program: tuple(words) for program, words in patterns.items()},
        kinds=kinds,
        wrappers={name: Wrapper.read(entry) for name, entry in document["wrappers"].items()},
        far_shells=frozenset(document["far_shells"]),
        shell_options={name: _options(text) for name, text in document["shell_options"].items()},
        shell_words=frozenset(document["shell_words"]["programs"]),
        code_options={name: _options(text) for name, text in document["interpreters"].items()},
        preloading={name: _options(text) for name, text in document["preloading"].items()},
        values={name: _options(text) for name, text in document["values"].items()},
        telling_names=tuple(document["telling_names"]),
        only_parsed={name: _options(text) for name, text in document["only_parsed"].items()},
        env_file_readers=env_file,
        task_files=tuple(TaskFile.read(entry) for entry in document["task_files"]),
        starting=frozenset(document["starting_variables"]),
        plain_words=frozenset(document["plain_words"]),
        files=files,
        code=tuple(code),
        tools=tuple(tools),
        writing=_options(document["tools"]["writing"]),
        reading=_options(document["tools"]["reading"]),
        free=tuple(document["tools"]["free"].split()),
    )


def _lines(text: str) -> list[str]:
    """Split an entry's patterns: one per line; an indented line continues the previous one."""
    joined = re.sub(r"\n +", " ", re.sub(r"\|\n +", "|", text))
    return [line for line in joined.split("\n") if line]


def _options(text: str) -> frozenset[str]:
    return frozenset(text.split())
