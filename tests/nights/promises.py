"""What an operator relies on, held against the rows and against what the services outside saw."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from claudomator_py.domain.limits import TRIED_FIRST, ramp
from claudomator_py.domain.outcome import REASON_POLICIES, HoldKind, Reason
from claudomator_py.domain.task import OnLimit
from claudomator_py.store.tables import Run
from tests.nights.outside import Outside, Turn
from tests.nights.records import Records
from tests.nights.work import Job


def keep(records: Records, outside: Outside, jobs: Sequence[Job], given_up: frozenset[str]) -> None:
    """Assert them all. given_up: tasks that the operator cancelled, and those that wait for them."""
    broken = [
        *_done(records, outside, jobs, given_up),
        *_once(records, outside),
        *_caps(records),
        *_order(records, jobs),
        *_dependencies(records, outside),
        *_holds_kept(records),
        *_resets_kept(records, outside),
        *_one_goes_first(records),
        *_attempts(records),
    ]
    assert not broken, "\n".join(broken[:30])


def _done(records: Records, outside: Outside, jobs: Sequence[Job], given_up: frozenset[str]) -> Iterator[str]:
    """All that could be done was, and is there once; nothing else is."""
    by_name = {task.name: task for task in records.tasks.values()}
    effects = Counter(outside.effects())
    last = {turn.task_id: turn.verdict for turn in outside.turns}
    failed: set[str] = set()
    for job in jobs:
        task = by_name.get(job.name)
        if task is None:
            yield f"{job.name} is lost"
            continue
        if failed.intersection(records.specs[task.id].depends_on):
            wanted: tuple[str, str | None] = ("FAILED", "dependency_failed")
        elif job.name in given_up:
            wanted = ("CANCELLED", None)
        elif job.fails >= records.specs[task.id].retry.max_attempts:
            wanted = ("FAILED", {"fail": "agent_error"}.get(last[task.id], last[task.id]))
        else:
            wanted = ("COMPLETED", None)
        if records.specs[task.id].on_limit is OnLimit.FAIL and last.get(task.id) == "limited":
            wanted = ("FAILED", "rate_limited")
        if (task.state, task.reason) != wanted:
            yield f"{job.name} is {task.state} {task.reason}, not {wanted}"
        if task.state != "COMPLETED":
            failed.add(job.name)
    for task in records.tasks.values():
        if effects[task.id] != (task.state == "COMPLETED"):
            yield f"{task.name} is {task.state} and was done {effects[task.id]} times"


def _once(records: Records, outside: Outside) -> Iterator[str]:
    """No run begins twice, or without its row; none that was started is unheard of."""
    first = Counter(turn.run_id for turn in outside.turns if turn.number == 1)
    rows = {run.id: run for run in records.runs}
    for run_id, count in first.items():
        if count > 1:
            yield f"run {run_id} began {count} times"
        if run_id not in rows or rows[run_id].state == "revoked":
            yield f"run {run_id} began, and has no row that says so"
    for run in records.runs:
        if run.state != "revoked" and run.id not in first:
            yield f"run {run.id} of {records.name(run)} ended as {run.ended_as} {run.reason}, and never began"


def _caps(records: Records) -> Iterator[str]:
    """At no moment more runs than slots: in all, on an agent, in a directory, of a task."""
    for run in records.runs:
        beside = [other for other in records.runs if other.started_ms <= run.started_ms < records.span(other).end]
        on_agent = sum(other.agent == run.agent for other in beside)
        in_directory = sum(other.dir_key == run.dir_key for other in beside) if run.dir_key else 0
        of_task = sum(other.task_id == run.task_id for other in beside)
        if len(beside) > records.total:
            yield f"{len(beside)} runs at {run.started_ms}"
        if on_agent > records.agents[run.agent].max_concurrent:
            yield f"{on_agent} runs on {run.agent} at {run.started_ms}"
        if in_directory > 1:
            yield f"{in_directory} runs in {run.dir_key} at {run.started_ms}"
        if of_task > 1:
            yield f"{of_task} runs of {records.name(run)} at {run.started_ms}"


def _order(records: Records, jobs: Sequence[Job]) -> Iterator[str]:
    """Tasks that differ in rank only are begun in its order."""
    plain = {job.name for job in jobs if job.plain}
    tasks = sorted(
        (task for task in records.tasks.values() if task.name in plain),
        key=lambda task: (task.rank_ms, task.created_ms, task.id),
    )
    firsts = [(task.name, min((run.started_ms for run in records.runs_of(task.id)), default=0)) for task in tasks]
    for (earlier, at), (later, then) in pairwise(firsts):
        if at > then:
            yield f"{later} was begun before {earlier}, which comes first"


def _dependencies(records: Records, outside: Outside) -> Iterator[str]:
    """Nothing begins before what it depends on is done."""
    begun: dict[str, int] = {}
    done: dict[str, int] = {}
    for turn in outside.turns:
        begun.setdefault(turn.task_id, turn.at_ms)
        if turn.verdict == "success":
            done[turn.task_id] = turn.at_ms
    ids = {task.name: task.id for task in records.tasks.values()}
    for task_id, spec in records.specs.items():
        for name in spec.depends_on:
            if task_id in begun and begun[task_id] < done.get(ids[name], begun[task_id] + 1):
                yield f"{spec.name} began before {name} was done"


def _holds_kept(records: Records) -> Iterator[str]:
    """Nothing is started on what is held."""
    for hold in records.holds:
        span = hold.span(records.ended)
        for run in records.runs:
            if hold.is_on(run) and span.begin < run.started_ms < span.end:
                since, left = run.started_ms - span.begin, span.end - run.started_ms
                yield f"{records.name(run)} was started {since} ms into a hold on {hold.bucket.label}, {left} ms early"


def _resets_kept(records: Records, outside: Outside) -> Iterator[str]:
    """A reset that was told is what is held until, and no run that begins after the daemon knew meets it again."""
    runs = {run.id: run for run in records.runs}
    for turn in outside.turns:
        run = runs.get(turn.run_id)
        if turn.verdict != "limited" or run is None:
            continue
        held = [
            hold
            for hold in records.holds
            if hold.by == run.id
            or (hold.is_on(run) and hold.reason == run.reason and (hold.until or 0) > records.span(run).end)
        ]
        until = max((hold.until or 0 for hold in held), default=None)
        if until is None:
            yield f"run {run.id} met a limit, and nothing was held"
        elif turn.reported and turn.reset_at is not None and until < turn.reset_at:
            yield f"{held[0].bucket.label} was held until {until}, and had said {turn.reset_at}"


def _one_goes_first(records: Records) -> Iterator[str]:
    """After a limit or an outage one run, then as many more as the answers allow."""
    for hold in records.holds:
        if hold.until is None or hold.reason not in TRIED_FIRST:
            continue
        care = hold.care(records.ended)
        since = [run for run in records.runs if hold.is_on(run) and run.started_ms >= care.begin]
        for run in since:
            at = run.started_ms
            if at >= care.end:
                break
            living = sum(other.started_ms <= at < records.span(other).end for other in since)
            answered = sum(other.answered_ms is not None and other.answered_ms <= at for other in since)
            if living > ramp(answered):
                yield (
                    f"{at - care.begin} ms after the reset of {hold.bucket.label} there were {living} runs on it, and"
                    f" {answered} had answered"
                )


def _attempts(records: Records) -> Iterator[str]:
    """Limits, logins and runs that never began use up no attempt; all else does."""
    by_task: dict[str, list[Run]] = defaultdict(list)
    for run in records.runs:
        by_task[run.task_id].append(run)
    for runs in by_task.values():
        counted = 0
        for run in sorted(runs, key=lambda run: run.seq):
            if run.attempt != counted + 1:
                yield f"{records.name(run)}: run {run.seq} is attempt {run.attempt}, not {counted + 1}"
            counted += _counts(run)
        used = records.tasks[runs[0].task_id].attempt
        if used != counted:
            yield f"{records.name(runs[0])} used {used} attempts, and made {counted}"


def _counts(run: Run) -> bool:
    if run.state == "revoked" or run.ended_as == "limited":
        return False
    policy = REASON_POLICIES[Reason(run.reason)] if run.reason is not None else None
    return policy is None or (policy.counts_attempt and policy.hold is not HoldKind.UNTIL_OPERATOR)


def avoidable(turns: Sequence[Turn]) -> int:
    """Limits that a run met before it had done anything."""
    return sum(turn.verdict == "limited" and turn.number == 1 for turn in turns)
