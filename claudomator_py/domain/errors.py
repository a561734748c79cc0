"""A problem in a document: what is wrong, where, and what to do about it."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import BaseModel

from claudomator_py.texts import cut
from claudomator_py.values import regex

Path = tuple[str | int, ...]
Lines = Mapping[Path, int]

_SHOWN = 60
_NAMED = 50
_FEW = 5
"""How many names are listed where there can be any number, such as names of tasks."""
LIST_OF_SPECIALISTS = "claudomator specialists list"
"""The command that lists all specialists, of which there can be any number."""
NUMBER_OR_TEXT = "write another number, or put it in quotes if it is a text"
"""The remedy for a number that is not accepted where either a number or a text may be meant."""
_NEAR = 0.6
_ALMOST = 0.75
"""Similarity above which a word counts as a slip of the pen; a word below may well mean something else."""
_STEP = regex(r"\[(\d+)\]|([^.\[\]]+)")


class Problem(BaseModel, frozen=True, extra="forbid"):
    """One thing wrong with a document."""

    line: int | None = None
    """Line in the file, starting at 1."""
    column: int | None = None
    """Column in the line, starting at 1."""
    field: str | None = None
    """The place in the document, such as ``agent.tier`` or ``check[0]``."""
    message: str
    remedy: str | None = None
    """What to do about it."""
    document: int | None = None
    """Number of the document among several separated by ``---``, starting at 1."""

    def render(self, filename: str = "") -> str:
        """Return one line: ``file:line: field: message; remedy``, omitting unknown parts."""
        place = ":".join([printable(filename)] * bool(filename) + [str(n) for n in (self.line, self.column) if n])
        parts = [part for part in (place, self.field, self.message) if part]
        text = ": ".join(parts)
        return f"{text}; {self.remedy}" if self.remedy else text

    def __str__(self) -> str:
        return self.render()


def problems_text(problems: Iterable[Problem]) -> str:
    """Return all problems in one line; empty for none."""
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
    """Return a problem that was found after parsing, with the line of its field and the number of its document.
    document: None if it is the only one in the file."""
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


class InvalidText(ValueError):
    """A text cannot be read as what it should be. The message says why; remedy: what to write instead."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


def suggestion(word: str, valid: Iterable[str]) -> str:
    """Return a remedy that names the valid word closest to this one, or otherwise all of them if they are not too many
    to read."""
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
    """Return a remedy that names the valid word closest to this one, if any is close enough. alike: minimum similarity,
    0 to 1."""
    nearest = _nearest(word, valid, most=1, cutoff=alike)
    return f"did you mean `{nearest[0]}`?" if nearest else None


def name_suggestion(name: str, valid: Sequence[str], listing: str | None) -> str:
    """Return a remedy like ``suggestion``, but for names of which there can be any number: only a few are listed.
    listing: the command that lists them all."""
    if len(valid) <= _FEW or near(name, valid, alike=_ALMOST):
        return suggestion(name, valid)
    hint = f"the names nearest to it are {', '.join(_nearest(name, valid, most=_FEW, cutoff=0))}"
    return hint if listing is None else f"{hint}; `{listing}` lists them all"


def _nearest(word: str, valid: Iterable[str], *, most: int, cutoff: float) -> list[str]:
    """The valid words with at least this similarity, from 0 to 1, closest first."""
    by_folded = {known.casefold(): known for known in valid}
    matches = difflib.get_close_matches(word[:_SHOWN].casefold(), by_folded, n=most, cutoff=cutoff)
    return [by_folded[each] for each in matches]


def printable(text: str) -> str:
    """Return the text with everything escaped that could break a line or control a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def shown(text: str) -> str:
    """Return the text as quoted in messages: printable and short."""
    return printable(cut(text, _SHOWN))


def ended(text: str) -> str:
    """Return the text with a full stop, unless it already ends a sentence."""
    return text if text.endswith((".", "!", "?", "\u2026")) else f"{text}."


def sentence(clause: str) -> str:
    """Return the clause as a sentence: with a capital and a full stop."""
    return ended(clause[:1].upper() + clause[1:])


def clause(sentence: str) -> str:
    """Return the sentence as a clause: without its capital and its full stop."""
    return sentence[:1].lower() + sentence[1:].removesuffix(".")


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
    """The daemon cannot start or continue; the message says why and what to do."""


class ServiceError(Exception):
    """A request was refused. Nothing was changed.

    status: the stable name of this kind of refusal. detail: what was wrong with this request. remedy: what to do next.
    problems: every problem of a document, if the request contained one.
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
        """Return the refusal of a name that is not among the valid ones; the remedy suggests some. none: the remedy if
        there are none. listing: the command that lists all."""
        names = list(valid)
        remedy = name_suggestion(ref, names, listing) if names else none or f"there are no {noun}s yet"
        return cls(f"There is no {noun} {shown(ref)!r}.", remedy=sentence(remedy))


class Ambiguous(ServiceError):
    """A prefix of an id matches more than one task."""

    status = "ambiguous"
    title = "More than one match"


class Forbidden(ServiceError):
    """The caller may not do this."""

    status = "not_permitted"
    title = "Not permitted"


class Conflict(ServiceError):
    """The state of the resource does not allow it."""

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
        listed: int | None = None,
        remedy: str = "Fix the listed problems and retry.",
    ) -> "Invalid":
        """Make the refusal for these problems. listed: how many of them ``detail`` includes; None for all."""
        return cls(problems_text(problems[:listed]), remedy=remedy, problems=problems)


class BadCursor(ServiceError):
    """A cursor that was not issued for this list, or not for its current form."""

    status = "bad_cursor"
    title = "Not a cursor of this list"


class Gone(ServiceError):
    """The requested data is no longer kept."""

    status = "gone"
    title = "No longer kept"


class KeyInUse(ServiceError):
    """The first request with this idempotency key is still being processed."""

    status = "idempotency_key_in_use"
    title = "The first request is still in work"


class KeyReused(ServiceError):
    """The idempotency key belongs to another request."""

    status = "idempotency_key_reused"
    title = "The key names another request"


class Unavailable(ServiceError):
    """The daemon cannot do this now, but may be able to later."""

    status = "unavailable"
    title = "Not available now"


def refuse(problems: Sequence[Problem]) -> None:
    """Raise Invalid for these problems, if there are any."""
    if problems:
        raise Invalid.of(problems)
