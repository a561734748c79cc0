"""A recorded decision of any kind as people read it: what was chosen, among what, why, and what would have changed it.

Nobody is named who does not exist for whoever asks.
"""

from collections.abc import Set

from claudomator_py.domain.errors import ended, sentence
from claudomator_py.domain.verdict_text import constraint_sentences
from claudomator_py.queries.concealment import SOMEBODY
from claudomator_py.queries.explain import placement_sentences, tier_text
from claudomator_py.resources.routing.ask import LABELS, reason_for, reason_of, route_view
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


def sentences_of(row: Decision, seen: Set[str]) -> tuple[str, ...]:
    """Return what was chosen, why, and what would have changed it. seen: the ids of specialists who exist for whoever
    asks."""
    record = record_of(row.kind, row.data)
    match record:
        case DecisionRecord():
            return _placement(record, row.at_ms, seen)
        case TierRecord():
            return _tier(record)
        case SpecialistRecord():
            route = route_view("The task", record, seen)
            return route.sentences or (sentence(route.reason),)
        case PolicyRecord():
            return _policy(record)
        case HandoffRecord():
            return _handoff(record, seen)
        case TriageRecord():
            return _triage(record, seen)
        case ShadowRecord():
            return _shadow(record, seen)
    return (sentence(record.reason.text),)  # it cannot be read


def said_of(row: Decision, seen: Set[str]) -> tuple[tuple[str, str], ...]:
    """Return what people and agents wrote beside it, by what it is."""
    match record_of(row.kind, row.data):
        case PolicyRecord(said=str(said)):
            return (("Reason for the approval", said),)
        case HandoffRecord(asked=asked) as handoff:
            told = (
                ("Asked for", asked.to if handoff.names_nobody or asked.to in seen or asked.to in LABELS else ""),
                ("Why, in the words of the agent", asked.reason),
                ("Done", asked.done),
                ("Left to do", asked.left),
                ("Changed files", "\n".join(asked.files)),
            )
            return tuple((name, text) for name, text in told if text)
    return ()


def _placement(record: DecisionRecord, at_ms: int, seen: Set[str]) -> tuple[str, ...]:
    shown = record.model_copy(update={"reason": reason_for(record.reason, seen)})
    sentences = placement_sentences("The run", shown, at_ms)
    if len(record.candidates) > 1 and not any(one.eligible for one in record.candidates if one.agent != record.agent):
        sentences.append("Another agent would have been picked only without the reason shown beside it under Agents.")
    return tuple(sentences)


def _tier(record: TierRecord) -> tuple[str, ...]:
    source = tier_text(record.classification, record.agent)
    chosen = "No tier was chosen" if record.tier is None else f"The task needs a model of tier {record.tier}"
    return (f"{chosen}: {source}.", "A task that names its own tier is not classified.")


def _policy(record: PolicyRecord) -> tuple[str, ...]:
    sentences = [ended(f"{_VERDICTS[record.verdict]}: {record.reason.text}")]
    if record.verdict in (PolicyVerdict.DENIED, PolicyVerdict.HELD) and record.rules:
        which = f"rule {record.rules[0]}" if len(record.rules) == 1 else f"the rules {', '.join(record.rules)}"
        sentences.append(f"Without {which}, this verdict would not stand.")
    if record.approved:
        sentences.append(f"Approved for this content: {', '.join(record.approved)}.")
    if record.approved_by is not None:
        sentences.append(f"{record.approved_by} approved it.")
    return (*sentences, *constraint_sentences(record.constraints))


def _handoff(record: HandoffRecord, seen: Set[str]) -> tuple[str, ...]:
    reason = reason_of(record, seen).text
    if record.route is Route.DEFAULT:
        first = ended(f"The task was handed on to whoever does what fits nobody: {reason}")
    elif record.specialist is not None:
        to = record.specialist if record.specialist in seen else SOMEBODY
        first = ended(f"The task was handed on to {to}: {reason}")
    else:
        first = ended(f"The task was not handed on: {reason}")
    had = "no specialist" if record.by is None else record.by if record.by in seen else SOMEBODY
    before = record.hop - record.accepted
    return (
        first,
        f"Until then, it was with {had}.",
        f"It had been handed on {before} of at most {record.max_handoffs} times before.",
    )


def _triage(record: TriageRecord, seen: Set[str]) -> tuple[str, ...]:
    who = [one if one in seen else SOMEBODY for one in record.agents]
    first = f"{', '.join(who) or 'Nobody'} {'answer' if len(who) > 1 else 'answers'}: "
    sentences = [ended(f"{first}{reason_for(record.reason, seen).text}")]
    for one, why in record.skipped.items():
        sentences.append(f"{one if one in seen else SOMEBODY} was not asked: {why.replace('_', ' ')}.")
    if record.hops:
        sentences.append(f"{record.hops} agent messages led to it.")
    return tuple(sentences)


def _shadow(record: ShadowRecord, seen: Set[str]) -> tuple[str, ...]:
    reason, actual = reason_for(record.reason, seen).text, record.actual
    if record.about is DecisionKind.PLACEMENT:
        there, here = _place(record), _place(actual)
    else:
        there, here = _way(record, seen), _way(actual, seen)
    return (
        f"Under the other configuration: {there}. {sentence(reason)}",
        f"In fact: {here}." if record.differs else "That is what was decided in fact.",
        "Nothing follows from this decision.",
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
