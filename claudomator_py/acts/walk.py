"""Walk through shell text in the order of execution, and collect what each command does."""

import posixpath
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from fnmatch import fnmatchcase
from typing import Final

from claudomator_py.acts import Reach
from claudomator_py.acts.catalogue import ActKind, Catalogue, without_version
from claudomator_py.acts.pattern import UNKNOWN, Call
from claudomator_py.acts.shell import parse
from claudomator_py.acts.shell_tree import (
    CaseCommand,
    Function,
    Group,
    Loop,
    Node,
    Pipeline,
    Redirect,
    Script,
    SimpleCommand,
    Substitution,
    Variable,
    Word,
)
from claudomator_py.acts.state import State, arguments
from claudomator_py.texts import cut_line
from claudomator_py.values import dataclass

MAX_DEPTH: Final = 8
"""Nesting of texts that are read (``sh -c``, scripts, recipes); deeper ones are reported as hidden."""
MAX_COMMANDS: Final = 3_000
"""Commands read for one command line. A line with more is reported as hidden; a script is not."""
_MAX_SHOWN: Final = 300
DECODERS = frozenset({"base64", "base32", "xxd", "openssl", "uudecode", "rev", "gunzip", "zcat", "tr", "gpg", "rot13"})
SCRIPT: Final = "a-script"
"""The program name under which the data has patterns for the project's scripts, whatever interprets them."""


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that a command line does beyond the working directory."""

    command: str
    """The command that does it, on one line, truncated for display."""
    kind: str
    """The kind's name in the data, such as ``package`` or ``git-publish``."""
    reach: Reach
    """The smallest reach that allows it."""
    does: str
    """A verb phrase for people: "publishes a package"."""


@dataclass(slots=True)
class Walk(ABC):
    """A walk through shell text, with the acts collected so far."""

    known: Catalogue
    state: State
    acts: list[Act] = field(default_factory=list)
    allowed: frozenset[str] = frozenset()
    depth: int = 0
    left: int = MAX_COMMANDS
    running: list[str] = field(default_factory=list)
    """Functions, files and recipes being read, so that recursion ends."""

    @abstractmethod
    def runs(self, call: Call, own: Mapping[str, str], stdin: str | None) -> None:
        """Read what the command runs in turn. own: variables set for it alone; stdin: its input, if known."""

    @abstractmethod
    def file(self, path: str, given: Sequence[str], *, in_shell: bool = False, sourced: bool = False) -> None:
        """Read a script that is run. given: its arguments. sourced: what it sets stays set."""

    def text(self, text: str) -> None:
        """Read shell text."""
        if self.is_spent(text):
            return
        self.depth += 1
        self.script(parse(text))
        self.depth -= 1

    def is_spent(self, text: str) -> bool:
        """Return whether a limit is reached. Then a command line is noted as hidden; a script may just be long."""
        is_spent = self.left < 0 or self.depth >= MAX_DEPTH
        if is_spent and not self.running:
            self.note(self.known.kinds["hidden"], text)
        return is_spent

    def script(self, script: Script) -> None:
        for node in script:
            self._node(node, None)

    def _node(self, node: Node, piped: str | None) -> str | None:
        """Read a node. piped: its input, if known. Return its output, if known."""
        self.left -= 1
        if self.is_spent("..."):
            return None
        match node:
            case SimpleCommand():
                return self._command(node, piped)
            case Pipeline():
                for place, stage in enumerate(node.stages):
                    printed = self._node(stage, piped)
                    piped = UNKNOWN if printed is None and place + 1 < len(node.stages) else printed
                return piped
            case Group():
                outer = self.state
                self.state = outer.forked() if node.in_subshell else outer
                outputs = [self._node(child, piped) for child in node.body]
                self.state = outer
                self._written(node.redirects, None)
                return _all_of(outputs)
            case Function():
                self.state.functions[node.name] = node.body
            case CaseCommand():
                subject = self._text_of(node.subject)
                for patterns, body in node.branches:
                    if UNKNOWN in subject or any(fnmatchcase(subject, pattern) for pattern in patterns):
                        self.script(body)
                        if UNKNOWN not in subject:
                            break
            case Loop():
                values = [value for word in node.values for value in self._expanded(word)] or [f"{UNKNOWN}{node.name}"]
                for value in values:
                    self.state.variables[node.name] = value
                    self.script(node.body)
        return None

    def _expanded(self, word: Word) -> list[str]:
        """Expand a word; an unquoted variable may become several."""
        results = [""]
        for part in word:
            if isinstance(part, str):
                results[-1] += part
                continue
            value = self._part(part)
            pieces = [value] if part.quoted or value.startswith(UNKNOWN) else value.split()
            if not pieces:
                continue
            results[-1] += pieces[0]
            results += pieces[1:]
        return results if results != [""] or any(isinstance(part, str) or part.quoted for part in word) else []

    def _text_of(self, word: Word) -> str:
        return "".join(part if isinstance(part, str) else self._part(part) for part in word)

    def _part(self, part: Variable | Substitution) -> str:
        if isinstance(part, Variable):
            value = self.state.value(part.name)
            if value is None and part.default is not None:
                return self._text_of(part.default)
            return f"{UNKNOWN}{part.name}" if value is None else value
        outer, self.state = self.state, self.state.forked()
        values = [self._node(node, None) for node in part.body]
        self.state = outer
        known = _all_of(values)
        if known is not None and part.text.startswith("<("):
            path = f"/dev/fd/{63 - len(self.state.files)}"
            self.state.write(path, known, more=False)
            return path
        return f"{UNKNOWN}{part.text.removeprefix(UNKNOWN)}" if known is None else known.strip()

    def _command(self, command: SimpleCommand, piped: str | None) -> str | None:
        own = {name: self._text_of(word) for name, word in command.assignments if name}
        for name, word in command.assignments:
            if not name:
                self._text_of(word)
        for name in self.known.starting.intersection(own):
            self.text(own[name])
        words = [text for word in command.words for text in self._expanded(word)]
        stdin = piped
        for redirect in command.redirects:
            target = self._text_of(redirect.target)
            if redirect.operator in ("<<", "<<<"):
                stdin = target
            elif redirect.operator == "<":
                stdin = self.state.read(target) or UNKNOWN
                self.judge(Call("cat", (target,), own, self.state.place))
        if not words:
            self.state.variables |= own
            self._written(command.redirects, stdin)
            return None
        printed = self.words(words, own, stdin)
        self._written(command.redirects, printed)
        return printed

    def _written(self, redirects: Sequence[Redirect], printed: str | None) -> None:
        """Record the files that are written to. printed: their new contents, if known."""
        for redirect in redirects:
            if ">" not in redirect.operator or redirect.operator in ("<>", ">&"):
                continue
            path = self._text_of(redirect.target)
            self.judge(Call("tee", (path,), {}, self.state.place))
            if printed is not None:
                self.state.write(path, printed, more=redirect.operator.endswith(">>"))

    def words(self, words: list[str], own: Mapping[str, str], stdin: str | None) -> str | None:
        """Read one command and what it runs in turn. Return its output, if known."""
        self.left -= 1
        while words and (match := re.fullmatch(r"([A-Za-z_]\w*)=(.*)", words[0], re.DOTALL)):
            own, words = {**own, match[1]: match[2]}, words[1:]
        if not words or self.is_spent(" ".join(words)):
            return None
        path, rest = words[0], tuple(words[1:])
        if path.startswith(UNKNOWN) and len(path) > 1:
            self.decoded(path)
            return None
        name = posixpath.basename(path.rstrip("/")).removesuffix(".exe").removesuffix(".cmd") or path
        if name in self.state.functions and name not in self.running:
            with self.state.setting({**own, **arguments(rest)}):
                self.within(name, lambda: self.script(self.state.functions[name]))
            return None
        if not own and stdin is None and self.state.is_allowed(line_of(words), self.allowed):
            return None
        variables = {name: value for name, value in self.state.variables.items() if name.isupper()} | dict(own)
        call = Call(name, rest, variables, self.state.place, self._valued(name, rest))
        if any(pattern.matches(call) for pattern in self.known.env_file_readers.get(name, ())):
            call = replace(call, variables=self.state.env_file() | variables)
        self.judge(call)
        self.state.change(call, self.known.files.branches)
        with self.state.setting(own):
            self.runs(call, own, stdin)
            if "/" in path or name in ("source", "."):
                script, *given = words if "/" in path else rest or ("",)
                self.file(script, given, sourced="/" not in path)
        return self._printed(call, stdin)

    def _valued(self, name: str, rest: tuple[str, ...]) -> frozenset[str]:
        plain = without_version(name)
        options = self.known.values.get(plain, frozenset())
        return options | self.known.values.get(f"{plain} {next(iter(rest), '')}", frozenset())

    def _printed(self, call: Call, stdin: str | None) -> str | None:
        """Return the output of echo, printf, cat and tee, if known; a mark for decoders."""
        if call.program in ("echo", "printf"):
            words = [word for word in call.words if not re.fullmatch(r"-[neE]+", word)]
            if call.program == "printf" and words:
                return _formatted(words[0], words[1:])
            return " ".join(words)
        if call.program in ("cat", "tee"):
            if call.program == "tee" and stdin is not None:
                for path in call.positionals:
                    self.state.write(path, stdin, more=call.has("-a"))
            if call.program == "cat" and call.positionals:
                texts = [self.state.read(path) for path in call.positionals]
                return None if None in texts else "\n".join(text for text in texts if text is not None)
            return stdin
        return f"{UNKNOWN}({call.program})" if call.program in DECODERS else None

    def judge(self, call: Call) -> None:
        kinds = self.known.kinds_of(call)
        for kind in kinds:
            self.note(kind, line_of(call.words if call.program == SCRIPT else (call.program, *call.words)))

    def note(self, kind: ActKind, evidence: str) -> None:
        self.acts.append(Act(cut_line(evidence, _MAX_SHOWN), kind.kind, kind.reach, kind.does))

    def decoded(self, text: str) -> None:
        """Note as hidden that the text to be run comes out of a decoder."""
        if text.startswith(UNKNOWN) and any(re.search(rf"\b{decoder}\b", text) for decoder in DECODERS - {"tr"}):
            self.note(self.known.kinds["hidden"], text)

    def within(self, label: str, read: Callable[[], None]) -> None:
        if label in self.running:
            return
        self.running.append(label)
        read()
        self.running.pop()


def line_of(words: Sequence[str]) -> str:
    """Join the words into one line, quoting those that contain whitespace."""
    return " ".join(word if word and not any(map(str.isspace, word)) else repr(word) for word in words)


def _all_of(printed: Sequence[str | None]) -> str | None:
    """Return the joined output of several commands, or None if that of any is unknown."""
    return None if not printed or None in printed else "\n".join(value for value in printed if value is not None)


def _formatted(form: str, words: Sequence[str]) -> str:
    rest = list(words)
    result = re.sub(r"%[sqb]", lambda _: rest.pop(0) if rest else "", form)
    return result.replace("\\n", "\n").replace("\\t", "\t")
