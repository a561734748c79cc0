"""Puts block codes into words, from a code's words and its parameters, at the edge only.

``sentence`` keeps instants separate, so that the page, the command line and ``why`` can format them in their own time
zone.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from claudomator_py.domain.blocked import Blocked, Why
from claudomator_py.domain.limits import window_text
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.wording import (
    Clock,
    ConversationRef,
    Sentence,
    TaskRef,
    at,
    filled,
    instant_text,
    joined,
    said,
    worded,
)
from claudomator_py.texts import clause

_LONG = 1_000
_SOURCE = 100
_DOUBT = "the reset it named is more than 35 days away and is ignored"


def sentence(what: Blocked, *, brief: bool = False, verb: str = "is") -> Sentence:
    """Return the sentence, without a full stop. brief: only what fits into a list. verb: placed between an agent's name
    and the words."""
    words = predicate(what, brief=brief)
    agent = what.params.agent
    return words if what.code.why is not None or agent is None else (*said(f"{agent} {verb} "), *words)


def predicate(what: Blocked, *, brief: bool = False) -> Sentence:
    """Return the words; for a code that describes an agent without its name, to follow ``is`` or ``was``."""
    return filled(what.code.words, dict(_values(what, brief=brief)))


def blocked_text(what: Blocked, clock: Clock = instant_text, *, verb: str = "is") -> str:
    """Return the sentence as text, formatting each instant with ``clock``."""
    return worded(sentence(what, verb=verb), clock)


def in_brief(what: Blocked) -> Sentence | None:
    """Return the sentence for a list that has columns for the kind of obstacle and its end; None if these say
    enough."""
    if what.why is Why.LIMITED and what.until is not None:
        return None
    return sentence(what, brief=True)


def wait_of(what: Blocked | None, text: str | None) -> Sentence | None:
    """Return the sentence; without a code, the text that the daemon supplies with it."""
    if what is not None:
        return sentence(what)
    return said(text) if text else None


def brief_of(what: Blocked | None, text: str | None) -> Sentence | None:
    """Return the same for a list; see ``in_brief``."""
    return wait_of(None, text) if what is None else in_brief(what)


def hold_label(what: Blocked) -> str:
    """Return the cause of a hold as one line: its reason and where that was read."""
    params = what.params
    named = window_text(params.window) if params.window is not None else params.source
    return f"{params.reason or 'by hand'}: {named}" if named else "by hand"


def _values(what: Blocked, *, brief: bool) -> Iterator[tuple[str, Sentence]]:
    """The words for each parameter that is set."""
    params = what.params
    for name, words in _WORDS.items():
        value = getattr(params, name)
        if value is not None and value != ():
            yield name, words(value, brief)
    if limit := hold_cause(what):
        yield "limit", said(limit)
    if params.figures is not None:
        yield "unit", said(params.figures.unit)


def _line(text: str, most: int) -> str:
    line = " ".join(text.split()).rstrip(" .;,:")
    return line if len(line) <= most else f"{line[:most]}..."


def _free(value: str, brief: bool) -> Sentence:
    """Text from elsewhere, on one line and in a form that a sentence can continue after."""
    return said((clause(value) if brief else "") or _line(value, _LONG) or "-")


def _plain(value: object, _: bool) -> Sentence:
    return said(str(value))


def _agents(values: Iterable[Blocked], brief: bool) -> Sentence:
    listed = list(values)
    return joined([sentence(value, brief=brief) for value in (listed[:1] if brief else listed)], "; ")


def refs_text(values: Iterable[TaskRef]) -> str:
    """Return tasks by name, with their states."""
    return ", ".join(_ref_text(value) for value in values)


def _ref_text(ref: TaskRef) -> str:
    if ref.state is None and ref.id is not None:
        return ref.name
    return f"{ref.name} ({ref.state or 'not seen yet'})"


def _tasks(values: Iterable[TaskRef], _: bool) -> Sentence:
    return said(refs_text(values))


def _conversation(value: ConversationRef, _: bool) -> Sentence:
    return said(value.text)


def hold_cause(what: Blocked) -> str:
    """Return what causes a hold and how its end is known: ``5h window, reported``, ``by the operator: kept for the
    day``. For use where the end is shown beside it; empty if nothing is known."""
    params = what.params
    if params.provenance is None:
        return ""
    source = clause(params.source or "", _SOURCE)
    if params.reason is None:
        cause = f"by the operator{f': {source}' if source else ''}"
    else:
        named = window_text(params.window) if params.window is not None else source
        # The surrounding words already say that it is limited.
        parts = [] if params.reason is Reason.RATE_LIMITED else [params.reason.value]
        parts += [named] if named and named != params.reason else []
        cause = f"{': '.join(parts)}, {params.provenance}" if parts else params.provenance.value
    if params.family is not None and params.family not in cause:
        cause = f"{params.family} models, {cause}"
    return f"{cause}; {_DOUBT}" if params.doubted is not None else cause


_WORDS: Mapping[str, Callable[[Any, bool], Sentence]] = {
    "agent": _plain,
    "agents": _agents,
    "chosen": _plain,
    "tasks": _tasks,
    "task": _plain,
    "conversation": _conversation,
    "directory": _plain,
    "file": _plain,
    "rule": _plain,
    "organisation": _plain,
    "creator": _plain,
    "setting": _plain,
    "active": _plain,
    "slots": _plain,
    "room": _plain,
    "until": lambda value, _: at(value),
    "window": lambda value, _: said(window_text(value)),
    "figures": lambda value, _: said(value.text),
    "used": lambda value, _: said(f"{value:.0%}"),
    "share": lambda value, _: said(f"{value:.0%}"),
    "reserved": _plain,
    "doing": _plain,
    "times": _plain,
    "text": _free,
    "remedy": _free,
}
