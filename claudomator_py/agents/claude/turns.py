"""The turns of one process of Claude Code, and what it will begin another one for by itself.

A ``result`` ends a turn. The process goes on while a background task is open, a wake-up is due or a message is queued,
and exits by itself once nothing is. As seen of 2.1.330, ``-p --output-format stream-json``.
"""

from claudomator_py.agents.jsonlines import Event, count_of, event_of, list_of, text_of
from claudomator_py.domain.report import Stage

_OPENING = frozenset({"assistant", "user", "stream_event"})
_MOST_OPEN = 1_000
_OVER = frozenset({"completed", "failed", "killed", "stopped"})
_COMMAND = "local_bash"
_WAKE_UP = "ScheduleWakeup"


class Turns:
    """How far the process has come. ended: whether the last turn has its result, and nothing has come since."""

    def __init__(self) -> None:
        self.ended = False
        self._tasks: dict[str, str | None] = {}
        """The types of the background tasks that are open, by their ids."""
        self._wakes_at: int | None = None
        """When the next wake-up is due, in epoch milliseconds."""
        self._queued = 0
        """How many messages wait for a turn of their own."""
        self._notified = False
        """Whether the model is to be told of a task that has ended since the last turn."""
        self._wake_calls: set[str] = set()
        """The ids of calls that may set or cancel a wake-up, and have no result yet."""

    def copy(self) -> "Turns":
        """Another one that has taken the same."""
        other = Turns()
        other.ended, other._wakes_at, other._queued = self.ended, self._wakes_at, self._queued
        other._notified, other._tasks, other._wake_calls = self._notified, self._tasks.copy(), self._wake_calls.copy()
        return other

    @property
    def stage(self) -> Stage:
        """How far the run has come."""
        if not self.ended:
            return Stage.WORKING
        if self._notified or self._queued or self._wakes_at is not None:
            return Stage.WAITING
        if not self._tasks:
            return Stage.DONE
        # An agent that thinks is as quiet as a server that nobody needs.
        return Stage.BACKGROUND if set(self._tasks.values()) == {_COMMAND} else Stage.WAITING

    def take(self, event: Event, at_ms: int | None) -> None:
        """Take the next event. at_ms: when it was printed, in epoch milliseconds, where it says so."""
        match event.get("type"):
            case "system":
                self._take_system(event)
            case "result":
                self._take_result(event)
            case "command_lifecycle" if event.get("state") == "started" and text_of(event, "wakeup_source"):
                self._wakes_at = None
            case str() as kind if kind in _OPENING and text_of(event, "parent_tool_use_id") is None:
                self._begin()
                if self._wakes_at is not None and at_ms is not None and at_ms >= self._wakes_at:
                    self._wakes_at = None
                self._take_wake_up(event)

    def _begin(self) -> None:
        self.ended, self._notified, self._queued = False, False, 0

    def _take_system(self, event: Event) -> None:
        task_id = text_of(event, "task_id")
        match event.get("subtype"):
            case "init" | "api_retry":
                self._begin()
            case "background_tasks_changed":
                tasks = [task for task in list_of(event, "tasks")[:_MOST_OPEN] if isinstance(task, dict)]
                self._tasks = {text_of(task, "task_id") or "": text_of(task, "task_type") for task in tasks}
            case "task_started" if task_id is not None and event.get("is_backgrounded") is not False:
                if len(self._tasks) < _MOST_OPEN:
                    self._tasks[task_id] = text_of(event, "task_type")
            case "task_updated" if text_of(event_of(event, "patch"), "status") in _OVER:
                self._tasks.pop(task_id or "", None)
            case "task_notification":
                self._tasks.pop(task_id or "", None)
                self._notified = self.ended

    def _take_result(self, event: Event) -> None:
        """One of no turn tells of what an earlier process has left behind: the first turn is still to come."""
        self.ended = not is_of_no_turn(event)
        self._queued = count_of(event, "queued_turn_count") or 0

    def _take_wake_up(self, event: Event) -> None:
        """The result of the call says when the wake-up comes; one without a time has cancelled it."""
        blocks = [block for block in list_of(event_of(event, "message"), "content") if isinstance(block, dict)]
        called = {text_of(block, "id") or "" for block in blocks if block.get("name") == _WAKE_UP}
        answered = {text_of(block, "tool_use_id") or "" for block in blocks if not block.get("is_error")}
        scheduled = event_of(event, "tool_use_result")
        if scheduled and answered & self._wake_calls:
            self._wakes_at = count_of(scheduled, "scheduledFor") or None
        self._wake_calls = (self._wake_calls - answered) | called


def is_of_no_turn(result: Event) -> bool:
    """Whether that result was printed before the first turn, as on ``--resume`` with background tasks left over."""
    usage = event_of(result, "usage")
    used = (count_of(usage, "input_tokens") or 0) + (count_of(usage, "output_tokens") or 0)
    said = (text_of(result, "result") or "").strip()
    return result.get("is_error") is False and count_of(result, "num_turns") == 0 and not used and not said
