"""The syntax tree of shell text: commands, their words, and compounds."""

from claudomator_py.values import dataclass


@dataclass(frozen=True, slots=True)
class Variable:
    """``$NAME`` or ``${NAME:-default}``. quoted: in double quotes, so that its value is not split into words."""

    name: str
    default: "Word | None" = None
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Substitution:
    """``$(...)``, `` `...` `` or ``<(...)``. text: the source."""

    body: "Script"
    text: str
    quoted: bool = False


Word = tuple[str | Variable | Substitution, ...]
"""The parts of a word, quotes removed."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirection. target: the file, or the text itself for ``<<``."""

    operator: str
    target: Word


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """A simple command. assignments: variables set for it, or for the rest of the script if it has no words."""

    words: tuple[Word, ...]
    assignments: tuple[tuple[str, Word], ...] = ()
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Stages joined by ``|``."""

    stages: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Commands in parentheses or braces, or a loop with redirections. in_subshell: changes of the folder and of
    variables end with the group."""

    body: "Script"
    in_subshell: bool = False
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class Function:
    """A function definition. The body runs where the name is called."""

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
