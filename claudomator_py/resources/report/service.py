"""Making a report from rows: what ended in a span of time, and what is open now."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, tzinfo

from sqlalchemy import Connection

from claudomator_py.domain.blocked_words import brief_of, wait_of
from claudomator_py.domain.changes import RunChanges, net_changes
from claudomator_py.domain.errors import Invalid, Problem
from claudomator_py.domain.health import CheckView
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason
from claudomator_py.domain.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, format_instant
from claudomator_py.domain.wording import worded
from claudomator_py.domain.worktree import HEADS, short_ref
from claudomator_py.ports import Clock
from claudomator_py.resources.agents.service import hold_views
from claudomator_py.resources.overview.service import refused_file
from claudomator_py.resources.report import (
    MAX_NAMES,
    SCRATCH,
    BranchChange,
    DoubtfulTask,
    MissedTime,
    ReportCalls,
    ReportSpan,
    ReportView,
    RepositoryReport,
    TaskGroup,
)
from claudomator_py.resources.report.night import Days
from claudomator_py.resources.report.text import headline_of
from claudomator_py.resources.session import Service, reading
from claudomator_py.resources.tasks import TaskView, wider_reason
from claudomator_py.resources.tasks.views import TaskViews, ref_of
from claudomator_py.sources.inbox.refusals import Refusals
from claudomator_py.sources.schedules import next_time
from claudomator_py.store import alike_rows, reads, report_rows, schedule_rows, task_rows
from claudomator_py.store.events import EventQuery, newest, resolved_branches
from claudomator_py.store.report_rows import FinishedRun
from claudomator_py.store.tables import Task
from claudomator_py.surface import answers
from claudomator_py.texts import one_line
from claudomator_py.values import dataclass, regex

DEFAULT_MS = 12 * HOUR_MS
_EARLIEST_MS = round(datetime.min.replace(tzinfo=UTC).timestamp() * SECOND_MS)
MAX_FAILURES = 500
"""The most failed tasks that are grouped; all are counted."""
SHOWN = 50
MAX_RESOLVED = 500
"""The latest branches that were merged or discarded, which are marked as such."""
MAX_DOUBTED = 200
"""The most completed tasks whose results are examined."""
LATE_MS = 2 * MINUTE_MS
"""After this long, a scheduled time that nobody has handled is missed."""
_INSTANT = "\0"
_TIME = rf"{_INSTANT}|\({_INSTANT}\)|(?:\d{{4}}-\d\d-\d\d )?\d\d:\d\d UTC|\(in [0-9a-z ]+\)"
"""The forms of times in stored sentences."""
_AT_A_TIME = regex(rf"(?:,?(?: |^)(?:at|by|until|or|not before))*\s*(?:{_TIME})(?: at most)?")


@dataclass(frozen=True, slots=True)
class RepositoryDay:
    """What runs that ended on a day did in a repository."""

    day: date
    report: RepositoryReport


@dataclass(eq=False, repr=False)
class Reports(Service):
    """The service of reports."""

    task_views: TaskViews
    clock: Clock
    health: Callable[[], list[CheckView]]
    """Returns the checks of readiness."""
    refusals: Refusals
    """The files refused at present."""

    @answers(ReportCalls.report)
    def report(self, span: ReportSpan | None = None) -> ReportView:
        """Return the report on that span. Raises Invalid if it is empty."""
        now_ms = self.clock()
        wanted = span or ReportSpan()
        # Includes what ends in this millisecond.
        until_ms = now_ms + 1 if wanted.until is None else round(wanted.until.timestamp() * SECOND_MS)
        since_ms = (
            max(min(until_ms, now_ms) - DEFAULT_MS, _EARLIEST_MS)
            if wanted.since is None
            else round(wanted.since.timestamp() * SECOND_MS)
        )
        if since_ms >= until_ms:
            message = f"is not before {format_instant(until_ms)}, where the report ends"
            raise Invalid.of([Problem(field="since", message=message, remedy="choose an earlier one")])
        report = self._read(lambda connection: self._made(connection, since_ms, until_ms, now_ms))
        failing = [check for check in self.health() if not check.ok] if self._by.sees_all else []
        report = report.model_copy(
            update={
                "trouble": tuple(check.detail for check in failing if check.blocking),
                "warnings": tuple(check.detail for check in failing if not check.blocking),
            }
        )
        return report.model_copy(update={"headline": headline_of(report)})

    def missed(self, days: int) -> Sequence[MissedTime]:
        """Return the scheduled times of the last days for which no task was created, latest first."""
        now_ms = self.clock()
        missed = self._read(lambda connection: list(self._missed(connection, now_ms - days * DAY_MS, now_ms, now_ms)))
        return sorted(missed, key=lambda fire: fire.due_at, reverse=True)

    @reading()
    def repositories(
        self, connection: Connection, days: int, zone: tzinfo
    ) -> tuple[Sequence[RepositoryReport], Sequence[RepositoryDay]]:
        """Return what runs did in each repository in that many days up to now, and on each day in that zone, the newest
        first."""
        until_ms = self.clock() + 1
        runs = report_rows.ended_runs(connection, until_ms - days * DAY_MS, until_ms, self._by)
        by_day: dict[date, list[tuple[FinishedRun, RunChanges | None]]] = defaultdict(list)
        days_of = Days(zone)
        for run in reversed(runs):
            by_day[days_of.of(run.ended_ms)].append((run, run.changes))
        daily = [RepositoryDay(day, report) for day, of_day in by_day.items() for report in _repositories(of_day, {})]
        return _repositories([(run, run.changes) for run in runs], self._resolved(connection)), daily

    def _made(self, connection: Connection, since_ms: int, until_ms: int, now_ms: int) -> ReportView:
        by, views = self._by, self.task_views
        runs = report_rows.ended_runs(connection, since_ms, until_ms, by)
        changes = [(run, run.changes) for run in runs]
        completed = report_rows.completed_ids(connection, since_ms, until_ms, by)
        figures = reads.status_figures(connection, until_ms, by)
        lists = reads.status_lists(connection, SHOWN, failed_since_ms=until_ms, figures=figures, by=by)
        unlisted = alike_rows.unlisted(connection, lists, until_ms, by)
        limited = [run for run in runs if run.ended_as == OutcomeStatus.LIMITED]
        unchanged = _unchanged(completed, changes)
        examined = list(dict.fromkeys([*unchanged, *(run.task_id for run in runs if run.task_id in completed)]))
        outcomes = report_rows.last_outcomes(connection, examined[:MAX_DOUBTED])
        doubtful = [task_id for task_id in examined if task_id in outcomes and outcomes[task_id].is_doubtful]
        later = _last_starts(runs)
        priced = [run.cost_usd for run in runs if run.cost_usd is not None]
        return ReportView(
            since=format_instant(since_ms),
            until=format_instant(min(until_ms, now_ms)),
            headline="",
            completed=len(completed),
            failed=report_rows.ended_tasks(connection, "FAILED", since_ms, until_ms, by),
            cancelled=report_rows.ended_tasks(connection, "CANCELLED", since_ms, until_ms, by),
            unchanged=len(unchanged),
            doubtful=len(doubtful),
            doubtful_tasks=tuple(map(_doubtful, views.of(connection, _tasks(connection, doubtful[:MAX_NAMES])))),
            runs=len(runs),
            cost_usd=sum(priced) if priced else None,
            unpriced=sum(1 for run in runs if run.cost_usd is None and not run.in_vain),
            tokens=sum((run.input_tokens or 0) + (run.output_tokens or 0) for run in runs),
            starts=tuple(map(format_instant, self._starts(connection, since_ms, until_ms))),
            limits=len(limited),
            limits_flowed_around=sum(1 for run in limited if _went_elsewhere(run, later)),
            repositories=_repositories(changes, self._resolved(connection), changed=True),
            failures=self._failures(connection, since_ms, until_ms),
            missed=tuple(self._missed(connection, since_ms, until_ms, now_ms)),
            needs_you=tuple(views.of(connection, lists["needs_you"].tasks)),
            needs_you_total=lists["needs_you"].total,
            held=tuple(self._held(connection, now_ms)) if by.sees_all else (),
            refused=tuple(map(refused_file, self.refusals.page(limit=SHOWN))) if by.sees_all else (),
            refused_total=len(self.refusals) if by.sees_all else 0,
            running=lists["running"].total,
            waiting=lists["queued"].total,
            queued=figures.counts.get("QUEUED", 0),
            waits=_groups(views.of(connection, lists["queued"].tasks), unlisted),
            trouble=(),
            warnings=(),
        )

    def _held(self, connection: Connection, now_ms: int) -> Iterator[str]:
        holds = hold_views(connection, self.task_views.registry.agents, now_ms, self._by)
        for agent, of_agent in holds.items():
            whole = next((hold for hold in of_agent if hold.family is None and not hold.probing), None)
            if whole is not None and whole.until is None:
                yield f"{agent} is {whole.text}"

    def _failures(self, connection: Connection, since_ms: int, until_ms: int) -> tuple[TaskGroup, ...]:
        """Return the failed tasks, grouped. Of those that failed alike, only as many become views as are named."""
        failed = report_rows.failed_tasks(connection, since_ms, until_ms, MAX_FAILURES, self._by)
        outcomes = report_rows.last_outcomes(connection, [task.id for task in failed])
        alike: dict[Hashable, list[Task]] = defaultdict(list)
        for task in failed:
            alike[_failure(task, outcomes.get(task.id))].append(task)
        named = [task for tasks in alike.values() for task in tasks[:MAX_NAMES]]
        more = {tasks[0].id: len(tasks[MAX_NAMES:]) for tasks in alike.values()}
        return _groups(self.task_views.of(connection, named), more)

    def _resolved(self, connection: Connection) -> Mapping[str, str]:
        """Return what became of each branch that was merged or discarded, by name."""
        rows = resolved_branches(connection, MAX_RESOLVED, self._by)
        return {
            str(event.data.get("branch")): f"merged into {event.data.get('into')}"
            if event.kind == "merged"
            else event.kind
            for event in rows
        }

    def _starts(self, connection: Connection, since_ms: int, until_ms: int) -> Sequence[int]:
        return report_rows.starts(connection, since_ms, until_ms) if self._by.sees_all else ()

    def _missed(self, connection: Connection, since_ms: int, until_ms: int, now_ms: int) -> Iterator[MissedTime]:
        """Yield overdue times, those that were skipped, and those passed over as too old, latest first."""
        for schedule in schedule_rows.all_there(connection, self._by):
            due_ms = next_time(schedule)
            if due_ms is not None and since_ms <= due_ms < min(until_ms, now_ms - LATE_MS):
                yield MissedTime(schedule=schedule.name, due_at=format_instant(due_ms), why="it is overdue")
        for name, due_ms, why in report_rows.skipped_times(connection, since_ms, until_ms, SHOWN, self._by):
            yield MissedTime(schedule=name, due_at=format_instant(due_ms), why=one_line(why))
        passed = EventQuery(of_no_task=True, kinds=("schedule_missed",), seen_by=self._by)
        for event in reversed(newest(connection, SHOWN, passed)):
            due_ms = event.data.get("until")
            if isinstance(due_ms, int) and since_ms <= due_ms < until_ms:
                name = str(event.data.get("schedule"))
                why = "the daemon was not running, and the schedule does not catch up (catch_up)"
                yield MissedTime(schedule=name, due_at=format_instant(due_ms), why=why)


def _unchanged(completed: frozenset[str], changes: Sequence[tuple[FinishedRun, RunChanges | None]]) -> list[str]:
    last = {run.task_id: made for run, made in changes if run.task_id in completed}
    changed = {run.task_id for run, made in changes if made is not None and not made.is_empty}
    return [
        task_id for task_id, made in last.items() if made is not None and made.is_repository and task_id not in changed
    ]


def _failure(task: Task, outcome: Outcome | None) -> Hashable:
    """Return a key that is the same only for tasks whose failures are described in the same words."""
    if task.reason in (Reason.REJECTED, Reason.EXPIRED, Reason.BUDGET):
        return task.id
    return task.reason, outcome.error if outcome is not None and outcome.reason == task.reason else None


def _tasks(connection: Connection, ids: Sequence[str]) -> list[Task]:
    tasks = (task_rows.find(connection, task_id) for task_id in ids)
    return [task for task in tasks if task is not None]


def _doubtful(view: TaskView) -> DoubtfulTask:
    return DoubtfulTask(name=view.name, id=view.id, state=view.state, changes=view.changes or "")


def _last_starts(runs: Iterable[FinishedRun]) -> Mapping[str, Mapping[str, int]]:
    """Return when the last run of each task on each agent started."""
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    for run in runs:
        known = counts[run.task_id]
        known[run.agent] = max(run.started_ms, known.get(run.agent, 0))
    return counts


def _went_elsewhere(limited: FinishedRun, starts: Mapping[str, Mapping[str, int]]) -> bool:
    there = starts[limited.task_id].items()
    return any(agent != limited.agent and at_ms >= limited.ended_ms for agent, at_ms in there)


def _groups(views: Sequence[TaskView], unlisted: Mapping[str, int]) -> tuple[TaskGroup, ...]:
    """Return tasks grouped by reason, the largest group first. unlisted: the number of further tasks like one of these,
    by its id."""
    groups: dict[tuple[str | None, str], list[TaskView]] = defaultdict(list)
    for view in views:
        groups[view.reason, _failure_text(view)].append(view)
    counted = [(key, of, len(of) + sum(unlisted.get(view.id, 0) for view in of)) for key, of in groups.items()]
    return tuple(
        TaskGroup(
            reason=reason,
            text=text,
            until=min((view.waiting_until for view in members if view.waiting_until is not None), default=None),
            count=count,
            tasks=tuple(map(ref_of, members[:MAX_NAMES])),
        )
        for (reason, text), members, count in sorted(counted, key=lambda group: -group[2])
    )


def _failure_text(view: TaskView) -> str:
    return wider_reason(view) or _without_times(view)


def _without_times(view: TaskView) -> str:
    """Return the reason without times, which differ from task to task when the reason is the same."""
    brief = brief_of(view.blocked, view.reason_short or view.reason_text)
    if brief is None and view.blocked is not None:
        brief = wait_of(view.blocked, None)
    text = "" if brief is None else worded(brief, lambda _: _INSTANT)
    return one_line(_AT_A_TIME.sub("", text)).strip()


def _repositories(
    changes: Iterable[tuple[FinishedRun, RunChanges | None]],
    resolved_branches: Mapping[str, str],
    *,
    changed: bool = False,
) -> tuple[RepositoryReport, ...]:
    """resolved_branches: what has become of branches, by name. changed: without those that no run changed."""
    by_place: dict[str, list[tuple[FinishedRun, RunChanges]]] = defaultdict(list)
    for run, made in changes:
        # A place that was never found to be a repository, such as one that does not exist, has nothing to say.
        was_seen = made is not None and (made.fault is None or made.repository is not None)
        if made is not None and (not made.is_empty or (made.is_repository and was_seen)):
            by_place[(made.repository or made.place) if run.dir_key else SCRATCH].append((run, made))
    repositories = [
        _repository(place, runs, resolved_branches)
        for place, runs in by_place.items()
        if not changed or not all(made.is_empty and made.fault is None for _, made in runs)
    ]
    return tuple(sorted(repositories, key=lambda repository: (-repository.commits, -repository.files, repository.path)))


def _repository(
    path: str, runs: Sequence[tuple[FinishedRun, RunChanges]], resolved_branches: Mapping[str, str]
) -> RepositoryReport:
    commits = {commit.id for _, made in runs for commit in made.commits}
    unnamed = sum(made.commit_count - len(made.commits) for _, made in runs)
    files = {(made.place, file.path) for _, made in runs for file in made.files}
    more_files = sum(made.file_count - len(made.files) for _, made in runs)
    last = {made.place: made for _, made in runs}
    priced = [run.cost_usd for run, _ in runs if run.cost_usd is not None]
    branches = [
        BranchChange(name=(name := short_ref(ref.name)), change=ref.word, since=resolved_branches.get(name))
        for ref in net_changes(ref for _, made in runs for ref in made.refs if ref.name.startswith(HEADS))
    ]
    return RepositoryReport(
        path=path,
        runs=len(runs),
        tasks=len({run.task_id for run, _ in runs}),
        commits=len(commits) + unnamed,
        files=len(files) + more_files,
        added=sum(made.added for _, made in runs),
        removed=sum(made.removed for _, made in runs),
        branches=tuple(branches[:MAX_NAMES]),
        more_branches=len(branches) - len(branches[:MAX_NAMES]),
        uncommitted=sum(
            max(made.left_count, sum((place, name) in files for name in (*made.uncommitted, *made.untracked)))
            for place, made in last.items()
        ),
        fault=next((made.fault for _, made in runs if made.fault is not None), None),
        cost_usd=round(sum(priced), 6) if priced else None,
        unpriced=sum(1 for run, _ in runs if run.cost_usd is None and not run.in_vain),
        last_at=format_instant(max(run.ended_ms for run, _ in runs)),
    )
