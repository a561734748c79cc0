"""Track the turns of a Claude Code process, and whether it will begin another one by itself.

A ``result`` ends a turn. The process goes on while a background task is open, a wake-up is due or a message is queued,
and then exits by itself. As seen in 2.1.330 with ``-p --output-format stream-json``.
"""

from claudomator_py.agents.run_events import Copied, content_text
from claudomator_py.domain.report import Stage
from claudomator_py.json_fields import Event, count_of, event_of, objects_of, text_of

_OPENING = frozenset({"assistant", "user", "stream_event"})
_MAX_OPEN = 1_000
_OVER = frozenset({"completed", "failed", "killed", "stopped"})
_COMMAND = "local_bash"
_WAKE_UP = "ScheduleWakeup"
_SCHEDULES, _UNSCHEDULES = "CronCreate", "CronDelete"
_SOME_TIME = 2**53


class Turns(Copied):
    """The progress of the process. ended: the last turn has its result, and nothing has come since."""

    def __init__(self) -> None:
        self.ended = False
        self._tasks: dict[str, str | None] = {}
        """The types of the open background tasks by id."""
        self._tells_of_tasks = False
        """Whether this version has events for background tasks."""
        self._wakes_at: int | None = None
        """When the next wake-up is due, in epoch milliseconds; _SOME_TIME: unknown, it ends with the next turn."""
        self._queued = 0
        """How many messages wait for a turn of their own."""
        self._notified = False
        """Whether a task has ended since the last turn, of which the model is still to be told."""
        self._wake_calls: dict[str, bool] = {}
        """Unanswered wake-up calls by id: whether each schedules one or cancels it."""
        self._cron_calls: dict[str, Event] = {}
        """Unanswered calls that create or delete jobs, by id."""
        self._jobs: dict[str, tuple[str, int | None]] = {}
        """The scheduler's jobs by the call that created them: the answer, which contains the job's id, and when a
        one-time job is due, in epoch milliseconds."""

    @property
    def stage(self) -> Stage:
        """Where the run stands."""
        if not self.ended:
            return Stage.WORKING
        if self._notified or self._queued or self._wakes_at is not None:
            return Stage.WAITING
        if not self._tasks:
            return Stage.DONE
        # A background agent that is thinking is as silent as a server that nobody needs.
        return Stage.BACKGROUND if set(self._tasks.values()) == {_COMMAND} else Stage.WAITING

    def to_come(self, at_ms: int, *, stopped: bool) -> dict[str, int]:
        """Return what is lost if the program ends at that time, in epoch milliseconds: number by noun. stopped: whether
        whoever ended it accounts for its background commands himself.

        Jobs do not keep the program running: it exits at once, whatever its scheduler has.
        """
        jobs = sum(due is None or due > at_ms for _, due in self._jobs.values())
        tasks = 0 if stopped else len(self._tasks)
        counts = {"scheduled job": jobs, "wake-up": int(self._wakes_at is not None), "background task": tasks}
        return {what: number for what, number in counts.items() if number}

    def take(self, event: Event, at_ms: int | None) -> None:
        """Take the next event. at_ms: when it was printed, in epoch milliseconds; None: unknown."""
        self._take_jobs(event)
        match event.get("type"):
            case "system":
                self._take_system(event)
            case "result":
                self._take_result(event)
            case "command_lifecycle" if event.get("state") == "started" and text_of(event, "wakeup_source"):
                self._begin()
                self._wakes_at = None
            case str() as kind if kind in _OPENING and text_of(event, "parent_tool_use_id") is None:
                self._begin()
                if self._wakes_at is not None and at_ms is not None and at_ms >= self._wakes_at:
                    self._wakes_at = None
                self._take_wake_up(event)
                self._take_task(event)

    def _begin(self) -> None:
        if self.ended and self._wakes_at == _SOME_TIME:
            self._wakes_at = None
        self.ended, self._notified, self._queued = False, False, 0

    def _take_system(self, event: Event) -> None:
        task_id = text_of(event, "task_id")
        self._tells_of_tasks = self._tells_of_tasks or "task" in (text_of(event, "subtype") or "")
        match event.get("subtype"):
            case "init" | "api_retry":
                self._begin()
            case "background_tasks_changed":
                tasks = objects_of(event, "tasks")[:_MAX_OPEN]
                self._tasks = {text_of(task, "task_id") or "": text_of(task, "task_type") for task in tasks}
            case "task_started" if task_id is not None and event.get("is_backgrounded") is not False:
                if len(self._tasks) < _MAX_OPEN:
                    self._tasks[task_id] = text_of(event, "task_type")
            case "task_updated" if text_of(event_of(event, "patch"), "status") not in _OVER:
                pass
            case "task_updated" | "task_notification":
                self._tasks.pop(task_id or "", None)
                self._notified = self.ended

    def _take_result(self, event: Event) -> None:
        """Take a result. One outside any turn reports what an earlier process left: the first turn is still to come."""
        self.ended = not is_of_no_turn(event)
        self._queued = count_of(event, "queued_turn_count") or 0

    def _take_wake_up(self, event: Event) -> None:
        """Take a wake-up call or its result, which in some versions has the time; 0 means cancelled."""
        for block in objects_of(event_of(event, "message"), "content"):
            asked = self._wake_calls.pop(text_of(block, "tool_use_id") or "", None)
            if asked is not None and not block.get("is_error"):
                at_ms = count_of(event_of(event, "tool_use_result"), "scheduledFor")
                self._wakes_at = (_SOME_TIME if asked else None) if at_ms is None else at_ms or None
            if block.get("name") == _WAKE_UP and len(self._wake_calls) < _MAX_OPEN:
                self._wake_calls[text_of(block, "id") or ""] = event_of(block, "input").get("stop") is not True

    def _take_jobs(self, event: Event) -> None:
        """Take calls about the scheduler's jobs, a subagent's included."""
        for block in objects_of(event_of(event, "message"), "content"):
            if block.get("name") in (_SCHEDULES, _UNSCHEDULES) and len(self._cron_calls) < _MAX_OPEN:
                self._cron_calls[text_of(block, "id") or ""] = block
            call_id = text_of(block, "tool_use_id") or ""
            if (asked := self._cron_calls.pop(call_id, None)) is None or block.get("is_error"):
                continue
            if asked.get("name") == _SCHEDULES:
                if len(self._jobs) < _MAX_OPEN:
                    self._jobs[call_id] = _job(event_of(asked, "input"), event_of(event, "tool_use_result"), block)
            elif name := text_of(event_of(asked, "input"), "id"):
                self._jobs = {call: job for call, job in self._jobs.items() if name not in job[0].split()}

    def _take_task(self, event: Event) -> None:
        """Take a background task from the call's result, in versions without events for tasks."""
        task_id = text_of(event_of(event, "tool_use_result"), "backgroundTaskId")
        if task_id is not None and not self._tells_of_tasks and len(self._tasks) < _MAX_OPEN:
            self._tasks[task_id] = _COMMAND


def _job(given: Event, made: Event, block: Event) -> tuple[str, int | None]:
    """Return the answer to the call that created a job, and when a one-time job is due, if known."""
    text = " ".join((text_of(made, "id") or "", content_text(block.get("content"))))
    once = given.get("recurring") is False or made.get("recurring") is False
    return text, count_of(made, "nextFireAt") if once else None


def is_of_no_turn(result: Event) -> bool:
    """Return whether the result was printed before the first turn, as on ``--resume`` with background tasks left over.
    Its words are then those of an earlier process, or of the program."""
    usage = event_of(result, "usage")
    used = (count_of(usage, "input_tokens") or 0) + (count_of(usage, "output_tokens") or 0)
    return result.get("is_error") is False and count_of(result, "num_turns") == 0 and not used
