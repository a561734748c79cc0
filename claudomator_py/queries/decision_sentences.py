"""A recorded decision of any kind as people read it: what was chosen, among what, why, and what would have changed it.

Nobody is named who does not exist for whoever asks.
"""

from collections.abc import Set
from dataclasses import dataclass

from claudomator_py.domain.errors import ended, sentence
from claudomator_py.domain.verdict_text import constraint_sentences
from claudomator_py.queries.concealment import SOMEBODY
from claudomator_py.queries.explain import placement_sentences, tier_text
from claudomator_py.queries.routing import LABELS, reason_for, route_view
from claudomator_py.scheduler.decision import (
    Chosen,
    DecisionKind,
    DecisionRecord,
    HandoffRecord,
    PolicyRecord,
    PolicyVerdict,
    Route,
    ShadowRecord,
    SpecialistRecord,
    TierRecord,
    TriageRecord,
    record_of,
)
from claudomator_py.store.tables import Decision

_VERDICTS = {
    PolicyVerdict.ALLOWED: "The policy allows the task",
    PolicyVerdict.DENIED: "The policy refuses the task",
    PolicyVerdict.HELD: "The policy holds the task until a person approves it",
    PolicyVerdict.APPROVED: "A person approved the task",
}


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a decision of its kind says beyond what all say; see ``ExplainedDecisionView``."""

    sentences: tuple[str, ...]
    said: tuple[tuple[str, str], ...] = ()


def explanation_of(row: Decision, seen: Set[str]) -> Explanation:
    """The decision for people. seen: the ids of specialists who exist for whoever asks."""
    match record_of(row.kind, row.data):
        case DecisionRecord() as placement:
            return _placement(placement, row.at_ms, seen)
        case TierRecord() as tier:
            return _tier(tier)
        case SpecialistRecord() as specialist:
            return _specialist(specialist, seen)
        case PolicyRecord() as policy:
            return _policy(policy)
        case HandoffRecord() as handoff:
            return _handoff(handoff, seen)
        case TriageRecord() as triage:
            return _triage(triage, seen)
        case ShadowRecord() as shadow:
            return _shadow(shadow, seen)
        case unreadable:
            return Explanation((sentence(unreadable.reason.text),))


def _placement(record: DecisionRecord, at_ms: int, seen: Set[str]) -> Explanation:
    shown = record.model_copy(update={"reason": reason_for(record.reason, seen)})
    sentences = placement_sentences("The run", shown, at_ms)
    if len(record.candidates) > 1 and not any(one.eligible for one in record.candidates if one.agent != record.agent):
        sentences.append("Another agent would have been picked only without the reason shown beside it under Agents.")
    return Explanation(tuple(sentences))


def _tier(record: TierRecord) -> Explanation:
    source = tier_text(record.classification, record.agent)
    chosen = "No tier was chosen" if record.tier is None else f"The task needs a model of tier {record.tier}"
    return Explanation((f"{chosen}: {source}.", "A task that names its own tier is not classified."))


def _specialist(record: SpecialistRecord, seen: Set[str]) -> Explanation:
    route = route_view("The task", record, seen)
    return Explanation(route.sentences or (sentence(route.reason),))


def _policy(record: PolicyRecord) -> Explanation:
    sentences = [ended(f"{_VERDICTS[record.verdict]}: {record.reason.text}")]
    if record.verdict in (PolicyVerdict.DENIED, PolicyVerdict.HELD) and record.rules:
        which = f"rule {record.rules[0]}" if len(record.rules) == 1 else f"the rules {', '.join(record.rules)}"
        sentences.append(f"Without {which}, this verdict would not stand.")
    if record.approved:
        sentences.append(f"Approved for this content: {', '.join(record.approved)}.")
    if record.approved_by is not None:
        sentences.append(f"{record.approved_by} approved it.")
    said = () if record.said is None else (("Reason for the approval", record.said),)
    return Explanation((*sentences, *constraint_sentences(record.constraints)), said=said)


def _handoff(record: HandoffRecord, seen: Set[str]) -> Explanation:
    reason = reason_for(record.reason, seen).text
    if record.route is Route.DEFAULT:
        first = ended(f"The task was handed on to whoever does what fits nobody: {reason}")
    elif record.specialist is not None:
        to = record.specialist if record.specialist in seen else SOMEBODY
        first = ended(f"The task was handed on to {to}: {reason}")
    else:
        first = ended(f"The task was not handed on: {reason}")
    had = "no specialist" if record.by is None else record.by if record.by in seen else SOMEBODY
    asked = record.asked
    wanted = (
        ("Asked for", asked.to if asked.to in seen or asked.to in LABELS else ""),
        ("Why, in the words of the agent", asked.reason),
    )
    left = (("Done", asked.done), ("Left to do", asked.left), ("Changed files", "\n".join(asked.files)))
    return Explanation(
        (
            first,
            f"Until then, it was with {had}.",
            f"It had been handed on {record.hop - record.accepted} of at most {record.max_handoffs} times before.",
        ),
        said=tuple((name, text) for name, text in (*wanted, *left) if text),
    )


def _triage(record: TriageRecord, seen: Set[str]) -> Explanation:
    who = [one if one in seen else SOMEBODY for one in record.agents]
    first = f"{', '.join(who) or 'Nobody'} {'answer' if len(who) > 1 else 'answers'}: "
    sentences = [ended(f"{first}{reason_for(record.reason, seen).text}")]
    for one, why in record.skipped.items():
        sentences.append(f"{one if one in seen else SOMEBODY} was not asked: {why.replace('_', ' ')}.")
    if record.hops:
        sentences.append(f"{record.hops} agent messages led to it.")
    return Explanation(tuple(sentences))


def _shadow(record: ShadowRecord, seen: Set[str]) -> Explanation:
    reason, actual = reason_for(record.reason, seen).text, record.actual
    if record.about is DecisionKind.PLACEMENT:
        there, here = _place(record), _place(actual)
    else:
        there, here = _way(record, seen), _way(actual, seen)
    return Explanation(
        (
            f"Under the other configuration: {there}. {sentence(reason)}",
            f"In fact: {here}." if record.differs else "That is what was decided in fact.",
            "Nothing follows from this decision.",
        )
    )


def _place(chosen: Chosen) -> str:
    if chosen.agent is None:
        return "it would have waited"
    return f"agent {chosen.agent}, tier {chosen.tier}" + (f", model {chosen.model}" if chosen.model else "")


def _way(chosen: Chosen, seen: Set[str]) -> str:
    who = None if chosen.specialist is None else chosen.specialist if chosen.specialist in seen else SOMEBODY
    match chosen.route:
        case Route.REJECT:
            return "the policy refuses it"
        case Route.HUMAN_REVIEW:
            return "a person has to approve it first"
        case Route.CLARIFY:
            return "a person is asked which specialist is meant"
    return "an agent does it without a specialist" if who is None else f"{who} does it"
