"""Command patterns in the notation of ``commands.toml``, and whether a command matches one."""

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from fnmatch import fnmatchcase
from typing import Final, Protocol

from claudomator_py.values import dataclass, regex


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command runs. By default it is unknown, and paths that begin with ``/``, ``~`` or ``..`` are outside."""

    folder: str | None = None
    """The working directory, absolute."""
    trees: tuple[str, ...] = ()
    """Absolute paths of the folders it may write to. Empty: only ``folder``."""
    home: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    read: Callable[[str], str | None] = field(default=lambda _: None)
    """Return the beginning of the file at an absolute path, or None if it cannot be read."""
    in_network: bool = False
    """Whether it runs in a network of containers on this machine, where a host name without a dot is one of them."""

    def absolute(self, path: str) -> str:
        """Return the normalised absolute path. It begins with ``~`` if ``home`` is unknown, and stays relative if
        ``folder`` is."""
        if path == "~" or path.startswith("~/"):
            path = (self.home or "~") + path[1:]
        if not path.startswith(("/", "~")):
            path = posixpath.join(self.folder or "", path)
        return posixpath.normpath(path) if path else path

    def is_inside(self, path: str, scratch: tuple[str, ...]) -> bool:
        """Return whether a run confined to its folders may change the path. scratch: folders for temporary files."""
        whole = self.absolute(path)
        temporary = self.variables.get("TMPDIR", "")
        if temporary.startswith("/") and not _is_below(self.home or "/", posixpath.normpath(temporary)):
            scratch = (*scratch, temporary)
        if any(_is_below(whole, self.absolute(folder)) for folder in scratch):
            return True
        if self.folder is None:
            return not whole.startswith(("/", "~", ".."))
        return any(_is_below(whole, tree) for tree in self.trees or (self.folder,))

    def is_one_of(self, path: str, patterns: tuple[str, ...]) -> bool:
        """Return whether the path equals, matches or lies below one of these globs."""
        whole = self.absolute(path)
        for pattern in patterns:
            known = self.absolute(pattern)
            if whole == known or fnmatchcase(whole, known) or whole.startswith(f"{known}/"):
                return True
        return False

    def is_home(self, path: str) -> bool:
        """Return whether the path is the home folder, the root or another top folder, or ``*`` in one of them."""
        whole = self.absolute(path.removesuffix("*") or path)
        top = {"/", "//", "~", "/home", "/root", "/Users", "/etc", "/usr", "/var"}
        return whole in top or (self.home is not None and whole == posixpath.normpath(self.home))


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


UNKNOWN: Final = "$"
"""Marks, within a word, a part that is known only when it runs: a variable or the output of a command."""


_VERB = regex(r"[a-z][\w:-]*")
_PASSING = frozenset({"exec", "run", "ssh", "rsh", "console"})
"""Subcommands that pass what follows to another program."""
_OFF = ("false", "no", "off", "0", "none")


@dataclass(frozen=True, slots=True)
class Call:
    """A command as it would run: program name, arguments, and the variables that it sees."""

    program: str
    words: tuple[str, ...]
    variables: Mapping[str, str]
    place: Place
    valued: frozenset[str] = frozenset()
    """The program's options that take the next word."""

    def positions(self) -> Iterator[tuple[str, bool]]:
        """Yield each word that is neither an option nor certainly an option's value, and whether it may be one."""
        after_option, taken, ended = False, False, False
        for word in self.words:
            if taken:
                taken = False
            elif word == "--" and not ended:
                ended, after_option = True, False
            elif word.startswith("-") and len(word) > 1 and not ended:
                taken = word in self.valued
                after_option = not taken and "=" not in word
            else:
                yield word, after_option
                after_option = False

    @property
    def positionals(self) -> tuple[str, ...]:
        """The words that are neither an option nor certainly an option's value."""
        return tuple(word for word, _ in self.positions())

    @property
    def asks_for_help(self) -> bool:
        """Return whether the program only prints how it is used, or its version."""
        if self.words in (("--version",), ("version",), ("help",)):
            return True
        *before, last = self.words or ("",)
        return last in ("--help", "-help") and all(map(_VERB.fullmatch, before)) and _PASSING.isdisjoint(before)

    def values(self, option: str) -> Iterator[str]:
        """Yield the option's value for each occurrence: ``-XPOST``, ``-X POST``, ``--request=POST``. An empty string
        if the option is the last word."""
        for at, word in enumerate(self.words):
            following = self.words[at + 1] if at + 1 < len(self.words) else ""
            if word == option:
                yield following
            elif not option.startswith("-"):
                if word.startswith(f"{option}="):  # an operand such as dd's `of=`
                    yield word[len(option) + 1 :]
            elif option.startswith("--") or len(option) != 2:
                if word.startswith(f"{option}="):
                    yield word[len(option) + 1 :]
            elif word.startswith("-") and not word.startswith("--") and option[1] in word[1:]:
                before, _, rest = word[1:].partition(option[1])
                if not before.isalpha() and before:
                    continue
                yield rest.removeprefix("=") if rest else following

    def has(self, option: str) -> bool:
        """Return whether the option is present: alone, in a cluster of short options, or with a value that does not
        switch it off."""
        if len(option) == 2 and option[1].isalpha():
            cluster = re.compile(rf"-[A-Za-z]{{0,6}}{option[1]}[A-Za-z]{{0,6}}")
            return any(word == option or (cluster.fullmatch(word) and len(word) <= 6) for word in self.words)
        return any(
            word == option or (word.startswith(f"{option}=") and word.rpartition("=")[2] not in _OFF)
            for word in self.words
        )


class Test(Protocol):
    """A test of one word of a call; patterns name it in braces."""

    def __call__(self, word: str, call: Call) -> bool:
        """Return whether the word passes."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """One line of ``commands``. programs: globs, one of which the program's name must match."""

    text: str
    programs: tuple[str, ...]
    _steps: tuple["_Step", ...]
    _conditions: tuple[Callable[[Call], bool], ...]

    @classmethod
    def parse(cls, text: str, tests: Mapping[str, Test]) -> "Pattern":
        """Parse the line. Raises ValueError if it does not follow the notation described in ``commands.toml``."""
        program, *rest = text.split()
        steps: list[_Step] = []
        conditions: list[Callable[[Call], bool]] = []
        for token in rest:
            if _is_step(token):
                steps.append(_Step.parse(token))
            else:
                conditions.append(_condition(token, tests))
        return cls(text, tuple(program.split("|")), tuple(steps), tuple(conditions))

    def matches(self, call: Call) -> bool:
        """Return whether the call matches. The caller has checked its program."""
        return all(condition(call) for condition in self._conditions) and _follows(list(call.positions()), self._steps)


@dataclass(frozen=True, slots=True)
class _Step:
    """What the next word must be: one of ``names``, or none of them if ``other``. any_number: skip any words first."""

    names: tuple[str, ...]
    other: bool = False
    any_number: bool = False

    @classmethod
    def parse(cls, text: str) -> "_Step":
        if text == "...":
            return cls((), any_number=True)
        if text.startswith("^"):
            return cls(tuple(text[1:].split("|")), other=True)
        return cls(tuple(text.split("|")))

    def takes(self, word: str) -> bool:
        return any(word == name or ("*" in name and fnmatchcase(word, name)) for name in self.names) is not self.other


def _is_step(token: str) -> bool:
    """Return whether the token describes the next word, as opposed to a condition on the whole call."""
    return not re.match(r"-\S|!|\+|\{|/|[A-Za-z][A-Za-z0-9_|]*=", token)


def _follows(positions: list[tuple[str, bool]], steps: tuple[_Step, ...]) -> bool:
    if not steps:
        return True
    step, rest = steps[0], steps[1:]
    if step.any_number:
        return not rest or any(_follows(positions[at:], rest) for at in range(len(positions) + 1))
    for at, (word, may_be_value) in enumerate(positions):
        if step.takes(word) and _follows(positions[at + 1 :], rest):
            return True
        if not may_be_value or step.other:
            return False
    return False


def _condition(token: str, tests: Mapping[str, Test]) -> Callable[[Call], bool]:
    if token.startswith("!"):
        return _absent(token[1:])
    if token.startswith("+"):
        holds = _test_of(token[1:], tests)
        return lambda call: any(holds(word, call) for word in call.words)
    if token.startswith("{"):
        holds = _test_of(token, tests)
        return lambda call: any(holds(word, call) for word in call.positionals)
    if token.startswith("/"):
        holds = _test_of(token, tests)
        return lambda call: any(holds(word, call) for word in call.words)
    if token[0].isupper():
        variables, _, value = token.partition("=")
        among = variables.split("|")
        holds = _test_of(value, tests)
        return lambda call: any(holds(call.variables[name], call) for name in among if name in call.variables)
    options, equals, value = token.partition("=")
    names = options.split("|")
    if not equals:
        return lambda call: any(call.has(name) for name in names)
    holds = _test_of(value, tests)
    return lambda call: any(holds(word, call) for name in names for word in call.values(name))


def _absent(token: str) -> Callable[[Call], bool]:
    names = token.split("|")
    options = [name for name in names if name.startswith("-") and "=" not in name]
    valued = [name.split("=", 1) for name in names if "=" in name]
    words = {name for name in names if not name.startswith("-") and "=" not in name}
    return lambda call: (
        not any(call.has(option) for option in options)
        and not any(fnmatchcase(given, value) for name, value in valued for given in _values_of(name, call))
        and words.isdisjoint(call.positionals)
    )


def _values_of(name: str, call: Call) -> Iterator[str]:
    """Yield the values that an option or a variable has."""
    if name.startswith("-"):
        yield from call.values(name)
    elif name in call.variables:
        yield call.variables[name]


def _test_of(text: str, tests: Mapping[str, Test]) -> Test:
    if text.startswith("{") and text.endswith("}"):
        if text[1:-1] not in tests:
            raise ValueError(f"there is no test {text}")
        return tests[text[1:-1]]
    if text.startswith("/") and text.endswith("/"):
        return _Like(re.compile(text[1:-1]))
    return _OneOf(tuple(text.split(",")))


@dataclass(frozen=True, slots=True)
class _Like:
    expression: re.Pattern[str]

    def __call__(self, word: str, call: Call) -> bool:
        return self.expression.search(word) is not None


@dataclass(frozen=True, slots=True)
class _OneOf:
    accepted: tuple[str, ...]

    def __call__(self, word: str, call: Call) -> bool:
        return word in self.accepted or any("*" in pattern and fnmatchcase(word, pattern) for pattern in self.accepted)
