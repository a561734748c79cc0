"""What shell text is made of, as values: commands, their words, and what holds them together."""

from claudomator_py.values import dataclass


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
class SimpleCommand:
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
class CaseCommand:
    """``case subject in patterns) ...``."""

    subject: Word
    branches: tuple[tuple[tuple[str, ...], "Script"], ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """``for name in values; do ...``."""

    name: str
    values: tuple[Word, ...]
    body: "Script"


Node = SimpleCommand | Pipeline | Group | Function | CaseCommand | Loop
Script = tuple[Node, ...]
