"""Decides recorded decisions again under another configuration, as the daemon would, without effect."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection

from claudomator_py.dispatch.deciding import Decided, Decider, Subject
from claudomator_py.dispatch.policing import STOPS
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.decision import task_revision_of
from claudomator_py.domain.rationale import RationaleCode, rationale
from claudomator_py.scheduler.plan import decided_again, under
from claudomator_py.scheduler.records import (
    Chosen,
    DecisionKind,
    DecisionRecord,
    PolicyRecord,
    PolicyVerdict,
    Route,
    ShadowRecord,
    SpecialistRecord,
)
from claudomator_py.scheduler.snapshot import Rules, Snapshot
from claudomator_py.store import decision_rows, task_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import Decision
from claudomator_py.values import dataclass

FOLLOWED = (DecisionKind.SPECIALIST, DecisionKind.POLICY, DecisionKind.PLACEMENT)
"""The kinds of decisions that are compared."""
_NOBODY = Chosen(route=Route.DEFAULT, verdict=PolicyVerdict.ALLOWED)
"""The outcome for a task that needed no decision."""


@dataclass(frozen=True, slots=True)
class OtherConfiguration:
    """A configuration that is not in force. agents: None for the current ones."""

    rules: Rules
    agents: Sequence[AgentSpec] | None
    decider: Decider

    @property
    def hash(self) -> str:
        """Hash of its settings."""
        return self.rules.settings_hash


class Alternative:
    """Compares stored decisions with those of the other configuration."""

    def __init__(self, database: Database, configuration: OtherConfiguration) -> None:
        self._database = database
        self.configuration = configuration
        self._snapshot: tuple[str, Mapping[str, DecisionRecord] | None] = ("", None)

    def placed(self, row: Decision) -> ShadowRecord | None:
        """Return where the decision's run would have started in the same tick; None if it is no placement or the
        tick's snapshot is gone."""
        if row.kind != DecisionKind.PLACEMENT:
            return None
        started = self._started(row.snapshot_hash or "")
        if started is None:
            return None
        stored, other = DecisionRecord.model_validate(row.data), started.get(row.task_id or "")
        actual = Chosen(agent=stored.agent, tier=stored.tier, model=stored.model)
        reason = rationale(RationaleCode.WOULD_WAIT) if other is None else other.reason
        chosen = Chosen() if other is None else Chosen(agent=other.agent, tier=other.tier, model=other.model)
        return ShadowRecord(
            about=DecisionKind.PLACEMENT,
            beside=row.id,
            reason=reason,
            **dict(chosen),
            actual=actual,
            differs=chosen != actual,
            candidates=() if other is None else other.candidates,
            versions=self.configuration.decider.versions,
        )

    def _started(self, digest: str) -> Mapping[str, DecisionRecord] | None:
        """Return what the snapshot would start, by task id; None if it is gone. The latest is cached, because several
        decisions in a row come from the same tick."""
        if self._snapshot[0] != digest:
            data = self._database.read(partial(decision_rows.snapshot, digest=digest))
            started = None
            if data is not None:
                seen = Snapshot.model_validate(data)
                started = decided_again(under(seen, self.configuration.agents, self.configuration.rules))
            self._snapshot = digest, started
        return self._snapshot[1]

    def routed(self, row: Decision) -> ShadowRecord | None:
        """Return the specialist and the verdict that the task would have got.

        None if another decision covers it, if neither configuration had to decide anything, or if the task is gone or
        was restarted since.
        """
        actual = self._database.read(partial(_actual, row=row))
        return None if actual is None else self._decided(row, actual)

    def _decided(self, row: Decision, actual: Chosen) -> ShadowRecord | None:
        decider = self.configuration.decider
        subject = self._database.read(partial(_subject, decider=decider, row=row))
        if subject is None:
            return None
        decided = decider.decide_alone(subject)
        record, policy = decided.record, decider.policing.record(decided.judged, decider.versions)
        if record is None and policy is None and actual == _NOBODY:
            return None
        chosen = _chosen(decided)
        by_policy = policy is not None and (record is None or chosen.verdict is not PolicyVerdict.ALLOWED)
        why = policy if policy is not None and by_policy else record
        return ShadowRecord(
            about=DecisionKind.SPECIALIST,
            beside=row.id,
            reason=rationale(RationaleCode.NOBODY) if why is None else why.reason,
            **dict(chosen),
            rules=() if policy is None else policy.rules,
            actual=actual,
            differs=_compared(chosen) != _compared(actual),
            policy_checks=() if policy is None else policy.policy_checks,
            versions=decider.versions if policy is None else policy.versions,
            **({} if record is None else _weighed(record)),
        )


def _subject(connection: Connection, decider: Decider, row: Decision) -> Subject | None:
    """Return the task of the decision; None if it is gone or was restarted since."""
    task = None if row.task_id is None else task_rows.find(connection, row.task_id)
    if task is None or task.generation != row.generation:
        return None
    revision = task_revision_of(row.input_ref) or task.revision
    return decider.subject(connection, task, task_rows.spec_of(connection, task.id, revision))


def _was_routed(connection: Connection, row: Decision) -> bool:
    """Return whether an earlier decision covers the task in this generation."""
    earlier = [
        other for other in decision_rows.of_task(connection, row.task_id or "") if other.generation == row.generation
    ]
    kinds = {DecisionKind(other.kind) for other in earlier if other.id != row.id and other.at_ms <= row.at_ms}
    return not kinds.isdisjoint(FOLLOWED)


def _actual(connection: Connection, row: Decision) -> Chosen | None:
    """Return the recorded outcome; None if another decision has it."""
    if row.kind == DecisionKind.PLACEMENT:
        return None if _was_routed(connection, row) else _NOBODY
    task_id, generation = row.task_id or "", row.generation or 0
    if row.kind == DecisionKind.SPECIALIST:
        record = SpecialistRecord.model_validate(row.data)
        policy = decision_rows.latest(connection, task_id, DecisionKind.POLICY, generation)
        verdict = PolicyVerdict.ALLOWED if policy is None else PolicyRecord.model_validate(policy.data).verdict
        verdict = PolicyVerdict.ALLOWED if verdict is PolicyVerdict.APPROVED else verdict
        return Chosen(route=record.route, specialist=record.specialist, skill=record.skill, verdict=verdict)
    verdict = PolicyRecord.model_validate(row.data).verdict
    if verdict in STOPS:
        return Chosen(route=STOPS[verdict], verdict=verdict)
    who = decision_rows.latest(connection, task_id, DecisionKind.SPECIALIST, generation)
    return _NOBODY if verdict is PolicyVerdict.ALLOWED and who is None else None


def _chosen(decided: Decided) -> Chosen:
    verdict = decided.judged.outcome
    record = decided.record
    if verdict in STOPS:
        return Chosen(route=STOPS[verdict], verdict=verdict)
    if record is None:
        return _NOBODY
    return Chosen(route=record.route, specialist=record.specialist, skill=record.skill, verdict=verdict)


def _compared(chosen: Chosen) -> tuple[object, ...]:
    """Return the parts that count as a difference. The skill of the same specialist does not."""
    return chosen.route, chosen.specialist, chosen.verdict


def _weighed(record: SpecialistRecord) -> dict[str, Any]:
    names = ("confidence", "threshold", "risk", "topic", "specialist_candidates", "latency_ms")
    return {name: getattr(record, name) for name in names}
