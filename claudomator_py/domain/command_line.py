"""Commands written as text, one per line, split into words and unquoted as in a POSIX shell. Any other shell feature is
refused, since without a shell it would silently mean something else.

Source of the grammar: POSIX.1-2024, Shell Command Language, 2.2 (quoting), 2.3 (tokens), 2.4 (reserved words), 2.6
(word expansions). Brace expansion and ``[[`` come from bash; people expect them as well.
"""

import json
import re
from itertools import pairwise
from typing import Final, cast

from claudomator_py.domain.errors import InvalidText, shown
from claudomator_py.values import dataclass, regex

_MAX_REMEDY_LENGTH: Final = 400
_QUOTED: Final = "\0"
"""Stands for a quoted character, so that it is not taken for shell syntax."""

_TOKEN: Final = regex(
    r"""\\\r?\n(?P<continued>)
      | (?P<newline>\r?\n)
      | (?P<blank>[ \t\r\f\v]+)
      | '(?P<single>[^']*)'
      | "(?P<double>(?:[^"\\]|\\.)*)"
      | \\(?P<escaped>.)
      | (?P<plain>[^ \t\r\n\f\v'"\\]+)
      | (?P<open>.)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED_IN_DOUBLE: Final = regex(r'\\([$`"\\]|\n)')
_COMMENT: Final = regex(r"#[^\n]*")

_EXPANSION: Final = regex(r"\$[A-Za-z0-9_{(@*#?$!\0-]|`")
_SIGNS: Final = (
    regex(r"[;&|<>()]"),  # lists, pipes, redirections, subshells
    _EXPANSION,
    regex(r"[*?]"),  # file name patterns
    # Brackets are patterns, too, except those that a shell leaves alone if no such file exists: ``.[dev]``,
    # ``test[1]``.
    regex(r"(?:^|/)\[[^]].*\]|\[[!^]|\[[^]]*\w-\w[^]]*\]|^[^.\[][^\[]*\[[^]]+\][^]\[]"),
    regex(r"\{[^{}]*(?:,|\.\.)[^{}]*\}"),  # braces
    regex(r"^~[\w.+-]*(?:/|$)"),  # home directories
    regex(r"^#"),  # a comment after a command
)
_ODD: Final = regex("[\u2018-\u201f]|^[\u2012-\u2015\u2212]")
_ODD_BLANK: Final = regex("[\u00a0\u2007\u202f\u3000]")
"""What word processors substitute for a quote, for an option's hyphen and for the space after a program."""
_ASSIGNMENT: Final = regex(r"[A-Za-z_][A-Za-z0-9_]*\+?=")

RESERVED_WORDS: Final = frozenset[str]().union(
    ("!", "{", "}", "[[", "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac"),
    ("select", "function", "coproc"),
)
BUILTINS: Final = frozenset[str]().union(
    (".", ":", "alias", "bg", "break", "builtin", "cd", "command", "continue", "declare", "dirs", "disown", "enable"),
    ("eval", "exec", "exit", "export", "fc", "fg", "getopts", "hash", "jobs", "let", "local", "popd", "pushd", "read"),
    ("readonly", "return", "set", "shift", "shopt", "source", "times", "trap", "type", "typeset", "ulimit"),
    ("umask", "unalias", "unset", "wait"),
)
"""Commands that only a shell has, or that only affect the shell that runs them."""
SHELLS: Final = frozenset({"ash", "bash", "dash", "fish", "ksh", "mksh", "sh", "zsh"})


class BadCommand(InvalidText):
    """The text cannot be run without a shell."""


@dataclass(slots=True)
class _Word:
    """A word. bare: the word with ``_QUOTED`` in place of quoted text. expands: True if a shell would expand something
    between its double quotes."""

    text: str = ""
    bare: str = ""
    expands: bool = False

    def add(self, text: str, *, quoted: bool) -> None:
        self.text += text
        self.bare += _QUOTED * (len(text) + 1) if quoted else text


@dataclass(slots=True)
class _Command:
    """The words of one command, and the range of the text that they come from."""

    words: list[_Word]
    begin: int
    end: int


def commands_in(text: str) -> tuple[str, ...]:
    """Return the commands in the text, one per line, without blank lines and comments. A backslash at the end of a
    line, or an open quote, continues the command on the next line. Raises BadCommand."""
    return tuple(text[command.begin : command.end] for command in _commands(text))


def words_of(text: str, *, listed: bool = False) -> list[str]:
    """Return the words of the text, which is a single command. Raises BadCommand. listed: the command is an item in a
    list of commands, and so is the suggested remedy."""
    commands = _commands(text)
    if not commands:
        raise BadCommand("contains no command", "write the program to run and its arguments")
    if len(commands) > 1:
        raise BadCommand("runs over several lines, and each is a command of its own", f"write {in_shell(text, listed)}")
    words = commands[0].words
    first = words[0]
    if first.bare in RESERVED_WORDS | BUILTINS:
        raise _needs_shell(text, first, listed)
    if assignment := _ASSIGNMENT.match(first.bare):
        message = f"begins with `{shown(assignment[0])}`, which only a shell understands"
        raise BadCommand(message, f"set it under `env`, or write {in_shell(text, listed)}")
    if first.bare.startswith("!"):
        raise _needs_shell(text, first, listed)
    for word in words:
        if odd := _ODD.search(word.bare) or (word is first and _ODD_BLANK.search(word.bare)):
            message = f"`{shown(word.text)}` has U+{ord(odd[0]):04X}, which looks like a sign of a command and is none"
            raise BadCommand(message, "write a plain blank, quote or hyphen, or put it in single quotes if it is meant")
    if first.bare.startswith("-"):
        message = f"begins with `{shown(first.text)}`, which is no program"
        raise BadCommand(message, "begin it with the program, or write program and arguments as a list of its own")
    shell_inside = any(_is_shell(word.text, other.text) for word, other in pairwise(words))
    for word in words:
        if (word.expands and not shell_inside) or _has_sign(word.bare):
            raise _needs_shell(text, word, listed)
    return [word.text for word in words]


def in_shell(text: str, listed: bool = False) -> str:
    """Return the text as a command for a shell; several lines stop at the first one that fails."""
    script = text.strip()
    if len([line for line in script.splitlines() if line.strip()]) > 1:
        script = f"set -e\n{script}"
    quoted = json.dumps(script if len(script) <= _MAX_REMEDY_LENGTH else "...", ensure_ascii=False)
    return f"[sh, -c, {quoted}] as a list item" if listed else f"[sh, -c, {quoted}]"


def _needs_shell(text: str, word: _Word, listed: bool) -> BadCommand:
    message = f"`{shown(word.text)}` needs a shell, and none is used here"
    remedy = f"write {in_shell(text, listed)}"
    literal = word.bare not in RESERVED_WORDS | BUILTINS and not _SIGNS[0].fullmatch(word.bare[:1])
    return BadCommand(message, f"{remedy}, or put what is meant literally in single quotes" if literal else remedy)


def _has_sign(bare: str) -> bool:
    return bare != "[" and any(sign.search(bare) for sign in _SIGNS)


def _is_shell(program: str, option: str) -> bool:
    """True for words such as ``bash -c``: that shell then expands what follows, as intended."""
    return program.rpartition("/")[2] in SHELLS and option.startswith("-") and "c" in option


def _commands(text: str) -> list[_Command]:
    """The commands in the text. Raises BadCommand if a quote is never closed."""
    commands: list[_Command] = []
    words: list[_Word] = []
    word: _Word | None = None
    begin = end = place = 0
    while place < len(text):
        if word is None and (comment := _COMMENT.match(text, place)):
            if words:
                words.append(_Word(comment[0], comment[0]))
                end = comment.end()
            place = comment.end()
            continue
        token = cast("re.Match[str]", _TOKEN.match(text, place))  # its last alternative matches any character
        place = token.end()
        kind = token.lastgroup
        if kind in ("newline", "blank"):
            word = None
            if kind == "newline" and words:
                commands.append(_Command(words, begin, end))
                words = []
            continue
        if kind == "continued":
            continue
        if kind == "open":
            why = "it ends with a backslash" if token[0] == "\\" else "a quote is never closed"
            raise BadCommand(f"cannot be split into words: {why}", "correct it, or write a list")
        if word is None:
            if not words:
                begin = token.start()
            word = _Word()
            words.append(word)
        end = place
        _extend(word, token)
    if words:
        commands.append(_Command(words, begin, end))
    return commands


def _extend(word: _Word, token: re.Match[str]) -> None:
    """Add the token to the word."""
    match token.lastgroup:
        case "plain":
            word.add(token[0], quoted=False)
        case "double":
            quoted = token["double"]
            word.expands |= _EXPANSION.search(re.sub(r"\\.", _QUOTED, quoted, flags=re.DOTALL)) is not None
            word.add(_ESCAPED_IN_DOUBLE.sub(lambda escaped: escaped[1].strip("\n"), quoted), quoted=True)
        case kind:
            word.add(token[str(kind)], quoted=True)
