"""Secrets taken out of values: models, what JSON can say, and whatever of these holds texts."""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, TypeVar

from pydantic import BaseModel

from claudomator_py.core.agent import Tier
from claudomator_py.core.lifecycle import STATE_NAMES, InputKind, Phase, QueueReason, WaitReason
from claudomator_py.core.outcome import Denied, Outcome, OutcomeStatus, Provenance, Reason
from claudomator_py.core.redact import Redactor

T = TypeVar("T")

_ENUMS: tuple[type[Enum], ...] = (
    *(InputKind, OutcomeStatus, Phase, Provenance, QueueReason, Reason, Tier, WaitReason),
)
_CODES = frozenset({code.value for enum in _ENUMS for code in enum} | set(STATE_NAMES.values()))
"""Words that programs act on, and everybody knows: they stay, whatever is a secret, so that no variable of a task can
make what is stored unreadable."""

_SAID = ("text", "detail", "question", "limit", "family", "near_limit")


def clean(value: T, redactor: Redactor) -> T:
    """The value without secrets in its texts. Codes, names of fields and keys of mappings stay as they are.

    A model is copied, and not validated. The value itself is returned if there is nothing to take out.
    """
    # One look at all of it: most values are clean, and many small texts cost more than one of their size.
    if not redactor.finds("\0".join(_texts(value))):
        return value
    cleaned: T = _replaced(value, redactor.redact_cut)
    return cleaned


def without_secrets(outcome: Outcome, redactor: Redactor) -> Outcome:
    """All that an agent said and did, for people to read; parts of secrets at the ends of its words are none either.

    What programs act on must hold no secret, so it is dropped if it does: a conversation's name, and a rule that would
    name one on a command line.
    """

    def said(text: str | None) -> str | None:
        return None if text is None else redactor.redact_piece(text)

    def exact(text: str | None) -> str | None:
        return None if text is None or redactor.finds(text) else text

    changes: dict[str, object] = {name: said(getattr(outcome, name)) for name in _SAID}
    changes["conversation_id"] = exact(outcome.conversation_id)
    changes["windows"] = {redactor.redact(name): clean(use, redactor) for name, use in outcome.windows.items()}
    changes["denied"] = tuple(
        Denied(tool=redactor.redact(one.tool), input=redactor.redact_piece(one.input), rule=exact(one.rule))
        for one in outcome.denied
    )
    return outcome.model_copy(update=changes)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        if not isinstance(value, Enum) and value not in _CODES:
            yield value
    elif isinstance(value, BaseModel):
        for part in value.__dict__.values():
            yield from _texts(part)
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from _texts(part)


def _replaced(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return value if isinstance(value, Enum) or value in _CODES else redact(value)
    if isinstance(value, BaseModel):
        parts = {name: (part, _replaced(part, redact)) for name, part in value.__dict__.items()}
        changed = {name: after for name, (before, after) in parts.items() if after is not before}
        return value.model_copy(update=changed) if changed else value
    if isinstance(value, Mapping):
        return {key: _replaced(part, redact) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return type(value)(_replaced(part, redact) for part in value)
    return value
