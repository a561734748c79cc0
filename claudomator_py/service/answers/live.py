"""What can be followed while it happens: events, and the output of runs. The web knows only this."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal, Protocol

from claudomator_py.core.run import Stream
from claudomator_py.core.views import EventView, LogEntryView, LogTextView

LogView = Literal["text", "structured"]


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events. task_id None: of all tasks and of none; kinds empty: all; by None: whoever caused them."""

    task_id: str | None = None
    kinds: tuple[str, ...] = ()
    by: str | None = None


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events in order. upto: the id to go on after, past all that the filter left out. more: others follow already."""

    items: tuple[EventView, ...]
    upto: int
    more: bool


@dataclass(frozen=True, slots=True)
class LogPosition:
    """A place in a log. offset: in bytes, where a line or a piece begins; taken: entries already had of what is there.

    Written as ``4711``, or ``4711.2`` where something was taken.
    """

    offset: int = 0
    taken: int = 0

    def __str__(self) -> str:
        return f"{self.offset}.{self.taken}" if self.taken else str(self.offset)


@dataclass(frozen=True, slots=True)
class LogItem:
    """A piece of text or an entry, and the place behind it."""

    after: LogPosition
    view: LogTextView | LogEntryView


class LogFeed(Protocol):
    """One reader's way through a log. For one thread at a time."""

    @property
    def position(self) -> LogPosition:
        """Where a new feed would go on without a gap."""

    @property
    def caught_up(self) -> bool:
        """Whether there was nothing left to read at the last look."""

    @property
    def ended(self) -> bool:
        """Whether the run is over and everything was read."""

    def read(self, most: int) -> list[LogItem]:
        """What follows, at most that many items; none when there is nothing yet, or nothing more."""


class Live(Protocol):
    """Synchronous and safe to call from many threads. Every method may raise ``core.errors.ServiceError``."""

    def newest_event(self) -> int:
        """The id of the newest event; 0 when there is none."""

    def events_gone(self) -> int:
        """The greatest id of an event that is not kept any more; 0: all are kept."""

    def event_filter(self, task: str | None, kinds: Collection[str], by: str | None = None) -> EventFilter:
        """The filter that is meant; task: as in ``Desk``; by: who caused them. Raises NotFound, Ambiguous."""

    def events(self, wanted: EventFilter, after: int, limit: int) -> EventPage:
        """Events with a greater id than ``after``, oldest first, at most ``limit``."""

    def last_events(self, wanted: EventFilter, limit: int) -> EventPage:
        """The newest events, oldest first, at most ``limit``."""

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call callback, on any thread, after something was stored. It must be quick and must not wait."""

    def open_log(
        self, run_id: str, stream: Stream, view: LogView, position: LogPosition, *, check: bool = False
    ) -> LogFeed:
        """A way through what the run writes, from that place. check: what its check does. Raises NotFound."""
