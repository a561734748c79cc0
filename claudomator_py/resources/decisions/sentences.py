"""Recorded decisions in sentences: what was chosen, from what, why, and what would have changed it.
Those that do not exist for the caller are not named.
"""

from collections import defaultdict
from collections.abc import Sequence, Set

from claudomator_py.domain.blocked_words import blocked_text, predicate
from claudomator_py.domain.decision import Classification
from claudomator_py.domain.errors import ended, sentence
from claudomator_py.domain.units import counted, enumerated
from claudomator_py.domain.verdict import constraint_sentences
from claudomator_py.domain.wording import clock_text, utc_clock, worded
from claudomator_py.resources.concealment import SOMEBODY
from claudomator_py.resources.routing.service import LABELS, reason_for, reason_of, route_view
from claudomator_py.scheduler.classification import Cause
from claudomator_py.scheduler.records import (
    Candidate,
    Chosen,
    DecisionKind,
    DecisionRecord,
    HandoffRecord,
    OverriddenHint,
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

_TIER_SOURCES = {
    "pinned": "as the task asks",
    "kept": "as before",
    "cache": "as classified before",
    "classifier": "as the classifier says",
    "default": "the agent's default",
}

_NO_TIER: dict[str, str] = {
    Cause.OFF: "no classifier is configured",
    Cause.NOTHING_TO_CHOOSE: "the agent has no tiers to choose from",
    Cause.TIMEOUT: "the classifier did not answer in time",
    Cause.UNREACHABLE: "the classifier could not be reached",
    Cause.LIMITED: "the classifier is rate-limited",
    Cause.REFUSED: "the classifier refused the request",
    Cause.SERVER_ERROR: "the classifier failed",
    Cause.NOT_CONFIGURED: "the classifier is not set up",
    Cause.GARBAGE: "the classifier's answer could not be read",
    Cause.DISALLOWED: "the classifier named a tier it was not offered",
    Cause.BREAKER_OPEN: "the classifier is not asked for a while after several failures",
    Cause.INTERRUPTED: "the question was interrupted",
}


def sentences_of(row: Decision, seen: Set[str]) -> tuple[str, ...]:
    """Return what was chosen, why, and what would have changed it. seen: the ids of specialists that exist for the
    caller."""
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
    """Return what people and agents wrote about it, each with its title."""
    match record_of(row.kind, row.data):
        case PolicyRecord(said=str(said)):
            return (("Reason for the approval", said),)
        case HandoffRecord(asked=asked) as handoff:
            agent_text = (
                ("Asked for", asked.to if handoff.names_nobody or asked.to in seen or asked.to in LABELS else ""),
                ("Why, in the words of the agent", asked.reason),
                ("Done", asked.done),
                ("Left to do", asked.left),
                ("Changed files", "\n".join(asked.files)),
            )
            return tuple((name, text) for name, text in agent_text if text)
    return ()


def _placement(record: DecisionRecord, at_ms: int, seen: Set[str]) -> tuple[str, ...]:
    shown = record.model_copy(update={"reason": reason_for(record.reason, seen)})
    sentences = placement_sentences("The run", shown, at_ms)
    if len(record.candidates) > 1 and not any(
        candidate.eligible for candidate in record.candidates if candidate.agent != record.agent
    ):
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
        first = ended(f"The task was handed on to whoever does what fits no specialist: {reason}")
    elif record.specialist is not None:
        to = record.specialist if record.specialist in seen else SOMEBODY
        first = ended(f"The task was handed on to {to}: {reason}")
    else:
        first = ended(f"The task was not handed on: {reason}")
    had = "no specialist" if record.by is None else record.by if record.by in seen else SOMEBODY
    before = record.hop - record.accepted
    return (
        first,
        f"Until then, {had} had it.",
        f"It had been handed on {before} of at most {counted(record.max_handoffs, 'time')}.",
    )


def _triage(record: TriageRecord, seen: Set[str]) -> tuple[str, ...]:
    who = [agent if agent in seen else SOMEBODY for agent in record.agents]
    first = f"{', '.join(who) or 'Nobody'} {'answer' if len(who) > 1 else 'answers'}: "
    sentences = [ended(f"{first}{reason_for(record.reason, seen).text}")]
    for agent, why in record.skipped.items():
        sentences.append(f"{agent if agent in seen else SOMEBODY} was not asked: {why.replace('_', ' ')}.")
    if record.hops:
        sentences.append(f"{counted(record.hops, 'agent message')} led to it.")
    return tuple(sentences)


def _shadow(record: ShadowRecord, seen: Set[str]) -> tuple[str, ...]:
    reason, actual = reason_for(record.reason, seen).text, record.actual
    if record.about is DecisionKind.PLACEMENT:
        there, here = _place(record), _place(actual)
    else:
        there, here = _way(record, seen), _way(actual, seen)
    return (
        f"Under the other configuration: {there}. {sentence(reason)}",
        f"Actually decided: {here}." if record.differs else "The actual decision was the same.",
        "This decision has no effect.",
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


def decision_sentences(record: DecisionRecord, number: int, at_ms: int, now_ms: int) -> list[str]:
    """Return why a run started where it did. number: among the task's runs. at_ms: when it was decided."""
    return placement_sentences(f"Run {number} ({clock_text(at_ms, now_ms)})", record, at_ms)


def placement_sentences(which: str, record: DecisionRecord, at_ms: int) -> list[str]:
    """Return the same. which: the run, as the subject of the first sentence."""
    chosen = next((candidate for candidate in record.candidates if candidate.agent == record.agent), None)
    slots = f" ({chosen.active} of {chosen.max_concurrent} slots)" if chosen is not None else ""
    sentences = [f"{which} went to {record.agent}: {placement_text(record)}{slots}."]
    sentences += _overridden(record, at_ms)
    if record.fallback is not None:
        sentences.append(sentence(record.fallback.words))
    others = [candidate for candidate in record.candidates if candidate.agent != record.agent and candidate.eligible]
    sentences += _rejections(others, at_ms)
    model = f" ({record.model})" if record.model else ""
    without = "" if record.model else "; the agent is given no model"
    clamped = _clamped(record)
    sentences.append(f"Tier {record.tier}{model}: {tier_text(record.classification, record.agent)}{clamped}{without}.")
    if record.given is not None and record.given.slash is not None:
        sentences.append(record.given.slash.sentence(record.agent))
    if record.unfenced is not None:
        sentences.append(f"Not fenced: {record.unfenced}.")
    if record.overridden_model is not None:
        sentences.append(f"The task pins {record.overridden_model}, which its constraints do not allow.")
    return sentences


def placement_text(record: DecisionRecord) -> str:
    """Return why it was placed there, and which model stands in for another, without a full stop."""
    stands_in = record.stands_in
    return record.reason.text if stands_in is None else f"{record.reason.text}; {stands_in.text}"


def _overridden(record: DecisionRecord, at_ms: int) -> list[str]:
    """Return that the task prefers another agent; if that is a candidate, what kept it from the task is said there."""
    if (hint := record.overridden) is None:
        return []
    if hint.agent is None:
        return [f"The task's preference was overridden: {overridden_text(hint, at_ms)}."]
    if any(candidate.agent == hint.agent for candidate in record.candidates):
        return [f"The task prefers {hint.agent}, which could not take it."]
    return [f"The task prefers {hint.agent}, but {_because(hint, at_ms)}."]


def overridden_text(hint: OverriddenHint, at_ms: int) -> str:
    """Return the agent a task prefers, and why it did not get it, on one line. at_ms: when it was decided."""
    because = _because(hint, at_ms)
    return because if hint.agent is None else f"{hint.agent}: {because}"


def _because(hint: OverriddenHint, at_ms: int) -> str:
    return "; ".join(blocked_text(blocked, utc_clock(at_ms), verb="was") for blocked in hint.because) or "not picked"


def _rejections(candidates: Sequence[Candidate], at_ms: int) -> list[str]:
    """Return a sentence for each reason, with all agents that it applies to."""
    agents: dict[str, list[str]] = defaultdict(list)
    for candidate in candidates:
        rejected = candidate.rejected
        why = "not picked" if rejected is None else worded(predicate(rejected), utc_clock(at_ms))
        agents[why].append(candidate.agent if rejected is None else rejected.params.agent or candidate.agent)
    return [f"{enumerated(names)} {'was' if len(names) == 1 else 'were'} {why}." for why, names in agents.items()]


def _clamped(record: DecisionRecord) -> str:
    before = record.classification.clamped_from
    if before is None:
        return ""
    bound = "floor" if record.tier == record.constraints.tier_floor else "ceiling"
    return f"; without its {bound} it would be {before}"


def tier_text(classification: Classification, agent: str) -> str:
    """Return where the tier comes from, in words. agent: the one the task went to."""
    source = _TIER_SOURCES[classification.source]
    cause = _NO_TIER.get(classification.cause, classification.cause) if classification.cause else None
    parts = [part for part in (cause, classification.reason) if part]
    said_agent = classification.said_agent
    sentences = [": ".join(parts)] if parts else []
    about = classification.asked_about
    sentences += [f"it was asked about {about}, where the task was then to go"] if about not in (None, agent) else []
    sentences += [f"it named the agent {said_agent}, which changes nothing"] if said_agent is not None else []
    return f"{source} ({'; '.join(sentences)})" if sentences else source
