"""Notices in memory: deliveries that a test makes, and targets that answer as told."""

from dataclasses import dataclass, field

from claudomator_py.domain.errors import Conflict, NotFound
from claudomator_py.domain.notice import DeliveryState, DeliveryView, Notice, NoticeKind
from claudomator_py.domain.views import Page
from claudomator_py.queries import cursors

AT = "2026-11-22T02:00:00.000Z"


@dataclass
class FakeNotices:
    """Implements ``service.notices.Notices``. faults: by target, why a test is not delivered."""

    sent: list[DeliveryView] = field(default_factory=list)
    faults: dict[str, str | None] = field(default_factory=dict)

    def add(self, target: str, state: DeliveryState, error: str | None = None) -> DeliveryView:
        """A delivery in that state."""
        number = len(self.sent) + 1
        notice = Notice(id=f"event-{number}", kind=NoticeKind.FAILED, at=AT, title=f"task-{number}: failed (lost)")
        view = DeliveryView(
            id=number, target=target, state=state, attempts=1, error=error, created_at=AT, notice=notice
        )
        self.sent.append(view)
        return view

    def deliveries(self, state: DeliveryState | None, cursor: str | None, limit: int) -> Page[DeliveryView]:
        listed = {"list": "notifications", "state": state}
        before = cursors.read_number(cursor, listed) if cursor is not None else None
        found = [
            one for one in reversed(self.sent) if state in (None, one.state) and (before is None or one.id < before)
        ]
        more = cursors.write_number(found[limit - 1].id, listed) if len(found) > limit else None
        return Page(items=tuple(found[:limit]), next_cursor=more)

    def again(self, delivery: int) -> DeliveryView:
        for place, one in enumerate(self.sent):
            if one.id == delivery:
                if one.state is not DeliveryState.DEAD:
                    raise Conflict(f"Delivery {delivery} is {one.state}.", remedy="Only a dead one is sent again.")
                self.sent[place] = one.model_copy(update={"state": DeliveryState.PENDING})
                return self.sent[place]
        raise NotFound(f"There is no delivery {delivery}.", remedy="List them.")

    def test(self, target: str) -> DeliveryView:
        if target not in self.faults:
            raise NotFound(f"There is no target {target!r}.", remedy="Configure one under `notify`.")
        error = self.faults[target]
        state = DeliveryState.DELIVERED if error is None else DeliveryState.DEAD
        notice = Notice(id="test", kind=NoticeKind.TEST, at=AT, title="A test")
        return DeliveryView(id=0, target=target, state=state, attempts=1, error=error, created_at=AT, notice=notice)
