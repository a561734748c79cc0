"""The word level of the shell parser: quotes, variables and substitutions."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final, Self

from claudomator_py.acts.shell_tree import Script, Substitution, Variable, Word
from claudomator_py.values import dataclass, regex

MAX_NESTING: Final = 30
"""Nesting of substitutions and groups; what is nested deeper is not read."""
NAME: Final = regex(r"[A-Za-z_][A-Za-z0-9_]*")
PLAIN: Final = regex(r"[^\s\\'\"$`;&|<>()#{}]+")
_CODED = regex(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|u[0-9a-fA-F]{1,4}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "", "e": "\x1b"}


@dataclass(slots=True)
class WordReader(ABC):
    """A cursor in shell text that reads words."""

    text: str
    nesting: int
    at: int = 0

    @abstractmethod
    def script(self, ends: Sequence[str]) -> Script:
        """Read commands up to, and not including, one of these words or operators, or to the end."""

    def next_word(self) -> Word | None:
        self.skip()
        return self.word()

    def word(self) -> Word | None:
        """Read the word at this position; None if there is none."""
        parts: list[str | Variable | Substitution] = []
        is_word = False
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in " \t\n;&|)" or (char in "<>" and not self.text.startswith(("<(", ">("), self.at)):
                break
            if char == "(":
                break
            is_word = True
            if char == "\\":
                parts.append(self.text[self.at + 1 : self.at + 2])
                self.at += 2
            elif char == "'":
                parts.append(self._single())
            elif char == '"':
                self.at += 1
                parts += self.double('"')
            elif char in "$`" or char in "<>":
                parts.append(self._expansion(quoted=False))
            elif plain := PLAIN.match(self.text, self.at):
                parts.append(plain[0])
                self.at = plain.end()
            else:
                parts.append(char)
                self.at += 1
        return joined(parts) if is_word else None

    def _single(self) -> str:
        end = self.text.find("'", self.at + 1)
        end = len(self.text) if end < 0 else end
        content = self.text[self.at + 1 : end]
        self.at = end + 1
        return content

    def double(self, end: str) -> list[str | Variable | Substitution]:
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
            self.skip_arithmetic()
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
        if name := NAME.match(text, at + 1):
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
        name = NAME.match(inner) or re.match(r"[0-9@*]", inner)
        if name is None:
            return f"${{{inner}}}"
        rest = inner[name.end() :]
        if rest in ("[@]", "[*]") or name[0] in "@*":
            return Variable(name[0])  # expands to several words even in quotes
        default = re.match(r":?[-=]", rest)
        if default is None:
            return Variable(name[0], None, quoted)
        parser = self._for(rest[default.end() :], self.nesting + 1)
        return Variable(name[0], joined(parser.double("")) if self.nesting < MAX_NESTING else (), quoted)

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
        pieces: list[str] = []
        self.at += 2
        while self.at < len(self.text) and self.text[self.at] != "'":
            if self.text[self.at] == "\\" and (coded := _CODED.match(self.text, self.at)):
                code = coded[1]
                if code[0] in "xu" and len(code) > 1:
                    pieces.append(chr(int(code[1:], 16)))
                elif code[0] in "01234567":
                    pieces.append(chr(int(code, 8) & 0xFF))
                else:
                    pieces.append(_ESCAPES.get(code, code))
                self.at = coded.end()
            else:
                pieces.append(self.text[self.at])
                self.at += 1
        self.at += 1
        return "".join(pieces)

    def _substitution(self, begin: int, end: int, quoted: bool) -> Substitution:
        text = self.text[begin - 2 : end + 1]
        inner = self.text[begin:end]
        self.at = end + 1
        return Substitution(self._inner(inner), text, quoted)

    def _inner(self, text: str) -> Script:
        if self.nesting >= MAX_NESTING:
            return ()
        return self._for(text, self.nesting + 1).script(())

    def inner_parts(self, text: str) -> Script:
        """Return the commands of the substitutions in a ``[[ ... ]]`` test."""
        if self.nesting >= MAX_NESTING:
            return ()
        parts = self._for(text, self.nesting + 1).double("")
        return tuple(node for part in parts if isinstance(part, Substitution) for node in part.body)

    def _matching(self, at: int) -> int:
        """Return the position of the closing parenthesis for the one at ``at``, or the end of the text."""
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

    def skip_arithmetic(self) -> None:
        begin = self.at + (1 if self.text.startswith("$", self.at) else 0)
        self.at = min(len(self.text), self._matching(begin) + 1)

    def skip(self, *, newlines: bool = False) -> None:
        blanks = " \t\n" if newlines else " \t"
        while self.at < len(self.text):
            if self.text[self.at] in blanks:
                self.at += 1
            elif self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return

    def _for(self, text: str, nesting: int) -> Self:
        return type(self)(text, nesting)


def joined(parts: Sequence[str | Variable | Substitution]) -> Word:
    """Return the parts as a word, with adjacent strings merged."""
    pieces: list[str | Variable | Substitution] = []
    for part in parts:
        if isinstance(part, str) and pieces and isinstance(pieces[-1], str):
            pieces[-1] += part
        else:
            pieces.append(part)
    return tuple(pieces)
