"""How good triage is: a labelled set of messages, the decisions that are made on it, and how many of them are right."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from claudomator_py.domain.triage import Incoming, Member, TriageDecision, TriageReason, TriageSettings
from claudomator_py.routing.triage import triage

_NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class MessageCase:
    """One message of the set."""

    id: str
    message: Incoming
    settings: TriageSettings
    members: tuple[Member, ...]
    primary: str | None
    """Id of the channel's primary."""
    expected: TriageDecision | None = None
    """What would be right; None: it has no label."""


class TriageLatency(BaseModel):
    """How long decisions take, in milliseconds of this process."""

    model_config = ConfigDict(frozen=True)

    p50: float
    p99: float


class TriageEvaluation(BaseModel):
    """What came of it: shares of 0 to 1, rounded to 1e-4; None where no message has a label."""

    model_config = ConfigDict(frozen=True)

    messages: int
    labelled: int
    exact: float | None = None
    """Of the labelled messages, those where all that is decided is right."""
    exact_by_reason: dict[str, float] = {}
    """The same, by the reason that would be right."""
    missed_mentions: int | None = None
    """How often somebody who is addressed was not found."""
    false_positives: int | None = None
    """How often somebody was to answer who should not."""
    latency_ms: TriageLatency | None = None
    """None: the set is empty."""


def message_case_of(data: Mapping[str, Any]) -> MessageCase:
    """The case that a line of a set describes: ``id``, ``channel``, ``participants``, ``message``, and ``expected`` as
    its label. Raises ValueError."""
    identity, channel = data.get("id"), data.get("channel")
    if not isinstance(identity, str) or not isinstance(channel, Mapping):
        raise ValueError("it needs an `id`, a `channel`, `participants` and a `message`")
    members, primary, label = data.get("participants"), channel.get("primary"), data.get("expected")
    if not isinstance(members, list):
        raise ValueError("`participants` is not a list")
    if primary is not None and not isinstance(primary, str):
        raise ValueError("`channel.primary` is not an id")
    try:
        return MessageCase(
            identity,
            Incoming.model_validate(data.get("message")),
            _settings(channel.get("settings") or {}),
            tuple(map(Member.model_validate, members)),
            primary,
            None if label is None else TriageDecision.model_validate(label),
        )
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where}: {first['msg']}" if where else first["msg"]) from None


def _settings(data: Mapping[str, Any]) -> TriageSettings:
    """What the line says of who answers; its channel may have other settings too."""
    return TriageSettings.model_validate({name: data[name] for name in TriageSettings.model_fields if name in data})


def evaluate_messages(
    cases: Sequence[MessageCase], clock_ns: Callable[[], int]
) -> tuple[TriageEvaluation, list[TriageDecision]]:
    """Decide about each message, without a model. clock_ns: time that passes, in nanoseconds."""
    decisions, times = [], []
    for case in cases:
        began = clock_ns()
        decisions.append(triage(case.message, case.settings, case.members, case.primary))
        times.append((clock_ns() - began) / _NS_PER_MS)
    return _summed(cases, decisions, sorted(times)), decisions


def _summed(
    cases: Sequence[MessageCase], decisions: Sequence[TriageDecision], times: Sequence[float]
) -> TriageEvaluation:
    labelled = [(case.expected, one) for case, one in zip(cases, decisions, strict=True) if case.expected is not None]
    latency = None
    if times:
        half, most = (times[min(len(times) - 1, int(share * len(times)))] for share in (0.5, 0.99))
        latency = TriageLatency(p50=round(half, 4), p99=round(most, 4))
    if not labelled:
        return TriageEvaluation(messages=len(cases), labelled=0, latency_ms=latency)
    of_reason = Counter(right.reason for right, _ in labelled)
    hits = Counter(right.reason for right, one in labelled if one == right)
    return TriageEvaluation(
        messages=len(cases),
        labelled=len(labelled),
        exact=round(hits.total() / len(labelled), 4),
        exact_by_reason={
            reason.value: round(hits[reason] / of_reason[reason], 4) for reason in TriageReason if of_reason[reason]
        },
        missed_mentions=sum(len(set(right.agents) - set(one.agents)) for right, one in labelled if _mentions(right)),
        false_positives=sum(len(set(one.agents) - set(right.agents)) for right, one in labelled),
        latency_ms=latency,
    )


def _mentions(right: TriageDecision) -> bool:
    return right.reason is TriageReason.DIRECT_MENTION
