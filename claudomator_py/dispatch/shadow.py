"""A second configuration that decides about the same tasks beside the one in force, and acts on nothing."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import Connection

from claudomator_py.dispatch.deciding import Decided, Decider, Subject
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.rationale import RationaleCode, rationale
from claudomator_py.domain.units import SECOND_MS
from claudomator_py.log import get_logger
from claudomator_py.ports import Clock
from claudomator_py.scheduler.decision import (
    Chosen,
    DecisionKind,
    DecisionRecord,
    PolicyRecord,
    PolicyVerdict,
    Route,
    ShadowRecord,
    SpecialistRecord,
)
from claudomator_py.scheduler.replay import decided_again, under
from claudomator_py.scheduler.snapshot import Rules, Snapshot
from claudomator_py.store import decision_log, decision_rows, remembered, task_rows
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.tables import Decision
from claudomator_py.tasks.decisions import record_shadow

log = get_logger("claudomator.shadow")

MARK = "shadow"
"""Under which is remembered how far it has come: ``configuration``, by its hash, since when it is followed,
``since_ms``, and ``at_ms`` of the last decision that was looked at; both in epoch milliseconds."""
AT_ONCE = 500
_LATE_MS = 10 * SECOND_MS
"""How much later than it was made a decision may be committed."""
_PAUSE_S = 1.0
"""Between two looks."""
_FOLLOWED = (DecisionKind.SPECIALIST, DecisionKind.POLICY, DecisionKind.PLACEMENT)
_STOPS = {PolicyVerdict.DENIED: Route.REJECT, PolicyVerdict.HELD: Route.HUMAN_REVIEW}
_NOBODY = Chosen(route=Route.DEFAULT, verdict=PolicyVerdict.ALLOWED)
"""What becomes of a task about which nothing had to be decided."""

_Found = tuple[Decision, ShadowRecord]


@dataclass(frozen=True, slots=True)
class ShadowConfiguration:
    """What decides beside the configuration in force. agents: None: those that there are."""

    rules: Rules
    agents: Sequence[AgentSpec] | None
    decider: Decider

    @property
    def hash(self) -> str:
        """Of its settings."""
        return self.rules.settings_hash


class Shadow:
    """Decides again, under another configuration, what is decided from the time on at which that is put in force.

    It looks at decisions once they are stored, on a thread of its own: no task waits for it, and a daemon that was
    killed in between misses none. configuration: the one in use at present; None: there is none.
    """

    def __init__(
        self, database: Database, configuration: Callable[[], ShadowConfiguration | None], clock: Clock
    ) -> None:
        self._database = database
        self._configuration = configuration
        self._clock = clock
        self._news = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="shadow", daemon=True)
        self._done: dict[str, int] = {}
        self._snapshot: tuple[str, str, Mapping[str, DecisionRecord] | None] = ("", "", None)

    def begin(self) -> None:
        """Follow what is committed, beginning with what was not looked at when the last daemon ended."""
        self.wake()
        self._thread.start()

    def wake(self) -> None:
        """There may be something to look at. Takes no time."""
        if not self._news.is_set() and self._configuration() is not None:
            self._news.set()

    def close(self) -> None:
        """Look at nothing more."""
        self._closing.set()
        self._news.set()
        if self._thread.ident is not None:
            self._thread.join()

    def catch_up(self) -> int:
        """Decide again what was decided since the last look; how many shadows that gave. Raises StoreUnavailable."""
        configuration = self._configuration()
        if configuration is None:
            return 0
        mark = self._database.read(lambda connection: remembered.find(connection, MARK))
        if mark.get("configuration") != configuration.hash:
            now_ms = self._clock()
            mark = {"configuration": configuration.hash, "since_ms": now_ms, "at_ms": now_ms}
            self._database.write(partial(remembered.keep, name=MARK, data=mark), planned=True)
            self._done.clear()
        after, number = (max(mark["since_ms"], mark["at_ms"] - _LATE_MS), ""), 0
        while not self._closing.is_set() and (rows := self._database.read(partial(_following, after=after))):
            after = rows[-1].at_ms, rows[-1].id
            fresh = [row for row in rows if row.id not in self._done]
            if not fresh:
                continue
            found = [one for row in fresh for one in self._shadows(configuration, row)]
            mark = {**mark, "at_ms": max(mark["at_ms"], after[0])}
            # No tick has anything to do because of it.
            number += self._database.write(partial(_record, found=found, mark=mark, clock=self._clock), planned=True)
            self._done |= {row.id: row.at_ms for row in fresh}
        self._done = {row: at_ms for row, at_ms in self._done.items() if at_ms >= mark["at_ms"] - _LATE_MS}
        return number

    def _follow(self) -> None:
        while self._news.wait() and not self._closing.is_set():
            self._news.clear()
            try:
                self.catch_up()
            except StoreUnavailable as error:
                log.warning("shadow_not_recorded", problem=str(error))
            self._closing.wait(_PAUSE_S)

    def _shadows(self, configuration: ShadowConfiguration, row: Decision) -> list[_Found]:
        """Of one decision; what fails for it keeps no other from being looked at. Raises StoreUnavailable."""
        try:
            if row.kind != DecisionKind.PLACEMENT:
                found = [self._routed(configuration, row)]
            else:
                found = [self._placed(configuration, row), self._unrouted(configuration, row)]
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("shadow_failed", decision=row.id)
            return []
        return [(row, one) for one in found if one is not None]

    def _placed(self, configuration: ShadowConfiguration, row: Decision) -> ShadowRecord | None:
        """Where its run would have started in the same tick."""
        started = self._started(configuration, row.snapshot_hash or "")
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
            versions=configuration.decider.versions,
        )

    def _started(self, configuration: ShadowConfiguration, digest: str) -> Mapping[str, DecisionRecord] | None:
        """What starts from that snapshot, by task; None: it is gone. Of one tick come a few decisions in a row."""
        if self._snapshot[:2] != (configuration.hash, digest):
            data = self._database.read(partial(decision_rows.snapshot, digest=digest))
            started = None
            if data is not None:
                seen = Snapshot.model_validate(data)
                started = decided_again(under(seen, configuration.agents, configuration.rules))
            self._snapshot = configuration.hash, digest, started
        return self._snapshot[2]

    def _routed(self, configuration: ShadowConfiguration, row: Decision) -> ShadowRecord | None:
        """Who would have got its task, if anybody."""
        actual = self._database.read(partial(_actual, row=row))
        return None if actual is None else self._decided(configuration, row, actual)

    def _unrouted(self, configuration: ShadowConfiguration, row: Decision) -> ShadowRecord | None:
        """The same of a task that has started without anything being decided about that."""
        if self._database.read(partial(_was_routed, row=row)):
            return None
        return self._decided(configuration, row, _NOBODY)

    def _decided(self, configuration: ShadowConfiguration, row: Decision, actual: Chosen) -> ShadowRecord | None:
        decider = configuration.decider
        subject = self._database.read(partial(_subject, decider=decider, row=row))
        if subject is None:
            return None
        decided = decider.decide_alone(subject)
        record, said = decided.record, _said(decider, decided)
        if record is None and said is None and actual == _NOBODY:
            return None
        chosen = _chosen(decided)
        of_rules = said is not None and (record is None or chosen.verdict is not PolicyVerdict.ALLOWED)
        why = said if said is not None and of_rules else record
        return ShadowRecord(
            about=DecisionKind.SPECIALIST,
            beside=row.id,
            reason=rationale(RationaleCode.NOBODY) if why is None else why.reason,
            **dict(chosen),
            rules=() if said is None else said.rules,
            actual=actual,
            differs=_compared(chosen) != _compared(actual),
            policy_checks=() if said is None else said.policy_checks,
            versions=decider.versions if said is None else said.versions,
            **({} if record is None else _weighed(record)),
        )


def _following(connection: Connection, after: decision_log.Position) -> Sequence[Decision]:
    return decision_log.following(connection, _FOLLOWED, after, AT_ONCE)


def _record(connection: Connection, found: Sequence[_Found], mark: Mapping[str, object], clock: Clock) -> int:
    """How many of these were not there yet."""
    number = sum(record_shadow(connection, row, record, clock()) for row, record in found)
    remembered.keep(connection, MARK, mark)
    return number


def _subject(connection: Connection, decider: Decider, row: Decision) -> Subject | None:
    """The task of the decision; None: it is gone, or was restarted since."""
    task = None if row.task_id is None else task_rows.find(connection, row.task_id)
    if task is None or task.generation != row.generation:
        return None
    return decider.subject(connection, task, task_rows.spec_of(connection, task.id, task.revision))


def _was_routed(connection: Connection, row: Decision) -> bool:
    """Whether somebody or the policy was asked about the task before it started, or it has started before."""
    earlier = [one for one in decision_rows.of_task(connection, row.task_id or "") if one.generation == row.generation]
    kinds = {DecisionKind(one.kind) for one in earlier if one.id != row.id and one.at_ms <= row.at_ms}
    return not kinds.isdisjoint(_FOLLOWED)


def _actual(connection: Connection, row: Decision) -> Chosen | None:
    """What the decision was; None: another one says."""
    task_id, generation = row.task_id or "", row.generation or 0
    if row.kind == DecisionKind.SPECIALIST:
        record = SpecialistRecord.model_validate(row.data)
        policy = decision_rows.latest(connection, task_id, DecisionKind.POLICY, generation)
        verdict = PolicyVerdict.ALLOWED if policy is None else PolicyRecord.model_validate(policy.data).verdict
        verdict = PolicyVerdict.ALLOWED if verdict is PolicyVerdict.APPROVED else verdict
        return Chosen(route=record.route, specialist=record.specialist, skill=record.skill, verdict=verdict)
    verdict = PolicyRecord.model_validate(row.data).verdict
    if verdict in _STOPS:
        return Chosen(route=_STOPS[verdict], verdict=verdict)
    who = decision_rows.latest(connection, task_id, DecisionKind.SPECIALIST, generation)
    return _NOBODY if verdict is PolicyVerdict.ALLOWED and who is None else None


def _said(decider: Decider, decided: Decided) -> PolicyRecord | None:
    return decider.policing.record(decided.judged, decider.versions)


def _chosen(decided: Decided) -> Chosen:
    verdict = decided.judged.says
    record = decided.record
    if verdict in _STOPS:
        return Chosen(route=_STOPS[verdict], verdict=verdict)
    if record is None:
        return _NOBODY
    return Chosen(route=record.route, specialist=record.specialist, skill=record.skill, verdict=verdict)


def _compared(chosen: Chosen) -> tuple[object, ...]:
    """What makes a difference: not which skill of the same specialist it is."""
    return chosen.route, chosen.specialist, chosen.verdict


def _weighed(record: SpecialistRecord) -> dict[str, Any]:
    names = ("confidence", "threshold", "risk", "topic", "specialist_candidates", "latency_ms")
    return {name: getattr(record, name) for name in names}
