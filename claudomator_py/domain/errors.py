"""A problem in a document: what is wrong, where, and what to do about it."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from claudomator_py.values import regex

Path = tuple[str | int, ...]
Lines = Mapping[Path, int]

_SHOWN = 60
_NAMED = 50
_FEW = 5
"""So many names are listed where there can be any number, such as of tasks."""
LIST_OF_SPECIALISTS = "claudomator specialists list"
"""The command that lists all of them, of whom there can be any number."""
NUMBER_OR_TEXT = "write another number, or put it in quotes if it is a text"
"""The remedy for a number that cannot be kept, where a number and a text may both be meant."""
_NEAR = 0.6
_ALMOST = 0.75
"""How alike a word with a slip of the pen is to what was meant; one below that may well mean something else."""
_STEP = regex(r"\[(\d+)\]|([^.\[\]]+)")


class Problem(BaseModel):
    """One thing wrong with a document."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    line: int | None = None
    """In the file, from 1."""
    column: int | None = None
    """In the line, from 1."""
    field: str | None = None
    """The place in the document, such as ``agent.tier`` or ``check[0]``."""
    message: str
    remedy: str | None = None
    """What to do about it."""
    document: int | None = None
    """Which of several ``---`` documents, from 1."""

    def render(self, filename: str = "") -> str:
        """Return one line: ``file:line: field: message; remedy``, without the parts that are not known."""
        place = ":".join([printable(filename)] * bool(filename) + [str(n) for n in (self.line, self.column) if n])
        parts = [part for part in (place, self.field, self.message) if part]
        text = ": ".join(parts)
        return f"{text}; {self.remedy}" if self.remedy else text

    def __str__(self) -> str:
        return self.render()


def problems_text(problems: Iterable[Problem]) -> str:
    """Return all of them in one line; empty for none."""
    return "; ".join(problem.render() for problem in problems)


def field_name(path: Path) -> str | None:
    """Return the path as people write it: ``agent.tier``, ``check[0]``; None for the whole document."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{shown(part)}" if text else shown(part)
    return text or None


def located(problem: Problem, lines: Lines, document: int | None) -> Problem:
    """Return a problem that was found once its document was a value: with the line of its field in there, and the
    document's number in its file; None: it is the only one."""
    if problem.line is not None:
        return problem
    steps = _STEP.finditer(problem.field or "")
    path = tuple(step[2] if step[1] is None else int(step[1]) for step in steps)
    return problem.model_copy(update={"line": line_of(lines, path), "document": document})


def line_of(lines: Lines, path: Path) -> int | None:
    """Return the line of the path, or of the nearest part that contains it."""
    for length in range(len(path), -1, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None


def suggestion(word: str, valid: Iterable[str]) -> str:
    """Return a remedy that names the valid word nearest to this one, or else all of them, if they are not too many to
    read."""
    words = sorted(valid)
    nearest = near(word, words)
    if nearest and (len(words) == 1 or near(word, words, alike=_ALMOST)):
        return nearest
    if len(words) == 1:
        return f"write `{words[0]}`"
    more = f", or one of {len(words) - _NAMED:,} more" if len(words) > _NAMED else ""
    named = f"one of {', '.join(words[:_NAMED])}{more}"
    if nearest:
        return f"{nearest} Else write {named}"
    return f"write {named}" if words else "remove it"


def near(word: str, valid: Iterable[str], *, alike: float = _NEAR) -> str | None:
    """Return a remedy that names the valid word nearest to this one, if one is near. alike: how much, 0 to 1."""
    nearest = _nearest(word, valid, most=1, cutoff=alike)
    return f"did you mean `{nearest[0]}`?" if nearest else None


def name_suggestion(name: str, valid: Sequence[str], listing: str | None) -> str:
    """Return a remedy as ``suggestion`` does, where there can be any number of names: only a few are named.

    listing: the command that lists them all.
    """
    if len(valid) <= _FEW or near(name, valid):
        return suggestion(name, valid)
    said = f"the names nearest to it are {', '.join(_nearest(name, valid, most=_FEW, cutoff=0))}"
    return said if listing is None else f"{said}; `{listing}` lists them all"


def _nearest(word: str, valid: Iterable[str], *, most: int, cutoff: float) -> list[str]:
    """Return the valid words that are so alike, from 0 to 1, the nearest first."""
    by_folded = {known.casefold(): known for known in valid}
    found = difflib.get_close_matches(word[:_SHOWN].casefold(), by_folded, n=most, cutoff=cutoff)
    return [by_folded[each] for each in found]


def printable(text: str) -> str:
    """Return the text with everything escaped that could break a line or speak to a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def shown(text: str) -> str:
    """Return the text as a message quotes it: printable and short."""
    return printable(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")


def ended(text: str) -> str:
    """Return the text with a full stop, unless whoever wrote its end has ended it."""
    return text if text.endswith((".", "!", "?", "\u2026")) else f"{text}."


def sentence(clause: str) -> str:
    """Return the clause as a sentence: with a capital and a full stop."""
    return ended(clause[:1].upper() + clause[1:])


ErrorStatus = Literal[
    "not_found",
    "ambiguous",
    "not_permitted",
    "conflict",
    "stale_version",
    "invalid",
    "bad_cursor",
    "gone",
    "idempotency_key_in_use",
    "idempotency_key_reused",
    "unavailable",
]


class CannotServe(Exception):
    """The daemon cannot start, or go on; the message says why and what to do."""


class ServiceError(Exception):
    """A request that was refused. Nothing was changed.

    status: the stable name of this kind of refusal. detail: what was wrong with this request. remedy: what to do next.
    problems: each fault of a document, where it was one.
    """

    status: ClassVar[ErrorStatus]
    title: ClassVar[str]

    def __init__(self, detail: str, *, remedy: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(f"{detail} {remedy}")
        self.detail = detail
        self.remedy = remedy
        self.problems = tuple(problems)


class NotFound(ServiceError):
    """There is no such task, run or agent."""

    status = "not_found"
    title = "Not found"

    @classmethod
    def among(
        cls, noun: str, ref: str, valid: Iterable[str], *, none: str | None = None, listing: str | None = None
    ) -> "NotFound":
        """Return it for a name that none of the valid ones is; the remedy suggests some.

        none: the remedy where there are none. listing: the command that lists all.
        """
        names = list(valid)
        remedy = name_suggestion(ref, names, listing) if names else none or f"there are no {noun}s yet"
        return cls(f"There is no {noun} {shown(ref)!r}.", remedy=sentence(remedy))


class Ambiguous(ServiceError):
    """A prefix of an id that more than one task has."""

    status = "ambiguous"
    title = "More than one match"


class Forbidden(ServiceError):
    """Who asks may not do this."""

    status = "not_permitted"
    title = "Not permitted"


class Conflict(ServiceError):
    """The thing is in a state that does not allow it."""

    status = "conflict"
    title = "Not possible in this state"


class StaleVersion(ServiceError):
    """The version that the caller had seen (``if_version``) is no longer the current one."""

    status = "stale_version"
    title = "Changed in the meantime"


class Invalid(ServiceError):
    """The request itself is wrong."""

    status = "invalid"
    title = "Not valid"

    @classmethod
    def of(
        cls,
        problems: Sequence[Problem],
        *,
        said: int | None = None,
        remedy: str = "Fix the listed problems and retry.",
    ) -> "Invalid":
        """Make the refusal for these problems. said: how many of them ``detail`` has; None: all."""
        return cls(problems_text(problems[:said]), remedy=remedy, problems=problems)


class BadCursor(ServiceError):
    """A cursor that was not given out for this list, or not as it is now."""

    status = "bad_cursor"
    title = "Not a cursor of this list"


class Gone(ServiceError):
    """What you asked for is no longer kept."""

    status = "gone"
    title = "No longer kept"


class KeyInUse(ServiceError):
    """The first request with this idempotency key is still in work."""

    status = "idempotency_key_in_use"
    title = "The first request is still in work"


class KeyReused(ServiceError):
    """The idempotency key names another request."""

    status = "idempotency_key_reused"
    title = "The key names another request"


class Unavailable(ServiceError):
    """The daemon cannot do it now, and may be able to later."""

    status = "unavailable"
    title = "Not available now"


def refuse(problems: Sequence[Problem]) -> None:
    """Raise Invalid for these problems; nothing where there are none."""
    if problems:
        raise Invalid.of(problems)
