"""Notifies people: events become notices in an outbox, in order, and each reaches its target at least once.

Each target has its own thread, so a target that does not answer delays neither other targets nor tasks. The event
cursor is stored in the same transaction as the notices made from the events, so a crash neither loses nor duplicates a
notice. A notice sent right before a crash is sent again, under the same id.
"""

import logging
from collections.abc import Callable, Mapping, Sequence

from sqlalchemy import Connection

from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.lifecycle import backoff_ms
from claudomator_py.domain.notice import DeliveryFault, DeliveryState, EventContext, Notice, NotifyTarget, notice_of
from claudomator_py.domain.outcome import Outcome
from claudomator_py.domain.units import SECOND_MS, format_instant
from claudomator_py.environment.secrets import Secrets
from claudomator_py.ports import Clock, Messenger
from claudomator_py.store import events, outbox_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import Outbox
from claudomator_py.workers import IDLE_S, Worker

log = logging.getLogger("claudomator.notify")

ATTEMPTS = 12
FIRST_PAUSE_MS = 5 * SECOND_MS
PAGE = 200
SETTLE_S = 0.1
_KINDS = ("budget_spent", "hold", "report_made", "schedule_held_up", "state")


class NotificationDispatcher:
    """Notifies the configured targets in the background.

    messenger: makes the messenger of a target. secrets: values removed from notices; None: only what has the shape of a
    secret.
    """

    def __init__(
        self,
        database: Database,
        messenger: Callable[[NotifyTarget], Messenger],
        clock: Clock,
        secrets: Secrets | None = None,
    ) -> None:
        self._secrets = secrets or Secrets()
        self._database = database
        self._messenger = messenger
        self._clock = clock
        self._couriers: dict[str, _TargetWorker] = {}

    def follow(self, targets: Mapping[str, NotifyTarget]) -> None:
        """Notify exactly these targets. A new target is notified of events from now on, not of past ones.

        Pending notices of a removed or changed target are sent once it is configured again.
        """
        former = self._couriers
        kept = {name: courier for name, courier in former.items() if targets.get(name) == courier.target}
        added = {
            name: _TargetWorker(self._database, name, target, self._messenger(target), self._clock, self._secrets)
            for name, target in targets.items()
            if name not in kept
        }
        _end([courier for name, courier in former.items() if name not in kept])
        self._couriers = kept | added
        for courier in added.values():
            courier.start()

    @property
    def messengers(self) -> Mapping[str, Messenger]:
        """The messengers, by name of the target."""
        return {name: courier.messenger for name, courier in self._couriers.items()}

    @property
    def workers(self) -> Sequence[Worker]:
        """One worker per target."""
        return tuple(self._couriers.values())

    def wake(self) -> None:
        """Look for new events after a commit. Quick; may be called from any thread."""
        for courier in self._couriers.values():
            courier.wake()

    def close(self) -> None:
        """Stop; pending notices are sent after the next start."""
        _end(list(self._couriers.values()))


class _TargetWorker(Worker):
    """Gathers and sends the notices for one target."""

    def __init__(
        self, database: Database, name: str, target: NotifyTarget, messenger: Messenger, clock: Clock, secrets: Secrets
    ) -> None:
        super().__init__(f"notify-{name}", clock, settle_s=SETTLE_S)
        self.target = target
        self.messenger = messenger
        self._database = database
        self._to = name
        self._secrets = secrets

    def run_once(self) -> None:
        """Gather new notices, and send those that are due. Raises StoreUnavailable."""
        self._gather()
        while not self._stopped.is_set() and (row := self._next()) is not None:
            self._deliver(row)

    def pause_s(self) -> float:
        """Return the seconds until the next notice is due. Raises StoreUnavailable."""
        next_ms = self._database.read(lambda connection: outbox_rows.next_due(connection, self._to))
        if next_ms is None:
            return IDLE_S
        return min(IDLE_S, max(0.0, (next_ms - self._clock()) / 1000))

    def _gather(self) -> None:
        while not self._stopped.is_set():
            cursor, newest = self._database.read(
                lambda connection: (outbox_rows.cursor(connection, self._to), events.last_id(connection))
            )
            if cursor is None:
                self._keep([], newest)
                return
            if not self._gather_page(cursor, newest):
                return

    def _gather_page(self, cursor: int, newest: int) -> bool:
        """Process one page of events after the cursor; return whether there may be more. newest: the cursor moves at
        least here."""
        rows = self._database.read(lambda connection: outbox_rows.events_after(connection, cursor, _KINDS, PAGE))
        more = len(rows) == PAGE
        reached = max([cursor if more else max(newest, cursor), *(row["id"] for row in rows)])
        notices = [(row["id"], notice) for row in rows if (notice := self._readable(row)) is not None]
        if notices or reached - cursor >= PAGE:
            self._keep(notices, reached)
            crashpoint("notice-stored")
        return more

    def _keep(self, notices: list[tuple[int, Notice]], reached: int) -> None:
        self._database.write(lambda connection: self._store(connection, notices, reached))

    def _readable(self, row: dict[str, object]) -> Notice | None:
        """The notice of an event, or None. An event that cannot be read is logged and does not block later ones."""
        try:
            return self._notice(row)
        except Exception:
            log.exception("event %s cannot be made a notice to %s", row["id"], self._to)
            return None

    def _notice(self, row: dict[str, object]) -> Notice | None:
        row = self._secrets.clean(row)  # what an earlier version stored may hold secrets
        outcome = row["outcome"]
        notice = notice_of(
            EventContext(
                id=int(str(row["id"])),
                at=format_instant(int(str(row["at_ms"]))),
                kind=str(row["kind"]),
                data=row["data"] if isinstance(row["data"], dict) else {},
                task_id=_text(row["task_id"]),
                task_name=_text(row["task_name"]),
                run_id=_text(row["run_id"]),
                agent=_text(row["agent"]),
                outcome=Outcome.model_validate(outcome) if outcome is not None else None,
            )
        )
        return notice if notice is not None and notice.kind in self.target.events else None

    def _store(self, connection: Connection, notices: list[tuple[int, Notice]], reached: int) -> None:
        now_ms = self._clock()
        for event_id, notice in notices:
            outbox_rows.add(connection, self._to, event_id, notice.model_dump(mode="json"), now_ms)
        outbox_rows.move_cursor(connection, self._to, reached)
        outbox_rows.forget_old(connection, now_ms)

    def _next(self) -> Outbox | None:
        now_ms = self._clock()
        return self._database.read(lambda connection: outbox_rows.due(connection, self._to, now_ms))

    def _deliver(self, row: Outbox) -> None:
        attempts = row.attempts + 1
        changes: dict[str, object] = {"attempts": attempts}
        try:
            self._hand_over(row)
            crashpoint("notice-sent")
        except DeliveryFault as fault:
            now_ms = self._clock()
            detail = self._secrets.redact_piece(fault.detail)
            changes["error"] = detail
            if fault.lasting or attempts >= ATTEMPTS:
                log.error("a notice to %s is given up after attempt %d: %s", self._to, attempts, detail)
                changes |= {"state": DeliveryState.DEAD.value, "ended_ms": now_ms}
            else:
                log.warning("a notice to %s was not delivered, attempt %d: %s", self._to, attempts, detail)
                pause_ms = backoff_ms(FIRST_PAUSE_MS, attempts, f"{self._to}/{row.id}")
                changes["next_ms"] = now_ms + max(pause_ms, int(fault.after_s * SECOND_MS))
        else:
            changes |= {"state": DeliveryState.DELIVERED.value, "ended_ms": self._clock(), "error": None}
        self._database.write(lambda connection: outbox_rows.change(connection, row.id or 0, **changes))

    def _hand_over(self, row: Outbox) -> None:
        """Send the notice. Turns any failure into DeliveryFault, so that a notice that cannot be sent holds up none
        behind it."""
        try:
            notice = self._secrets.clean(Notice.model_validate(row.notice))
        except ValueError as error:
            raise DeliveryFault(f"the stored notice cannot be read: {error}", lasting=True) from error
        try:
            self.messenger.send(notice)
        except DeliveryFault:
            raise
        except Exception as error:
            log.exception("sending a notice to %s failed unexpectedly", self._to)
            raise DeliveryFault(f"it failed unexpectedly ({type(error).__name__})") from error


def _end(couriers: Sequence[_TargetWorker]) -> None:
    for courier in couriers:
        courier.stop()
    for courier in couriers:
        courier.close()
        courier.messenger.close()


def _text(value: object) -> str | None:
    return None if value is None else str(value)
