"""A parser for shell text that finds the commands it could run, in order. Nothing is executed.

The parser never fails. A shell would refuse what cannot be parsed, so guessing on misses nothing.
"""

from collections.abc import Sequence

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
    Word,
)
from claudomator_py.acts.shell_words import MAX_NESTING, NAME, PLAIN, WordReader, joined
from claudomator_py.values import regex

_ASSIGNMENT = regex(r"([A-Za-z_][A-Za-z0-9_]*)\+?=")
_OPERATORS = ("&&", "||", ";;&", ";;", ";&", "|&", ";", "&", "|", "\n", "(", ")")
_REDIRECT = regex(r"\d*(<<<|<<-?|<>|<&|>>|>\||>&|&>>|&>|<|>)")
_BRACKETS = regex(r"[ \t]*\([ \t]*\)")
_KEYWORD = regex(r"(\[\[|[!{}]|[a-z]+)(?=[\s;&|()<>]|\Z)")
_INTRODUCING = frozenset({"if", "then", "else", "elif", "while", "until", "do", "!", "time"})
_CLOSING = frozenset({"fi", "done", "esac", "}"})


def parse(text: str) -> Script:
    """Return the commands of the shell text as a tree."""
    return _Parser(text.replace("\\\r\n", "").replace("\\\n", "").replace("\r\n", "\n"), 0).script(())


class _Parser(WordReader):
    __slots__ = ()

    # --- commands and compounds ---

    def script(self, ends: Sequence[str]) -> Script:
        nodes: list[Node] = []
        while True:
            self.skip(newlines=True)
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
                self.at += 1  # skip a stray bracket

    def _pipeline(self, ends: Sequence[str]) -> Node | None:
        stages: list[Node] = []
        while True:
            node = self._node(ends)
            if node is not None:
                stages.append(node)
            self.skip()
            if self.text.startswith("|", self.at) and not self.text.startswith("||", self.at):
                self.at += 2 if self.text.startswith("|&", self.at) else 1
                self.skip(newlines=True)
                continue
            break
        if len(stages) > 1:
            return Pipeline(tuple(stages))
        return stages[0] if stages else None

    def _node(self, ends: Sequence[str]) -> Node | None:
        self.skip()
        while (word := self._keyword()) in _INTRODUCING:
            self.at += len(word or "")
            self.skip(newlines=word != "time")
            if word == "time" and self.text.startswith("-p ", self.at):
                self.at += 3
        if self.at >= len(self.text) or self._at_end(ends):
            return None
        if self.text.startswith("((", self.at):
            self.skip_arithmetic()
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
                self.skip()
                name = PLAIN.match(self.text, self.at)
                self.at = name.end() if name else self.at
                return self._function(name[0] if name else "")
            case "[[":
                end = self.text.find("]]", self.at)
                inner = self.text[self.at : len(self.text) if end < 0 else end + 2]
                self.at += len(inner)
                return SimpleCommand((), (("", (Substitution(self.inner_parts(inner), inner),)),))
            case word if word in _CLOSING:
                self.at += len(word or "")
                redirects = self._redirects()
                return SimpleCommand((), redirects=redirects) if redirects else None
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
        self.skip()
        if self.text.startswith("(", self.at):
            self.at += 1
            self.skip()
            self.at += 1 if self.text.startswith(")", self.at) else 0
        self.skip(newlines=True)
        if self.text.startswith(("{", "("), self.at):
            body = self._group("}" if self.text[self.at] == "{" else ")")
            return None if body is None else Function(name, (body,))
        return None

    def _case(self) -> Node:
        self.at += len("case")
        self.skip()
        subject = self.word() or ()
        self.skip(newlines=True)
        if self._keyword() == "in":
            self.at += 2
        branches: list[tuple[tuple[str, ...], Script]] = []
        while self.at < len(self.text):
            self.skip(newlines=True)
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
            branches.append((tuple(word.strip().strip("'\"") for word in patterns.split("|")), body))
        return CaseCommand(subject, tuple(branches))

    def _loop(self) -> Node | None:
        self.at += len(self._keyword() or "")
        self.skip()
        if self.text.startswith("((", self.at):
            self.skip_arithmetic()
            return None
        name = NAME.match(self.text, self.at)
        self.at = name.end() if name else self.at
        self.skip(newlines=True)
        values: list[Word] = []
        if self._keyword() == "in":
            self.at += 2
            while (word := self.next_word()) is not None:
                values.append(word)
        self.skip(newlines=True)
        if self.text.startswith(";", self.at):
            self.at += 1
            self.skip(newlines=True)
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
            self.skip()
            if (redirect := self._redirect()) is not None:
                redirects.append(redirect)
                continue
            if not words and (name := _ASSIGNMENT.match(self.text, self.at)):
                self.at = name.end()
                if self.text.startswith("(", self.at):
                    array = self._group(")")
                    values = array.body if isinstance(array, Group) else ()
                    given = [word for node in values if isinstance(node, SimpleCommand) for word in node.words]
                    assignments.append((name[1], tuple(part for word in given for part in (*word, " "))[:-1]))
                else:
                    assignments.append((name[1], self.word() or ()))
                continue
            word = self.word()
            if word is None:
                break
            words.append(word)
            if len(words) == 1 and not assignments and not redirects and _BRACKETS.match(self.text, self.at):
                return self._function("".join(part for part in word if isinstance(part, str)))
        return (
            SimpleCommand(tuple(words), tuple(assignments), tuple(redirects))
            if words or assignments or redirects
            else None
        )

    # --- redirections ---

    def _redirects(self) -> tuple[Redirect, ...]:
        redirects: list[Redirect] = []
        while True:
            self.skip()
            redirect = self._redirect()
            if redirect is None:
                return tuple(redirects)
            redirects.append(redirect)

    def _redirect(self) -> Redirect | None:
        operator = _REDIRECT.match(self.text, self.at)
        if operator is None or self.text.startswith(("<(", ">("), operator.start(1)):
            return None
        self.at = operator.end()
        if operator[1] in ("<<", "<<-"):
            self.skip()
            begin = self.at
            end = "".join(part for part in self.word() or () if isinstance(part, str))
            is_literal = any(mark in self.text[begin : self.at] for mark in "'\"\\")
            return Redirect("<<", self._document(end, operator[1] == "<<-", is_literal))
        return Redirect(operator[1], self.next_word() or ())

    def _document(self, end: str, indented: bool, is_literal: bool) -> Word:
        """Return the here-document that begins on the next line, and cut it out of the text still to be read."""
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
        body = "\n".join(lines)
        self.text = self.text[: begin + 1] + self.text[at:]
        if is_literal or self.nesting >= MAX_NESTING:
            return (body,)
        return joined(_Parser(body, self.nesting + 1).double(""))

    # --- between words ---

    def _operator(self) -> str | None:
        self.skip()
        return next((operator for operator in _OPERATORS if self.text.startswith(operator, self.at)), None)

    def _keyword(self) -> str | None:
        """Return the word at this position if it could be a keyword."""
        match = _KEYWORD.match(self.text, self.at)
        return match[1] if match else None

    def _at_end(self, ends: Sequence[str]) -> bool:
        return any(
            self._keyword() == end if end[0].isalpha() or end == "}" else self.text.startswith(end, self.at)
            for end in ends
        )


_PUNCTUATION = frozenset("();<>|&")


def is_simple(command: str) -> bool:
    """Return whether it is a single command, without redirections or substitutions. A CLI judges several commands in a
    line one by one, so a rule for the whole line would allow none of them."""
    if any(mark in command for mark in ("`", "$(", "\n", "\r")):
        return False
    import shlex  # late: a hook, which starts with every tool call, never gets here

    try:
        words = list(shlex.shlex(command, posix=True, punctuation_chars=True))
    except ValueError:
        return False
    return not any(word and set(word) <= _PUNCTUATION for word in words)
