"""Reads shell text as the commands that it runs, in order: a reading for what they could do, which is never run.

What cannot be parsed is read as far as it goes: a shell would refuse it, so nothing is missed by guessing on.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

MAX_NESTING = 30
"""Substitutions and groups within each other; deeper ones are read as plain text."""


@dataclass(frozen=True, slots=True)
class Variable:
    """``$NAME``, or ``${NAME:-default}``. quoted: whether it stands in double quotes, and so is one word."""

    name: str
    default: "Word | None" = None
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Substitution:
    """``$(...)``, `` `...` ``, or ``<(...)``: what these commands print. text: as it is written."""

    body: "Script"
    text: str
    quoted: bool = False


Word = tuple[str | Variable | Substitution, ...]
"""The parts of a word, without its quotes."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """``>``, ``>>`` or ``<`` and the file; ``<<`` and the text itself."""

    operator: str
    target: Word


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command. assignments: variables set for it, or for all that follows if it has no words."""

    words: tuple[Word, ...]
    assignments: tuple[tuple[str, Word], ...] = ()
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands or groups, each of which reads what the one before prints."""

    stages: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Group:
    """What stands in parentheses, braces, or between ``do`` and ``done``. in_subshell: changes of folder and variables
    end with it.
    """

    body: "Script"
    in_subshell: bool = False
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class Function:
    """A definition: its body runs where its name is a command."""

    name: str
    body: "Script"


@dataclass(frozen=True, slots=True)
class Case:
    """``case subject in patterns) ...``."""

    subject: Word
    branches: tuple[tuple[tuple[str, ...], "Script"], ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """``for name in values; do ...``."""

    name: str
    values: tuple[Word, ...]
    body: "Script"


Node = Command | Pipeline | Group | Function | Case | Loop
Script = tuple[Node, ...]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=")
_OPERATORS = ("&&", "||", ";;&", ";;", ";&", "|&", ";", "&", "|", "\n", "(", ")")
_REDIRECT = re.compile(r"\d*(<<<|<<-?|<>|<&|>>|>\||>&|&>>|&>|<|>)")
_PLAIN = re.compile(r"[^\s\\'\"$`;&|<>()#{}]+")
_BRACKETS = re.compile(r"[ \t]*\([ \t]*\)")
_KEYWORD = re.compile(r"(\[\[|[!{}]|[a-z]+)(?=[\s;&|()<>]|\Z)")
_CODED = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|u[0-9a-fA-F]{1,4}|.)", re.DOTALL)
_INTRODUCING = frozenset({"if", "then", "else", "elif", "while", "until", "do", "!", "time"})
_CLOSING = frozenset({"fi", "done", "esac", "}"})
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "", "e": "\x1b"}


def parse(text: str) -> Script:
    """Return what the text runs."""
    return _Parser(text.replace("\\\r\n", "").replace("\\\n", "").replace("\r\n", "\n"), 0).script(())


def literal(text: str) -> Word:
    """Return the word of that text alone."""
    return (text,)


@dataclass(slots=True)
class _Parser:
    text: str
    nesting: int
    at: int = 0

    # --- what a script is made of ---

    def script(self, ends: Sequence[str]) -> Script:
        """Read nodes up to one of these words or operators, which is left to be read, or to the end."""
        nodes: list[Node] = []
        while True:
            self._skip(newlines=True)
            if self.at >= len(self.text) or self._at_end(ends):
                return tuple(nodes)
            before = self.at
            node = self._pipeline(ends)
            if node is not None:
                nodes.append(node)
            operator = self._operator()
            if operator is not None and operator not in ends:
                self.at += len(operator)
            if self.at == before:
                self.at += 1  # a stray bracket: read on behind it

    def _pipeline(self, ends: Sequence[str]) -> Node | None:
        stages: list[Node] = []
        while True:
            node = self._node(ends)
            if node is not None:
                stages.append(node)
            self._skip()
            if self.text.startswith(("||", "|"), self.at) and not self.text.startswith("||", self.at):
                self.at += 2 if self.text.startswith("|&", self.at) else 1
                self._skip(newlines=True)
                continue
            break
        if len(stages) > 1:
            return Pipeline(tuple(stages))
        return stages[0] if stages else None

    def _node(self, ends: Sequence[str]) -> Node | None:
        self._skip()
        while (word := self._keyword()) in _INTRODUCING:
            self.at += len(word or "")
            self._skip(newlines=word != "time")
            if word == "time" and self.text.startswith("-p ", self.at):
                self.at += 3
        if self.at >= len(self.text) or self._at_end(ends):
            return None
        if self.text.startswith("((", self.at):
            self._skip_arithmetic()
            return None
        if self.text[self.at] == "(":
            return self._group(")", in_subshell=True)
        match self._keyword():
            case "{":
                return self._group("}")
            case "case":
                return self._case()
            case "for" | "select":
                return self._loop()
            case "function":
                self.at += len("function")
                self._skip()
                name = _PLAIN.match(self.text, self.at)
                self.at = name.end() if name else self.at
                return self._function(name[0] if name else "")
            case "[[":
                end = self.text.find("]]", self.at)
                inner = self.text[self.at : len(self.text) if end < 0 else end + 2]
                self.at += len(inner)
                return Command((), (("", (Substitution(self._inner_parts(inner), inner),)),))
            case word if word in _CLOSING:
                self.at += len(word or "")
                redirects = self._redirects()
                return Command((), redirects=redirects) if redirects else None
        return self._command()

    def _group(self, end: str, *, in_subshell: bool = False) -> Node | None:
        self.at += 1
        if self.nesting >= MAX_NESTING:
            return None
        self.nesting += 1
        body = self.script((end,))
        self.nesting -= 1
        if self.text.startswith(end, self.at):
            self.at += 1
        return Group(body, in_subshell, self._redirects())

    def _function(self, name: str) -> Node | None:
        self._skip()
        if self.text.startswith("(", self.at):
            self.at += 1
            self._skip()
            self.at += 1 if self.text.startswith(")", self.at) else 0
        self._skip(newlines=True)
        if self.text.startswith(("{", "("), self.at):
            body = self._group("}" if self.text[self.at] == "{" else ")")
            return None if body is None else Function(name, (body,))
        return None

    def _case(self) -> Node:
        self.at += len("case")
        self._skip()
        subject = self._word() or ()
        self._skip(newlines=True)
        if self._keyword() == "in":
            self.at += 2
        branches: list[tuple[tuple[str, ...], Script]] = []
        while self.at < len(self.text):
            self._skip(newlines=True)
            if self._keyword() == "esac":
                self.at += 4
                break
            end = self.text.find(")", self.at + (1 if self.text.startswith("(", self.at) else 0))
            if end < 0:
                self.at = len(self.text)
                break
            patterns = self.text[self.at : end].lstrip("(")
            self.at = end + 1
            body = self.script((";;", ";;&", ";&", "esac"))
            for operator in (";;&", ";;", ";&"):
                if self.text.startswith(operator, self.at):
                    self.at += len(operator)
                    break
            branches.append((tuple(one.strip().strip("'\"") for one in patterns.split("|")), body))
        return Case(subject, tuple(branches))

    def _loop(self) -> Node | None:
        self.at += len(self._keyword() or "")
        self._skip()
        if self.text.startswith("((", self.at):
            self._skip_arithmetic()
            return None
        name = _NAME.match(self.text, self.at)
        self.at = name.end() if name else self.at
        self._skip(newlines=True)
        values: list[Word] = []
        if self._keyword() == "in":
            self.at += 2
            while (word := self._next_word()) is not None:
                values.append(word)
        self._skip(newlines=True)
        if self.text.startswith(";", self.at):
            self.at += 1
            self._skip(newlines=True)
        if self._keyword() == "do":
            self.at += 2
        body = self.script(("done",))
        if self._keyword() == "done":
            self.at += 4
        redirects = self._redirects()
        loop = Loop(name[0] if name else "", tuple(values), body)
        return Group((loop,), redirects=redirects) if redirects else loop

    def _command(self) -> Node | None:
        words: list[Word] = []
        assignments: list[tuple[str, Word]] = []
        redirects: list[Redirect] = []
        while True:
            self._skip()
            if (redirect := self._redirect()) is not None:
                redirects.append(redirect)
                continue
            if not words and (name := _ASSIGNMENT.match(self.text, self.at)):
                self.at = name.end()
                if self.text.startswith("(", self.at):
                    array = self._group(")")
                    values = array.body if isinstance(array, Group) else ()
                    given = [word for node in values if isinstance(node, Command) for word in node.words]
                    assignments.append((name[1], tuple(part for word in given for part in (*word, " "))[:-1]))
                else:
                    assignments.append((name[1], self._word() or ()))
                continue
            word = self._word()
            if word is None:
                break
            words.append(word)
            if len(words) == 1 and not assignments and not redirects and self._begins_function():
                return self._function("".join(part for part in word if isinstance(part, str)))
        return (
            Command(tuple(words), tuple(assignments), tuple(redirects)) if words or assignments or redirects else None
        )

    def _begins_function(self) -> bool:
        return _BRACKETS.match(self.text, self.at) is not None

    # --- words ---

    def _next_word(self) -> Word | None:
        self._skip()
        return self._word()

    def _word(self) -> Word | None:
        """The word that begins here; None: none does."""
        parts: list[str | Variable | Substitution] = []
        found = False
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in " \t\n;&|)" or (char in "<>" and not self.text.startswith(("<(", ">("), self.at)):
                break
            if char == "(":
                break
            found = True
            if char == "\\":
                parts.append(self.text[self.at + 1 : self.at + 2])
                self.at += 2
            elif char == "'":
                parts.append(self._single())
            elif char == '"':
                self.at += 1
                parts += self._double('"')
            elif char in "$`" or char in "<>":
                parts.append(self._expansion(quoted=False))
            elif plain := _PLAIN.match(self.text, self.at):
                parts.append(plain[0])
                self.at = plain.end()
            else:
                parts.append(char)
                self.at += 1
        return _joined(parts) if found else None

    def _single(self) -> str:
        end = self.text.find("'", self.at + 1)
        end = len(self.text) if end < 0 else end
        said = self.text[self.at + 1 : end]
        self.at = end + 1
        return said

    def _double(self, end: str) -> list[str | Variable | Substitution]:
        parts: list[str | Variable | Substitution] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == end:
                self.at += 1
                break
            if char == "\\" and self.text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\"):
                parts.append(self.text[self.at + 1])
                self.at += 2
            elif char in "$`":
                parts.append(self._expansion(quoted=True))
            else:
                parts.append(char)
                self.at += 1
        return parts

    def _expansion(self, *, quoted: bool) -> str | Variable | Substitution:
        text, at = self.text, self.at
        if text.startswith("$((", at):
            self._skip_arithmetic()
            return "0"
        if text.startswith(("$(", "<(", ">("), at):
            return self._substitution(at + 2, self._matching(at + 1), quoted)
        if text[at] == "`":
            end = at + 1
            while end < len(text) and text[end] != "`":
                end += 2 if text[end] == "\\" else 1
            inner = text[at + 1 : end].replace("\\`", "`").replace("\\$", "$")
            self.at = end + 1
            return Substitution(self._inner(inner), text[at : end + 1], quoted)
        if text.startswith("$'", at) and not quoted:
            return self._ansi()
        if text.startswith('$"', at) and not quoted:
            self.at += 1
            return ""
        if text.startswith("${", at):
            return self._braced(quoted)
        if name := _NAME.match(text, at + 1):
            self.at = name.end()
            return Variable(name[0], None, quoted)
        if at + 1 < len(text) and text[at + 1] in "0123456789@*#?$!-":
            self.at += 2
            return Variable(text[at + 1], None, quoted and text[at + 1] not in "@*")
        self.at += 1
        return "$"

    def _braced(self, quoted: bool) -> str | Variable:
        end = self._closing_brace(self.at + 2)
        inner = self.text[self.at + 2 : end]
        self.at = end + 1
        name = _NAME.match(inner) or re.match(r"[0-9@*]", inner)
        if name is None:
            return f"${{{inner}}}"
        rest = inner[name.end() :]
        if rest in ("[@]", "[*]") or name[0] in "@*":
            return Variable(name[0])  # several words, even in quotes
        default = re.match(r":?[-=]", rest)
        if default is None:
            return Variable(name[0], None, quoted)
        parser = _Parser(rest[default.end() :], self.nesting + 1)
        return Variable(name[0], _joined(parser._double("")) if self.nesting < MAX_NESTING else (), quoted)

    def _closing_brace(self, at: int) -> int:
        depth = 1
        while at < len(self.text):
            char = self.text[at]
            if char == "\\":
                at += 1
            elif char == "{":
                depth += 1
            elif char == "}":
                depth -= 1
                if depth == 0:
                    return at
            at += 1
        return len(self.text)

    def _ansi(self) -> str:
        said: list[str] = []
        self.at += 2
        while self.at < len(self.text) and self.text[self.at] != "'":
            if self.text[self.at] == "\\" and (coded := _CODED.match(self.text, self.at)):
                code = coded[1]
                if code[0] in "xu" and len(code) > 1:
                    said.append(chr(int(code[1:], 16)))
                elif code[0] in "01234567":
                    said.append(chr(int(code, 8) & 0xFF))
                else:
                    said.append(_ESCAPES.get(code, code))
                self.at = coded.end()
            else:
                said.append(self.text[self.at])
                self.at += 1
        self.at += 1
        return "".join(said)

    def _substitution(self, begin: int, end: int, quoted: bool) -> Substitution:
        text = self.text[begin - 2 : end + 1]
        inner = self.text[begin:end]
        self.at = end + 1
        return Substitution(self._inner(inner), text, quoted)

    def _inner(self, text: str) -> Script:
        if self.nesting >= MAX_NESTING:
            return ()
        return _Parser(text, self.nesting + 1).script(())

    def _inner_parts(self, text: str) -> Script:
        """The commands of the substitutions in a test."""
        if self.nesting >= MAX_NESTING:
            return ()
        parts = _Parser(text, self.nesting + 1)._double("")
        return tuple(node for part in parts if isinstance(part, Substitution) for node in part.body)

    def _matching(self, at: int) -> int:
        """Where the parenthesis that opens there is closed, or the end of the text."""
        depth, text = 0, self.text
        while at < len(text):
            char = text[at]
            if char == "\\":
                at += 1
            elif char == "'":
                end = text.find("'", at + 1)
                at = len(text) if end < 0 else end
            elif char == '"':
                at = self._past_double(at + 1)
            elif char == "(":
                depth += 1
            elif char == ")":
                depth -= 1
                if depth == 0:
                    return at
            at += 1
        return len(text)

    def _past_double(self, at: int) -> int:
        while at < len(self.text) and self.text[at] != '"':
            if self.text.startswith("$(", at):
                at = self._matching(at + 1)
            at += 2 if self.text.startswith("\\", at) else 1
        return at

    def _skip_arithmetic(self) -> None:
        begin = self.at + (1 if self.text.startswith("$", self.at) else 0)
        self.at = min(len(self.text), self._matching(begin) + 1)

    # --- redirections ---

    def _redirects(self) -> tuple[Redirect, ...]:
        found: list[Redirect] = []
        while True:
            self._skip()
            redirect = self._redirect()
            if redirect is None:
                return tuple(found)
            found.append(redirect)

    def _redirect(self) -> Redirect | None:
        operator = _REDIRECT.match(self.text, self.at)
        if operator is None or self.text.startswith(("<(", ">("), operator.start(1)):
            return None
        self.at = operator.end()
        if operator[1] in ("<<", "<<-"):
            self._skip()
            begin = self.at
            end = "".join(part for part in self._word() or () if isinstance(part, str))
            is_literal = any(mark in self.text[begin : self.at] for mark in "'\"\\")
            return Redirect("<<", self._document(end, operator[1] == "<<-", is_literal))
        return Redirect(operator[1], self._next_word() or ())

    def _document(self, end: str, indented: bool, is_literal: bool) -> Word:
        """Cut the text of a here-document, which begins with the next line, out of what is left to read."""
        begin = self.text.find("\n", self.at)
        if begin < 0:
            return ()
        lines: list[str] = []
        at = begin + 1
        while at < len(self.text):
            stop = self.text.find("\n", at)
            line = self.text[at : len(self.text) if stop < 0 else stop]
            at = len(self.text) if stop < 0 else stop + 1
            if (line.lstrip("\t") if indented else line).rstrip() == end:
                break
            lines.append(line)
        said = "\n".join(lines)
        self.text = self.text[: begin + 1] + self.text[at:]
        if is_literal or self.nesting >= MAX_NESTING:
            return (said,)
        return _joined(_Parser(said, self.nesting + 1)._double(""))

    # --- between words ---

    def _skip(self, *, newlines: bool = False) -> None:
        blanks = " \t\n" if newlines else " \t"
        while self.at < len(self.text):
            if self.text[self.at] in blanks:
                self.at += 1
            elif self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return

    def _operator(self) -> str | None:
        self._skip()
        return next((one for one in _OPERATORS if self.text.startswith(one, self.at)), None)

    def _keyword(self) -> str | None:
        """The plain word that begins here, if it ends where a keyword would."""
        match = _KEYWORD.match(self.text, self.at)
        return match[1] if match else None

    def _at_end(self, ends: Sequence[str]) -> bool:
        return any(
            self._keyword() == end if end[0].isalpha() or end == "}" else self.text.startswith(end, self.at)
            for end in ends
        )


def _joined(parts: Sequence[str | Variable | Substitution]) -> Word:
    """The same with neighbouring texts in one."""
    joined: list[str | Variable | Substitution] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        else:
            joined.append(part)
    return tuple(joined)
