"""Notices: what was sent to whom, what was given up, and sending it again."""

from collections.abc import Mapping
from functools import partial

from sqlalchemy import Connection

from claudomator_py.domain.errors import Conflict, NotFound
from claudomator_py.domain.notice import DeliveryFault, DeliveryState, Notice, NoticeKind
from claudomator_py.domain.shape import Page, readable_instant
from claudomator_py.domain.units import format_instant
from claudomator_py.ports import Clock
from claudomator_py.resources import cursors
from claudomator_py.resources.notifications import DeliveryView, NotificationCalls
from claudomator_py.resources.session import Service, reading
from claudomator_py.store import outbox_rows
from claudomator_py.store.events import record
from claudomator_py.store.stored_json import readable
from claudomator_py.store.tables import Outbox
from claudomator_py.surface import answers
from claudomator_py.values import dataclass
from claudomator_py.workers.notifications import NotificationDispatcher

_NOT_READ = Notice(id="", kind=NoticeKind.TEST, at="", title="The stored notice cannot be read")


@dataclass(eq=False, repr=False)
class Notices(Service):
    """The service of notifications. Every method may raise ``domain.errors.ServiceError``."""

    dispatcher: NotificationDispatcher
    clock: Clock

    @reading(NotificationCalls.notifications)
    def deliveries(
        self, connection: Connection, state: DeliveryState | None, cursor: str | None, limit: int
    ) -> Page[DeliveryView]:
        """Return a page of them, newest first. Raises BadCursor."""
        listed = {"list": "notifications", "state": state}
        before = cursors.read_number(cursor, listed)
        rows = outbox_rows.page(connection, state.value if state is not None else None, before, limit + 1)
        return cursors.page(rows, limit, listed, lambda row: (row.id or 0,), partial(map, _view))

    def counts(self) -> Mapping[str, int]:
        """Return the number of them in each state, without states that none is in."""
        return self._read(outbox_rows.counts)

    @answers(NotificationCalls.retry_notification)
    def again(self, delivery: int) -> DeliveryView:
        """Send one that was given up again. Raises NotFound, Conflict."""

        def transaction(connection: Connection) -> Outbox:
            row = outbox_rows.find(connection, delivery)
            if row is None:
                remedy = "List them with `claudomator notifications`."
                raise NotFound(f"There is no notification {delivery}.", remedy=remedy)
            if not outbox_rows.revive(connection, delivery, self.clock()):
                remedy = "Only one that was given up (dead) can be retried."
                raise Conflict(f"Notification {delivery} is {row.state}.", remedy=remedy)
            record(connection, self.clock(), "notification_retried", data={"delivery": delivery, "to": row.target})
            return outbox_rows.find(connection, delivery) or row

        return _view(self._write(transaction))

    @answers(NotificationCalls.test_notification)
    def test(self, target: str) -> DeliveryView:
        """Send a test notice now, and return how it went; it is not kept. Raises NotFound."""
        messengers = self.dispatcher.messengers
        if target not in messengers:
            raise NotFound.among("target", target, messengers, none="configure one under `notify`")
        now = format_instant(self.clock())
        title = "A test of Claudomator's notifications"
        notice = Notice(id=f"test-{now}", kind=NoticeKind.TEST, at=now, title=title, text="It works.")
        state, error = DeliveryState.DELIVERED, ""
        try:
            messengers[target].send(notice)
        except DeliveryFault as fault:
            state, error = DeliveryState.DEAD, fault.detail
        return DeliveryView(
            id=0,
            target=target,
            state=state,
            attempts=1,
            error=error or None,
            created_at=now,
            ended_at=now,
            notice=notice,
        )


def _view(row: Outbox) -> DeliveryView:
    notice = readable(Notice, row.notice) or _NOT_READ.model_copy(update={"at": readable_instant(row.created_ms)})
    pending = row.state == DeliveryState.PENDING
    return DeliveryView.legible(row, next_at=row.next_ms if pending else None, notice=notice)
