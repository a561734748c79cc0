"""Find commands in text written for people: in code blocks and spans, after a shell prompt, and in running text."""

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import Final

from claudomator_py.acts import Reach
from claudomator_py.acts.catalogue import catalogue, without_version
from claudomator_py.acts.pattern import UNKNOWN, Place
from claudomator_py.acts.reading import acts
from claudomator_py.acts.walk import Act
from claudomator_py.values import dataclass, regex

MAX_COMMANDS: Final = 200
"""Commands reported for one text."""
MAX_TEXT: Final = 20_000
"""Characters of a text that ``needed_commands`` looks at."""
MAX_NEEDED: Final = 200
"""Characters of a needed command; longer ones are left out."""
MAX_COMMANDS_NAMED: Final = 10
"""Needed commands reported for one text."""
MAX_LENGTH: Final = 2_000
"""Characters of a command in running text."""
MAX_PROGRAMS: Final = 10
"""Names of programs in a command of running text, which ends with the last of them. Each of them is read as the start
of a command too, so what stands further behind is not lost, and a crowd of names takes no more than linear time."""
_FENCE = regex(r"^[ \t]*(```+|~~~+)[^\n]*\n(?P<code>.*?)(?:^[ \t]*\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_SPAN = regex(r"(`+)(?!`)(?P<code>[^`\n]+?)\1(?!`)")
_PROMPT = regex(r"^[ \t]*(?:[\w.-]+@[\w.-]+:\S*)?[$#%][ \t]+(?P<code>\S[^\n]*)$", re.MULTILINE)
_WORD = regex(r"(?<![\w./@-])(?:\./|/(?:usr/(?:local/)?)?s?bin/)?([A-Za-z][\w.+-]*[\w+]|[A-Za-z])(?=[\s\"'`),;]|$)")
_CLAUSE_END = regex(
    r"[.!?](?=\s|$)|\n|[,:](?=\s)|[\"\u201d\u2019\u00bb)](?=\s|$|[.,;])"
    r"|\s(?:[-\u2013\u2014]|and then|then|and|or|but|und|dann|et|puis|y|e)\s"
)
_GOES_ON = regex(
    r"\s+(?:in|on|at|for|to|from|with|when|once|after|before|so|as|until|if|it|them|please|now|again|tonight"
    r"|the|an?|our|my|your|this|these|those)(?=\s|$)"
)
"""Words that continue the sentence after a command."""
_RUNNER = regex(
    r"(?<![\w./-])(?:make|just|task|rake|inv|poe|(?:npm|yarn|pnpm|bun) (?:run )?)\s*[a-z](?:[\w:-]*\w)?(?![\w./-]*\w)"
)
"""A make target or package script, even where it is not marked as code."""
_NEVER_NEEDED = frozenset({"secret", "hidden"})
_PROMPT_MARK = regex(r"^[ \t]*[$#%][ \t]+")


@dataclass(frozen=True, slots=True)
class CommandText:
    """A command in a text, as character offsets. in_code: whether it is marked as code or follows a prompt."""

    start: int
    end: int
    text: str
    in_code: bool
    acts: tuple[Act, ...]
    """What it does. Only a command in code may have none: it counts because its program is known."""


def commands_in(text: str) -> tuple[CommandText, ...]:
    """Return the commands in the text, in order. In code, a line counts if its program is known; in running text, only
    if it does something that is known."""
    commands: list[CommandText] = []
    covered = bytearray(len(text))
    for code in _in_code(text):
        if any(covered[slice(*code.span())]):
            continue
        covered[slice(*code.span())] = b"\x01" * (code.end() - code.start())
        commands += _lines(text, *code.span("code"))
    plain_words = catalogue().plain_words
    words = [word for word in _WORD.finditer(text) if word[1] not in plain_words and _is_program(word[1])]
    for word, last in zip_longest(words, words[MAX_PROGRAMS - 1 :]):
        if len(commands) >= MAX_COMMANDS:
            break
        if covered[word.start()]:
            continue
        end = min(_end_of_clause(text, word.start()), len(text) if last is None else last.end())
        does = _acts(text[word.start() : end])
        if does:
            commands.append(CommandText(word.start(), end, text[word.start() : end], False, does))
            covered[word.start() : end] = b"\x01" * (end - word.start())
    return tuple(sorted(commands, key=lambda command: command.start)[:MAX_COMMANDS])


def needed_commands(text: str) -> tuple[str, ...]:
    """Return the commands with reach "publish" that the text evidently asks for, in the form of ``Act.command``. In
    running text a command ends where the sentence continues: "run npm publish in packages/ui"."""
    text = text[:MAX_TEXT]
    acts: list[Act] = []
    commands = commands_in(text)
    for command in commands:
        acts += command.acts if command.in_code else _acts(_GOES_ON.split(command.text, maxsplit=1)[0])
    for runner in _RUNNER.finditer(text):
        if not any(command.start <= runner.start() < command.end for command in commands):
            acts += _acts(runner[0])
    never = {act.command for act in acts if act.reach is Reach.ANY or act.kind in _NEVER_NEEDED}
    lines = (act.command for act in acts if act.reach is Reach.PUBLISH and act.command not in never)
    return tuple(dict.fromkeys(line for line in lines if UNKNOWN not in line and len(line) <= MAX_NEEDED))[
        :MAX_COMMANDS_NAMED
    ]


def _in_code(text: str) -> Iterator[re.Match[str]]:
    for marked in (_FENCE, _SPAN, _PROMPT):
        yield from marked.finditer(text)


def _acts(text: str) -> tuple[Act, ...]:
    """Return what the command does. A shell's or interpreter's bare name is a mention, not a command."""
    does = acts(text, Place())
    return tuple(act for act in does if act.kind != "hidden" or " " in act.command)


def _lines(text: str, start: int, end: int) -> Iterator[CommandText]:
    """Yield the commands of a code passage: one per line; a trailing backslash joins lines."""
    at = start
    while at < end:
        stop = text.find("\n", at, end)
        stop = end if stop < 0 else stop
        while text[at:stop].endswith("\\") and stop < end:
            following = text.find("\n", stop + 1, end)
            stop = end if following < 0 else following
        line = text[at:stop]
        mark = _PROMPT_MARK.match(line)
        begin = at + (mark.end() if mark else len(line) - len(line.lstrip()))
        command = text[begin:stop].rstrip()
        word = re.match(r"(?:\w+=\S*\s+)*(?:\./|/\S*/)?([\w.+-]+)", command)
        if command and word:
            does = _acts(command)
            if does or _is_program(word[1]):
                yield CommandText(begin, begin + len(command), command, True, does)
        at = stop + 1


def _is_program(word: str) -> bool:
    known, names = catalogue(), (word, without_version(word))
    return any(name in known.patterns or name in known.wrappers or name in known.shell_options for name in names)


def _end_of_clause(text: str, start: int) -> int:
    end = _CLAUSE_END.search(text, start, start + MAX_LENGTH)
    return min(len(text), start + MAX_LENGTH) if end is None else end.start()
