"""Labels decisions on who does a task, and learns from the labels. Each function is part of one transaction, so a
label is never learned twice, even after a crash."""

from typing import Final

from sqlalchemy import Connection

from claudomator_py.domain.learning import LabelRule, LabelVerdict, rule_for, verdict_of
from claudomator_py.domain.lifecycle import ENDED
from claudomator_py.domain.outcome import Outcome, Reason
from claudomator_py.domain.rationale import RationaleCode
from claudomator_py.log import get_logger
from claudomator_py.routing.lessons import NO_PERFORMANCE, corrected, moved
from claudomator_py.routing.profile import Request
from claudomator_py.scheduler.records import DecisionKind, SpecialistRecord
from claudomator_py.store import decision_rows, dependency_rows, events, hold_rows, learning_rows, run_rows, task_rows
from claudomator_py.store.learning_rows import LearningProgress
from claudomator_py.store.stored_json import DAMAGED
from claudomator_py.store.tables import Decision, Event, Label, Standing, Task

FROZEN: Final = "learning_frozen"
"""Name of the switch that stops learning; labels made while it is on are never learned."""
BATCH_SIZE: Final = 500
"""Maximum number of events examined, and of labels learned, per transaction."""
log = get_logger("claudomator.learning")
_REASONS = frozenset(Reason)
_BY_A_PERSON = frozenset({RationaleCode.NAMED, RationaleCode.MENTIONED, RationaleCode.BY_HAND})


def has_more(connection: Connection, since: int = 0) -> bool:
    """Return whether ``learn`` has something to do. since: id of the event after which to begin if nothing was ever
    learned."""
    so_far = learning_rows.progress(connection) or LearningProgress(since, 0)
    return events.last_id(connection) > so_far.event or bool(learning_rows.unlearned(connection, 1))


def correct(connection: Connection, task: Task, record: SpecialistRecord, now_ms: int, continues: Task | None) -> None:
    """Correct earlier labels by a decision that is about to be stored. If a person made it, a differing decision on the
    same text was wrong; so was the one on the continued task, if it chose another specialist.

    continues: the continued task.
    """
    if record.specialist is None or record.reason.code not in _BY_A_PERSON:
        return
    former = _standing(connection, task.id)
    if former is not None and _same_text(connection, former, task):
        _override(connection, former, record.specialist, now_ms)
    if continues is not None and former is None and continues.specialist is not None:
        earlier = _standing(connection, continues.id)
        if earlier is not None:
            _override(connection, earlier, record.specialist, now_ms)


def learn(connection: Connection, rate: float, now_ms: int, since: int = 0) -> None:
    """Label ended tasks and learn the next labels, at most ``BATCH_SIZE`` of each. rate: how far one label moves
    performance, 0 to 1. since: see ``has_more``."""
    so_far = learning_rows.progress(connection) or LearningProgress(since, 0)
    new_events = events.following(connection, so_far.event, BATCH_SIZE)
    for event in new_events:
        try:
            if event.kind == "state" and event.data.get("state") in ENDED:
                _label(connection, event, now_ms)
        except DAMAGED:
            log.warning("event_teaches_nothing", event_id=event.id, task_id=event.task_id, exc_info=True)
    waiting = learning_rows.unlearned(connection, BATCH_SIZE)
    frozen = hold_rows.find_switch(connection, FROZEN) is not None
    if not frozen:
        for label in waiting:
            try:
                _move(connection, label, rate, now_ms)
            except DAMAGED:
                log.warning("label_teaches_nothing", decision=label.decision_id, exc_info=True)
    learning_rows.mark(connection, [label.decision_id for label in waiting], now_ms, forgotten=frozen)
    changed = bool(waiting) and not frozen
    if new_events or changed:
        last = new_events[-1].id if new_events else so_far.event
        learning_rows.keep_progress(connection, LearningProgress(last or 0, so_far.version + changed))


def reset(connection: Connection, organisation: str | None, specialist: str | None, now_ms: int) -> int:
    """Forget what was learned and discard labels not yet learned; return how many labels no longer count. organisation,
    specialist: see ``learning_rows.forget``."""
    so_far = learning_rows.progress(connection) or LearningProgress(events.last_id(connection), 0)
    learning_rows.keep_progress(connection, LearningProgress(so_far.event, so_far.version + 1))
    return learning_rows.forget(connection, organisation, specialist, now_ms)


def _label(connection: Connection, event: Event, now_ms: int) -> None:
    """Label the decision on that task by how the task ended, unless it already has a label."""
    task_id, generation = str(event.task_id), int(event.data.get("generation", 0))
    decision = decision_rows.latest(connection, task_id, DecisionKind.SPECIALIST, generation)
    if decision is None or decision.specialist is None:
        return
    if learning_rows.label(connection, decision.id) is not None:
        return
    answer = _answer(connection, event)
    reason = Reason(event.data["reason"]) if event.data.get("reason") in _REASONS else None
    rule = rule_for(
        str(event.data["state"]),
        reason,
        0 if answer is None else len(answer.strip()),
        followed=dependency_rows.is_followed(connection, task_id),
    )
    if verdict_of(rule) is LabelVerdict.POSITIVE and _is_handed_on(decision):
        rule = LabelRule.HANDED_ON
    chars = None if answer is None else len(answer)
    learning_rows.keep_label(connection, _row(decision, rule, now_ms, answer_chars=chars))
    _relabel_predecessor(connection, task_id, decision, now_ms)


def _is_handed_on(decision: Decision) -> bool:
    """Return whether a run gave the task to that specialist: its text says little about the work that was left."""
    reason = decision.data.get("reason")
    return isinstance(reason, dict) and reason.get("code") == RationaleCode.HANDED_ON


def _relabel_predecessor(connection: Connection, task_id: str, decision: Decision, now_ms: int) -> None:
    """Label the continued task's short answer as useful after all, if the same specialist continues it."""
    earlier = _continued_by(connection, task_id)
    decision_before = None if earlier is None else _standing(connection, earlier)
    label = None if decision_before is None else learning_rows.label(connection, decision_before.id)
    if decision_before is None or label is None or decision_before.specialist != decision.specialist:
        return
    if label.rule == LabelRule.SHORT_ANSWER and label.forgotten_ms is None:
        followed = _row(decision_before, LabelRule.FOLLOWED, now_ms, answer_chars=label.answer_chars)
        learning_rows.keep_label(connection, followed)


def _override(connection: Connection, decision: Decision, specialist: str, now_ms: int) -> None:
    if decision.specialist == specialist:
        return
    earlier = learning_rows.label(connection, decision.id)
    chars = None if earlier is None else earlier.answer_chars
    row = _row(decision, LabelRule.OVERRIDDEN, now_ms, answer_chars=chars)
    row.wanted = specialist
    if earlier is not None and earlier.forgotten_ms is None:
        row.counted, row.counted_as = earlier.counted, earlier.counted_as
    learning_rows.keep_label(connection, row)


def _row(decision: Decision, rule: LabelRule, now_ms: int, *, answer_chars: int | None) -> Label:
    return Label(
        decision_id=decision.id,
        task_id=str(decision.task_id),
        revision=_revision(decision),
        organisation=decision.organisation or learning_rows.NO_ORGANISATION,
        specialist=decision.specialist,
        topic=decision.topic,
        verdict=verdict_of(rule).value,
        rule=rule.value,
        answer_chars=answer_chars,
        at_ms=now_ms,
    )


def _revision(decision: Decision) -> int:
    return int(str(decision.input_ref).rpartition("/")[2])


def _standing(connection: Connection, task_id: str) -> Decision | None:
    """The current decision on who does the task."""
    return decision_rows.current(connection, task_id, DecisionKind.SPECIALIST)


def _same_text(connection: Connection, former: Decision, task: Task) -> bool:
    """Whether the task's text is still the one decided on; if not, another specialist may be right without an error."""
    revision = _revision(former)
    if revision == task.revision:
        return True
    try:
        former_spec, current_spec = (
            task_rows.spec_of(connection, task.id, number) for number in (revision, task.revision)
        )
    except LookupError:
        return False
    return Request.of(former_spec) == Request.of(current_spec)


def _continued_by(connection: Connection, task_id: str) -> str | None:
    """Id of the task that this one continues, if it exists."""
    bound = dependency_rows.bound(connection, task_id)
    if not bound:
        return None
    task = task_rows.get(connection, task_id)
    continues = task_rows.spec_of(connection, task_id, task.revision).continues
    return next((dependency for name, dependency, _ in bound if name == continues), None)


def _answer(connection: Connection, event: Event) -> str | None:
    """Final text of the task's last run, if there was a run."""
    run = None if event.run_id is None else run_rows.find(connection, event.run_id)
    if run is None or run.outcome is None:
        return None
    return Outcome.model_validate(run.outcome).text


def _move(connection: Connection, label: Label, rate: float, now_ms: int) -> None:
    """Let the label move the specialist's standing, on the label's topic and overall. A decision counts once: the
    effect of an earlier label is corrected as if this one had been there instead."""
    verdict = LabelVerdict(label.verdict)
    if label.specialist is None or verdict is LabelVerdict.NEUTRAL or label.counted == verdict:
        return
    overall = learning_rows.standing(connection, label.organisation, label.specialist, "")
    prior = NO_PERFORMANCE if overall is None else overall.performance
    label.counted_as = label.counted_as or 1 + (0 if overall is None else overall.positive + overall.negative)
    for topic in dict.fromkeys(("", label.topic or "")):
        stored = (
            overall if topic == "" else learning_rows.standing(connection, label.organisation, label.specialist, topic)
        )
        standing = stored or Standing(
            organisation=label.organisation,
            specialist=label.specialist,
            topic=topic,
            performance=prior,
            positive=0,
            negative=0,
            updated_ms=now_ms,
        )
        learning_rows.keep_standing(connection, _moved(connection, standing, label, verdict, rate, now_ms))
    label.counted = verdict.value
    learning_rows.keep_label(connection, label)


def _moved(
    connection: Connection, standing: Standing, label: Label, verdict: LabelVerdict, rate: float, now_ms: int
) -> Standing:
    """The standing once the label counts, replacing the opposite verdict if the label has counted with that."""
    succeeded, again = verdict is LabelVerdict.POSITIVE, label.counted is not None
    last_success_ms = standing.last_success_ms
    if again:
        later = learning_rows.counted_after(connection, label, standing.topic)
        performance = corrected(standing.performance, verdict, rate, later)
    else:
        performance = moved(standing.performance, verdict, rate)
    if succeeded:
        last_success_ms = max(label.at_ms, last_success_ms or 0)
    elif again:
        last_success_ms = learning_rows.last_success(connection, label, standing.topic)
    return Standing(
        organisation=standing.organisation,
        specialist=standing.specialist,
        topic=standing.topic,
        performance=performance,
        positive=standing.positive + (1 if succeeded else -again),
        negative=standing.negative + (-again if succeeded else 1),
        last_success_ms=last_success_ms,
        updated_ms=now_ms,
    )
