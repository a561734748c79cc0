"""Evaluation of triage: decide the messages of a labelled set, and measure how many decisions are right."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from claudomator_py.domain.channel import Incoming, Member, TriageDecision, TriageReason, TriageSettings
from claudomator_py.routing.triage import triage
from claudomator_py.schema.validation import first_problem
from claudomator_py.values import dataclass

_NS_PER_MS = 1_000_000

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class MessageCase:
    """One message of the set."""

    id: str
    message: Incoming
    settings: TriageSettings
    members: tuple[Member, ...]
    primary: str | None
    """Id of the channel's primary specialist."""
    expected: TriageDecision | None = None
    """The right decision. None: not labelled."""


class TriageLatency(BaseModel, frozen=True):
    """How long decisions take in this process, in milliseconds."""

    p50: float
    p99: float


class TriageEvaluation(BaseModel, frozen=True):
    """The figures of an evaluation: shares from 0 to 1, rounded to 1e-4. None if no message is labelled."""

    messages: int
    labelled: int
    exact: float | None = None
    """Of the labelled messages, those whose decision is right in every part."""
    exact_by_reason: dict[str, float] = {}
    """The same by right reason."""
    missed_mentions: int | None = None
    """Addressed specialists who were not recognised, over all messages."""
    false_positives: int | None = None
    """Specialists who would have answered but should not, over all messages."""
    latency_ms: TriageLatency | None = None
    """None: the set is empty."""


def message_case_of(data: Mapping[str, Any]) -> MessageCase:
    """Return the case that a line describes: ``id``, ``channel``, ``participants``, ``message``, and ``expected`` as
    its label. Raises ValueError."""
    identity, channel = data.get("id"), data.get("channel")
    if not isinstance(identity, str) or not isinstance(channel, Mapping):
        raise ValueError("it needs an `id`, a `channel`, `participants` and a `message`")
    members, primary, label = data.get("participants"), channel.get("primary"), data.get("expected")
    if not isinstance(members, list):
        raise ValueError("`participants` is not a list")
    if primary is not None and not isinstance(primary, str):
        raise ValueError("`channel.primary` is not an id")
    return MessageCase(
        identity,
        _read(Incoming, data.get("message"), "message"),
        _settings(channel.get("settings") or {}),
        tuple(_read(Member, member, f"participants[{at}]") for at, member in enumerate(members)),
        primary,
        None if label is None else _read(TriageDecision, label, "expected"),
    )


def _settings(data: object) -> TriageSettings:
    """Return the channel's settings for triage; it may have others, too."""
    if isinstance(data, Mapping):
        data = {name: data[name] for name in TriageSettings.model_fields if name in data}
    return _read(TriageSettings, data, "channel.settings")


def _read(model: type[M], data: object, place: str) -> M:
    """Validate a part of the line. Raises ValueError that names its place."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problem = first_problem(model, error)
        where = f"{place}.{problem.field}" if problem.field else place
        raise ValueError(problem.model_copy(update={"field": where}).render()) from None


def evaluate_messages(
    cases: Sequence[MessageCase], clock_ns: Callable[[], int]
) -> tuple[TriageEvaluation, list[TriageDecision]]:
    """Decide each message, without a model. clock_ns: a monotonic clock in nanoseconds."""
    decisions, times = [], []
    for case in cases:
        began = clock_ns()
        decisions.append(triage(case.message, case.settings, case.members, case.primary))
        times.append((clock_ns() - began) / _NS_PER_MS)
    return _summed(cases, decisions, sorted(times)), decisions


def _summed(
    cases: Sequence[MessageCase], decisions: Sequence[TriageDecision], times: Sequence[float]
) -> TriageEvaluation:
    labelled = [
        (case.expected, decision) for case, decision in zip(cases, decisions, strict=True) if case.expected is not None
    ]
    latency = None
    if times:
        half, most = (times[min(len(times) - 1, int(share * len(times)))] for share in (0.5, 0.99))
        latency = TriageLatency(p50=round(half, 4), p99=round(most, 4))
    if not labelled:
        return TriageEvaluation(messages=len(cases), labelled=0, latency_ms=latency)
    of_reason = Counter(right.reason for right, _ in labelled)
    hits = Counter(right.reason for right, decision in labelled if decision == right)
    return TriageEvaluation(
        messages=len(cases),
        labelled=len(labelled),
        exact=round(hits.total() / len(labelled), 4),
        exact_by_reason={
            reason.value: round(hits[reason] / of_reason[reason], 4) for reason in TriageReason if of_reason[reason]
        },
        missed_mentions=sum(
            len(set(right.agents) - set(decision.agents))
            for right, decision in labelled
            if right.reason is TriageReason.DIRECT_MENTION
        ),
        false_positives=sum(len(set(decision.agents) - set(right.agents)) for right, decision in labelled),
        latency_ms=latency,
    )
