"""Sentences on a task: what it waits for, why it failed, what it asks, and what was answered."""

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection

from claudomator_py.domain.blocked import WAITS, BlockCode, Blocked, blocked
from claudomator_py.domain.blocked_words import blocked_text, refs_text
from claudomator_py.domain.inputs import InputRequest, grant_text
from claudomator_py.domain.lifecycle import UNSUCCESSFUL, DependencyState, InputKind
from claudomator_py.domain.outcome import CHECK_REASONS, REASON_POLICIES, Denied, Outcome, Reason
from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.domain.report import Backlog
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import counted, format_duration, format_instant, short_id, size_text
from claudomator_py.domain.verdict import approvers_text
from claudomator_py.domain.wording import TaskRef, clock_text, due_text, instant_text
from claudomator_py.environment.worktrees import TREE_USED
from claudomator_py.prompts.conversations import GIVEN_UP
from claudomator_py.resources.runs.sentences import with_error
from claudomator_py.resources.tasks import TaskView
from claudomator_py.store import dependency_rows, schedule_rows, specialist_rows
from claudomator_py.store.tables import Event, Task
from claudomator_py.store.task_rows import resumption_of
from claudomator_py.tasks.inputs import current_request, request_of_older_version
from claudomator_py.texts import clause, one_line, subject_line

_COMMIT = 10
_MAX_ROLE = 160


def not_ready(task: Task, dependencies: Sequence[DependencyState]) -> Blocked:
    """Return why the task is not ready."""
    code = WAITS.get(task.reason or "", BlockCode.TIME)
    if code is BlockCode.DEPENDENCY:
        return blocked(code, tasks=_refs(state for state in dependencies if state.state != "COMPLETED"))
    resumption = resumption_of(task)
    if code is BlockCode.BACKOFF and resumption is not None and resumption.confirms:
        code = BlockCode.CONFIRMATION
    return blocked(code, until=task.until_ms)


def stale_sentences(trouble: str) -> list[str]:
    """Return what to know of a task while nothing can be stored. trouble: why, and what to do."""
    return [f"Nothing can be stored at present, so what has happened since is missing here: {trouble}."]


def backlog_sentences(backlog: Backlog | None) -> list[str]:
    """Return a sentence on the unread output of a running task's agent, if there is enough to matter."""
    if backlog is None:
        return []
    if backlog.ended:
        return ["Its agent has ended. Its outcome is known once its output has been read, which takes seconds."]
    behind = f"Its agent prints faster than Claudomator reads, which is {size_text(backlog.unread)} behind."
    return [
        f"{behind} Its usage, and a limit that it waits for, are noticed late; cancelling and its timeouts still work."
    ]


def check_waits_sentence(why: Blocked) -> str:
    """Return a sentence on why the check of an ended run has not begun."""
    return f"Its agent has ended, and its check waits for a slot: {blocked_text(why)}."


def failure_text(reason: str, outcome: Outcome | None, dependencies: Sequence[DependencyState] = ()) -> str:
    """Return why the task failed: the meaning of the code, with the agent's error message or the failed
    dependencies."""
    meaning = REASON_POLICIES[Reason(reason)].meaning
    if reason == Reason.DEPENDENCY_FAILED:
        ended = _refs(state for state in dependencies if state.state in UNSUCCESSFUL)
        return f"{meaning[:-1]}: {refs_text(ended)}." if ended else meaning
    detail = outcome.error if outcome is not None and outcome.reason == reason else None
    if detail and reason in CHECK_REASONS:
        detail = detail.splitlines()[0]  # the check's own sentence has its output
    return with_error(meaning, detail)


def with_bound(failed: str, task: Task, spec: TaskSpec) -> str:
    """Return why the task failed, with the setting by which its run was stopped and where to raise it, if one was."""
    bounds = {
        Reason.TIMEOUT.value: ("timeout", spec.timeout),
        Reason.STALLED.value: ("stall_timeout", spec.stall_timeout),
    }
    if task.reason not in bounds:
        return failed
    setting, bound_ms = bounds[task.reason]
    where = "on its page" if task.file_path is None else f"in {task.file_path}"
    return f"{failed} Its {setting} is {format_duration(bound_ms)}; raise it {where}."


def failure_clause(reason: str, outcome: Outcome | None, dependencies: Sequence[DependencyState]) -> str:
    """Return why the task failed as a clause, for lists: the beginning of the error message, or the meaning of the
    code."""
    detail = outcome.error if outcome is not None and outcome.reason == reason else None
    detail_text = subject_line(detail or "") if reason in CHECK_REASONS else clause(detail or "")
    return detail_text or failure_text(reason, None, dependencies)


def thread_sentences(view: TaskView) -> list[str]:
    """Return which task it continues, and which task began the thread if that is another."""
    if view.continues is None:
        return []
    began = ""
    if view.thread is not None and view.thread != view.continues.task_id:
        began = f", in the thread that task {short_id(view.thread)} began"
    return [f"It continues {view.continues.name} ({view.continues.state or 'not seen yet'}){began}."]


def conversation_sentences(task: Task, events: Sequence[Event]) -> list[str]:
    """Return sentences on the conversation that it was to continue, since it last began again. events: the task's, in
    order."""
    sentences: list[str] = []
    for event in events:
        if _begins_again(event):
            sentences.clear()
        elif event.kind == GIVEN_UP:
            run, why = short_id(str(event.data["resumes"])), event.data["why"]
            sentences.append(f"The conversation of run {run} was given up: {why}. A fresh one takes its place.")
    resumption = resumption_of(task)
    if task.state == "WAITING" and resumption is not None and resumption.holder is not None:
        run = short_id(resumption.run_id)
        sentences.append(f"Its next run resumes the conversation of run {run} on {resumption.agent}.")
    return sentences


def _begins_again(event: Event) -> bool:
    """Return whether what was said to the task before the event no longer counts."""
    return event.kind in ("restart_requested", "content_changed") or "revived_by" in event.data


def who(event: Event) -> str:
    """Return who caused the event, as the beginning of a sentence."""
    return "The operator" if event.by in (None, OPERATOR.id) else str(event.by)


def cancelled_sentences(task: Task, events: Sequence[Event]) -> list[str]:
    """Return who cancelled it. events: the task's, in order."""
    if task.state != "CANCELLED":
        return []
    of_it = [
        event
        for event in events
        if event.by is not None and (event.kind == "cancel_requested" or event.data.get("state") == "CANCELLED")
    ]
    if not of_it:
        return []
    name = "the operator" if of_it[-1].by == OPERATOR.id else of_it[-1].by
    return [f"It was cancelled by {name}."]


def discarded_sentences(events: Sequence[Event]) -> list[str]:
    """Return which content will never run, because it arrived during a run that was then cancelled. events: the task's,
    in order."""
    discarded = None
    for event in events:
        if event.kind == "cancel_requested":
            discarded = event.data.get("discarded_revision", discarded)
        elif event.kind in ("content_changed", "restart_requested"):
            discarded = None
    if discarded is None:
        return []
    queued = "Save the file again, or restart the task, to queue it."
    return [f"Its changed content (revision {discarded}) was cancelled with it. {queued}"]


def tree_sentences(events: Sequence[Event]) -> list[str]:
    """Return sentences on the task's work tree, and on what it lacks. events: the task's, in order."""
    tree = next((event.data for event in reversed(events) if event.kind == TREE_USED), None)
    if tree is None:
        return []
    at = f" of {tree['begun_at']}" if tree.get("begun_at") else ""
    sentences = [f"Its branch is {tree['branch']}, from commit {tree['base'][:_COMMIT]}{at}, in {tree['path']}."]
    if passed_over := tree.get("passed_over"):
        remedy = "Merge them, or name one of these tasks as `base`."
        sentences.append(f"None of {', '.join(passed_over)} contains the others, so it began at none of them. {remedy}")
    if count := tree.get("left_behind"):
        files, are = counted(count, "file"), "is" if count == 1 else "are"
        remedy = "`commit: true` on those tasks commits such files."
        sentences.append(f"{files} that the tasks before it left uncommitted {are} not in that tree. {remedy}")
    if unexamined := tree.get("unexamined"):
        left = f"What was left uncommitted on {', '.join(unexamined)}"
        sentences.append(f"{left} could not be examined, and is not in that tree.")
    if tree.get("uncommitted_left_out"):
        sentences.append("The repository had uncommitted changes then: they are not in that tree.")
    if tree.get("submodules_left_out"):
        sentences.append("Its submodules are not checked out there.")
    if filters := tree.get("filters_left_out"):
        names, them = ", ".join(filters), "filter" if len(filters) == 1 else "filters"
        sentences.append(f"Not run: the content {them} {names} of its repository's configuration. Your own are run.")
    return sentences


def _refs(states: Iterable[DependencyState]) -> tuple[TaskRef, ...]:
    return tuple(TaskRef(name=state.name, state=state.state) for state in states)


def revival_sentences(connection: Connection, task: Task) -> list[str]:
    """Return whose restart revives a task that failed because of a dependency; for one that asks a person, what it
    waits for even after the answer."""
    if (task.state, task.reason) == ("FAILED", Reason.DEPENDENCY_FAILED):
        return [f"Restart {', '.join(dependency_rows.first_failed(connection, task.id))}; this revives {task.name}."]
    if task.state != "NEEDS_INPUT":
        return []
    if failed := dependency_rows.first_failed(connection, task.id):
        return [f"Restart {', '.join(failed)} first; {task.name} cannot continue before that."]
    refs = _refs(state for state in dependency_rows.states(connection, task.id) if state.state != "COMPLETED")
    return [f"Then it {blocked_text(blocked(BlockCode.DEPENDENCY, tasks=refs))}."] if refs else []


def schedule_sentences(connection: Connection, task: Task) -> list[str]:
    """Return sentences on the schedule that created the task, or that it waits for by mistake."""
    sentences = []
    due = schedule_rows.fire_of(connection, task.id)
    if due is not None:
        fire, schedule = due
        when = (
            "at an operator's request" if fire.by == "operator" else f"due {instant_text(format_instant(fire.due_ms))}"
        )
        sentences.append(f"It was made by the schedule {schedule.name}, {when} ({schedule.cron}, {schedule.timezone}).")
    if task.state == "WAITING":
        for name, bound_id, _ in dependency_rows.bound(connection, task.id):
            if bound_id is None and schedule_rows.named(connection, name, task.organisation) is not None:
                sentences.append(
                    f"{name} is a schedule: its tasks are named {name}.TIME, and none of them ends the wait."
                )
    return sentences


def role_sentences(connection: Connection, task: Task, by: Principal) -> list[str]:
    """Return the prompt of the task's specialist, or of the one that does it once approved, on one line, if the caller
    can see the specialist."""
    asked = current_request(task) if task.state == "NEEDS_INPUT" else None
    specialist = task.specialist if asked is None else asked.specialist or task.specialist
    card = None if specialist is None else specialist_rows.find(connection, specialist, by)
    prompt = "" if card is None else one_line(card.card.system_prompt)
    if not prompt:
        return []
    shown = prompt if len(prompt) <= _MAX_ROLE else f"{prompt[:_MAX_ROLE].rsplit(' ', 1)[0]} \u2026"
    return [f"{specialist} works by its prompt: {shown}"]


def rejection(task: Task) -> str | None:
    """Return the reason given by whoever rejected the task."""
    asked = current_request(task)
    return None if asked is None else asked.rejected


def expiry(task: Task, now_ms: int) -> str | None:
    """Return what nobody did in time, for a task that failed with reason ``expired``."""
    asked = current_request(task)
    if asked is None or asked.until_ms is None:
        return None
    due = clock_text(asked.until_ms, now_ms)
    if asked.kind is InputKind.APPROVAL:
        return f"Nobody approved it by {due}; it {asked.words}."
    return f"Nobody answered by {due}: {asked.words}"


def input_sentences(task: Task, events: Sequence[Event], now_ms: int, *, specialists: bool) -> list[str]:
    """Return sentences on answers, approvals and rejections in this generation, and on how to reply if it asks.

    events: the task's, in order. specialists: whether the caller can see any.
    """
    sentences: list[str] = []
    for event in events:
        if _begins_again(event):
            sentences.clear()
        elif event.kind == "answered":
            sentences.append(f"{who(event)} answered: {event.data.get('answer') or event.data['meant']}")
        elif event.kind == "approved":
            what = ", ".join(map(grant_text, event.data.get("tools", ()))) or "its first run"
            what += "".join(f", and `{command}`" for command in event.data.get("commands", ()))
            why = f": {event.data['why']}" if event.data.get("why") else ""
            sentences.append(f"{who(event)} approved {what}{why}.")
        elif event.kind == "rejected":
            sentences.append(f"{who(event)} rejected it.")
    if task.state == "NEEDS_INPUT":
        asked = current_request(task) or request_of_older_version(task)
        sentences += _remedies(task, asked, specialists=specialists)
        if asked.until_ms is not None:
            sentences.append(f"If nobody does by {due_text(asked.until_ms, now_ms)}, it fails: expired.")
        if task.kept_until_ms is not None and task.kept_until_ms > now_ms:
            until = clock_text(task.kept_until_ms, now_ms)
            sentences.append(f"No other task works in {task.dir_key} until {until}, or until it continues.")
    return sentences


def _allowing(call: Denied) -> str:
    """Return what approving the call allows, in words."""
    words = grant_text(call.rule or "")
    return words if call.beyond is None else f"exactly {words}, as {call.beyond}"


def _remedies(task: Task, asked: InputRequest, *, specialists: bool) -> list[str]:
    name = task.name
    reject = f"`claudomator reject {name}` ends it."
    match asked.kind:
        case InputKind.APPROVAL if asked.run_id is None:
            lets = "lets it start" if asked.specialist is None else f"lets {asked.specialist} start it"
            if asked.commands:
                lets += f" and run {', '.join(f'`{command}`' for command in asked.commands)} in its directory"
            if specialists and task.specialist is None:
                also = "also says who does it" if asked.specialist is None else "gives it to somebody else"
                lets += f", `--specialist ID` {also}"
            who = [f"It has to be approved by {approvers_text(asked.approvers)}."] if asked.approvers else []
            return [f"`claudomator approve {name}` {lets}; {reject}", *who]
        case InputKind.APPROVAL if asked.asks_to_continue:
            instead = f'`claudomator answer {name} "..."` also says how'
            return [f"`claudomator approve {name}` has {asked.agent} continue it; {instead}; {reject}"]
        case InputKind.APPROVAL:
            rules = list(dict.fromkeys(_allowing(tool) for tool in asked.tools if tool.rule is not None))
            without = next((tool.tool for tool in asked.tools if tool.rule is None), None)
            allows = f"`claudomator approve {name}` allows {', '.join(rules)}"
            if without is not None:
                allows = (
                    f"Nothing allows that call alone; `claudomator approve {name} --tool {without}` allows {without}"
                )
            instead = f'`claudomator answer {name} "..."` tells {asked.agent} to do without'
            return [f"{allows}; {instead}; {reject}"]
        case InputKind.CLARIFICATION if asked.run_id is None:
            gives = f"`claudomator answer {name} SPECIALIST` gives it to that one, and a sentence adds to the task"
            return [f"{gives}; {reject}"]
        case InputKind.LOGIN:
            return [f"Log in, then: claudomator release {asked.agent or 'AGENT'}"]
        case _:
            agent = asked.agent or "its agent"
            return [f'`claudomator answer {name} "..."` continues the conversation of {agent} with it; {reject}']
