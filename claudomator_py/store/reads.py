"""Queries for people: lists of tasks with filters and cursors, and finding a task by id, name or prefix."""

import json
from collections import defaultdict, namedtuple
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    Select,
    String,
    and_,
    bindparam,
    case,
    cast,
    exists,
    false,
    func,
    or_,
    select,
    tuple_,
)

from claudomator_py.domain.lifecycle import UNENDED, UNSUCCESSFUL, StateName
from claudomator_py.domain.outcome import OutcomeStatus, Reason
from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.domain.requests import LatestFilter, StateSelection, TaskFilter
from claudomator_py.store.statement import Selection, Statement
from claudomator_py.store.stored_json import sound
from claudomator_py.store.tables import RUN, SPECIALIST, TASK, Run, Task
from claudomator_py.store.visibility import agent_hidden, cards_hidden, representative, tasks_seen
from claudomator_py.values import dataclass

_SUCCESSFUL: tuple[StateName, ...] = (*UNENDED, "COMPLETED")
_OF_TASKS = RUN.c.task_id.in_(bindparam("tasks", expanding=True))
_RUNS_OF = Selection(Run, select(RUN).where(_OF_TASKS).order_by(RUN.c.generation, RUN.c.seq))
_SummedRun = namedtuple("_SummedRun", "task_id id live ended_as in_vain input_tokens output_tokens cost_usd fees_usd")
_SUMS = _SummedRun._fields[-4:]
_SUMMED_RUNS = Statement(
    select(
        *(RUN.c[name] for name in _SummedRun._fields[:-1]),
        # Only specialists charge fees.
        case((RUN.c.specialist.is_not(None), sound(RUN.c.outcome)["fee"]["usd"].as_float())),
    )
    .where(_OF_TASKS)
    .order_by(RUN.c.generation, RUN.c.seq)
)
_WHOLE_RUNS = Selection(Run, select(RUN).where(RUN.c.id.in_(bindparam("runs", expanding=True))))
Position = tuple[int, str]


def page(
    connection: Connection, wanted: TaskFilter, before: Position | None, limit: int, by: Principal = OPERATOR
) -> Sequence[Task]:
    """Return the tasks that the principal can see, newest first. before: creation time and id of the last task of the
    previous page."""
    query = _matching(wanted, by)
    if query is None:
        return []
    if before is not None:
        query = query.where(tuple_(TASK.c.created_ms, TASK.c.id) < before)
    query = query.order_by(TASK.c.created_ms.desc(), TASK.c.id.desc()).limit(limit)
    return Task.rows(connection, query)


def count(connection: Connection, wanted: TaskFilter, by: Principal = OPERATOR) -> int:
    """Return how many tasks that the principal can see match."""
    query = _matching(wanted, by)
    return 0 if query is None else connection.execute(query.with_only_columns(func.count())).scalar_one()


def _matching(wanted: TaskFilter, by: Principal) -> Select[Any] | None:
    """Return the query for the tasks that match; None if no task can."""
    if any("\0" in text for text in wanted.model_dump(exclude_none=True).values()):
        # PostgreSQL refuses such texts.
        return None
    query = select(TASK).where(tasks_seen(by))
    if wanted.state is not None:
        query = query.where(TASK.c.state == wanted.state)
    if wanted.name is not None:
        query = query.where(TASK.c.name == wanted.name)
    if wanted.text is not None:
        query = query.where(func.lower(TASK.c.name).contains(wanted.text.lower(), autoescape=True))
    if wanted.specialist is not None:
        # The filter must not reveal a specialist whose card is hidden from the principal.
        concealed = exists().where(SPECIALIST.c.id == wanted.specialist, cards_hidden(by))
        query = query.where(TASK.c.specialist == wanted.specialist, ~concealed)
    if wanted.creator is not None:
        query = query.where(TASK.c.creator == wanted.creator)
    if wanted.source is not None:
        query = query.where(TASK.c.source == wanted.source)
    if wanted.tag is not None:
        # Search for the tag as JSON. LIKE would ignore case on SQLite.
        tags = cast(TASK.c.tags, String)
        query = query.where(func.replace(tags, json.dumps(wanted.tag), "") != tags)
    if wanted.agent is not None:
        query = query.join(RUN, RUN.c.id == TASK.c.last_run_id)
        query = query.where(RUN.c.agent == wanted.agent, ~agent_hidden(wanted.agent, by))
    return query


def latest(
    connection: Connection, wanted: LatestFilter, before: Position | None, limit: int, by: Principal = OPERATOR
) -> "Listed":
    """Return up to ``limit`` tasks that the principal can see, latest change first, and their total. before: time of
    the latest change, in epoch milliseconds, and id of the last task of the previous page."""
    which = [tasks_seen(by)]
    if wanted.context is not None:
        which.append(in_context(wanted.context, by))
    if wanted.standings is not None:
        which.append(or_(false(), *map(_stands, wanted.standings)))
    if wanted.since_ms is not None:
        which.append(TASK.c.updated_ms >= wanted.since_ms)
    total = connection.execute(select(func.count()).select_from(TASK).where(*which)).scalar_one()
    if before is not None:
        which.append(tuple_(TASK.c.updated_ms, TASK.c.id) < before)
    return Listed(_first(connection, and_(*which), (TASK.c.updated_ms.desc(), TASK.c.id.desc()), limit), total)


def _stands(standing: StateSelection) -> ColumnElement[bool]:
    """Return the condition on ``TASK`` that corresponds to ``StateSelection.holds`` for its view."""
    which = [TASK.c.state == standing.state]
    if standing.begun is not None:
        which.append(TASK.c.last_run_id.is_not(None) if standing.begun else TASK.c.last_run_id.is_(None))
    if standing.rejected is not None:
        rejected = TASK.c.reason.is_not_distinct_from(Reason.REJECTED.value)
        which.append(rejected if standing.rejected else ~rejected)
    return and_(*which)


@dataclass(frozen=True, slots=True)
class Listed:
    """The beginning of a list, and the length of the whole list."""

    tasks: Sequence[Task]
    total: int


StatusList = Literal["needs_you", "problems", "running", "queued", "recent"]
_NOT_FAILED: tuple[StateName, ...] = ("CANCELLED", "COMPLETED")
_MAX_NAMES = 200
_NOT_COMPLETED: tuple[StateName, ...] = (*UNENDED, *UNSUCCESSFUL)
_FOR_BUDGET = and_(TASK.c.state == "WAITING", TASK.c.reason == "budget")
"""Waiting for a larger budget, which only a person can set."""


@dataclass(frozen=True, slots=True)
class StatusFigures:
    """Numbers of the tasks that a principal can see."""

    counts: Mapping[StateName, int]
    """Tasks per state, see ``counts``."""
    for_budget: int
    """Tasks that wait for a larger budget."""
    failures: Mapping[str, int]
    """Recent failures per reason."""


def status_figures(connection: Connection, failed_since_ms: int, by: Principal) -> StatusFigures:
    """Return the numbers of the tasks that the principal can see. This reads more rows than ``status_lists``, but the
    result can be cached until the next write."""
    for_budget, failures = _figures(representative(by))
    totals = counts(connection, by)
    return StatusFigures(
        totals,
        for_budget.value(connection) if totals.get("WAITING") else 0,
        {reason or "unknown": number for reason, number in failures.rows(connection, since=failed_since_ms)},
    )


@lru_cache(maxsize=16)
def _figures(by: Principal) -> tuple[Statement, Statement]:
    """Return the statements for tasks that wait for a budget, and for recent failures per reason."""
    mine, since = tasks_seen(by), TASK.c.updated_ms >= bindparam("since", type_=BigInteger)
    failed = select(TASK.c.reason, func.count()).where(mine, TASK.c.state == "FAILED", since).group_by(TASK.c.reason)
    return Statement(select(func.count()).select_from(TASK).where(mine, _FOR_BUDGET)), Statement(failed)


def status_lists(
    connection: Connection, limit: int, *, failed_since_ms: int, figures: StatusFigures, by: Principal = OPERATOR
) -> dict[StatusList, Listed]:
    """Return the lists of the status for the principal, up to ``limit`` tasks each. figures: the principal's, so that
    nothing is counted again.

    Of the tasks that need a person, the one that has waited longest comes first, so that the cut hides no old question.
    Recent failures, running and ended tasks begin with the latest change. Queued tasks come in the order in which they
    would start, then waiting tasks by the time that they wait for. A list of failures that is cut has some of each
    reason.
    """
    lists, totals = _status_lists(representative(by)), figures.counts

    def in_state(state: StateName) -> Listed:
        return Listed(lists[state].first(connection, limit) if totals.get(state) else (), totals.get(state, 0))

    queued, waiting = in_state("QUEUED"), totals.get("WAITING", 0) - figures.for_budget
    unpaid = lists["budget"].first(connection, limit) if figures.for_budget else ()
    later = lists["WAITING"].first(connection, limit - len(queued.tasks)) if waiting else ()
    failed: Sequence[Task] = ()
    if figures.failures:
        failed = lists["FAILED"].first(connection, limit, since=failed_since_ms)
        failed = _of_each_reason(connection, failed, lists["reason"], limit, figures.failures, failed_since_ms)
    return {
        "needs_you": _joined([in_state("NEEDS_INPUT"), Listed(unpaid, figures.for_budget)], limit, latest=False),
        "problems": Listed(failed, sum(figures.failures.values())),
        "running": in_state("RUNNING"),
        "queued": Listed([*queued.tasks, *later], queued.total + waiting),
        "recent": _joined([in_state(state) for state in _NOT_FAILED], limit),
    }


def _of_each_reason(
    connection: Connection,
    latest_failures: Sequence[Task],
    of_reason: "_StatusList",
    limit: int,
    failures: Mapping[str, int],
    since_ms: int,
) -> Sequence[Task]:
    """Return up to ``limit`` of all failures, latest first: each reason has an equal share, so that many failures for
    one of them hide no other. failures: the number of each reason."""
    if len(failures) == 1 or sum(failures.values()) <= limit:
        return latest_failures
    chosen: list[Task] = []
    for place, (reason, number) in enumerate(sorted(failures.items(), key=lambda item: (item[1], item[0]))):
        share = min(number, -((len(chosen) - limit) // (len(failures) - place)))
        listed = [task for task in latest_failures if task.reason == reason][:share]
        if len(listed) < share:
            listed = of_reason.first(connection, share, since=since_ms, reason=reason)
        chosen += listed
    return sorted(chosen, key=lambda task: (task.updated_ms, task.id), reverse=True)


class _StatusList:
    """A statement for the beginning of a list."""

    def __init__(self, which: ColumnElement[bool], order: Sequence[Any]) -> None:
        self._first = Selection(
            Task, select(TASK).where(which).order_by(*order).limit(bindparam("limit", type_=Integer))
        )

    def first(self, connection: Connection, limit: int, **given: int | str) -> list[Task]:
        return self._first.all(connection, limit=limit, **given) if limit else []


@lru_cache(maxsize=16)
def _status_lists(by: Principal) -> Mapping[StateName | Literal["budget", "reason"], _StatusList]:
    """Return the lists of the status for the principal, by state, with separate lists of tasks that wait for a budget
    and of failures for a given reason."""
    mine = tasks_seen(by)
    latest = (TASK.c.updated_ms.desc(), TASK.c.id.desc())
    oldest = (TASK.c.updated_ms, TASK.c.id)
    in_turn = (TASK.c.rank_ms, TASK.c.created_ms, TASK.c.id)
    by_time = (TASK.c.until_ms.is_(None), TASK.c.until_ms, TASK.c.created_ms, TASK.c.id)
    since = TASK.c.updated_ms >= bindparam("since", type_=BigInteger)
    return {
        "NEEDS_INPUT": _StatusList(and_(mine, TASK.c.state == "NEEDS_INPUT"), oldest),
        "budget": _StatusList(and_(mine, _FOR_BUDGET), oldest),
        "FAILED": _StatusList(and_(mine, TASK.c.state == "FAILED", since), latest),
        "reason": _StatusList(
            and_(mine, TASK.c.state == "FAILED", since, TASK.c.reason == bindparam("reason", type_=String)), latest
        ),
        "QUEUED": _StatusList(and_(mine, TASK.c.state == "QUEUED"), in_turn),
        "WAITING": _StatusList(and_(mine, TASK.c.state == "WAITING", ~_FOR_BUDGET), by_time),
        **{state: _StatusList(and_(mine, TASK.c.state == state), latest) for state in ("RUNNING", *_NOT_FAILED)},
    }


def _joined(lists: Sequence[Listed], limit: int, *, latest: bool = True) -> Listed:
    """Merge lists of different states: an index is ordered only within a state."""
    tasks = sorted(
        (task for listed in lists for task in listed.tasks), key=lambda task: (task.updated_ms, task.id), reverse=latest
    )
    return Listed(tasks[:limit], sum(listed.total for listed in lists))


def _first(connection: Connection, which: ColumnElement[bool], order: Sequence[Any], limit: int) -> Sequence[Task]:
    return Task.rows(connection, select(TASK).where(which).order_by(*order).limit(limit)) if limit else ()


def matching(connection: Connection, ref: str, by: Principal = OPERATOR) -> Sequence[Task]:
    """Return the task with that id; else the newest with that name; else up to 10 whose id has that prefix, newest
    first. Only tasks that the principal can see match. Case does not matter in ids."""
    if not ref or "\0" in ref:
        return []
    by_id, by_name = _exactly(by)
    task = by_id.first(connection, id=ref.lower()) or by_name.first(connection, name=ref)
    if task is not None:
        return [task]
    # LIKE is case-sensitive on PostgreSQL, but not on SQLite.
    prefixed = select(TASK).where(tasks_seen(by), TASK.c.id.startswith(ref.lower(), autoescape=True))
    return Task.rows(connection, prefixed.order_by(TASK.c.created_ms.desc(), TASK.c.id.desc()).limit(10))


@lru_cache(maxsize=64)
def _exactly(by: Principal) -> tuple[Selection[Task], Selection[Task]]:
    """Return the statements by id and by name, for the principal."""
    mine = select(TASK).where(tasks_seen(by))
    newest = mine.where(TASK.c.name == bindparam("name")).order_by(TASK.c.created_ms.desc(), TASK.c.id.desc()).limit(1)
    return Selection(Task, mine.where(TASK.c.id == bindparam("id"))), Selection(Task, newest)


def in_context(context: str, by: Principal) -> ColumnElement[bool]:
    """Select the tasks of the conversation with this name for the principal, or that the task with this id began."""
    return or_(*_ways_into(context, by))


def last_of_context(connection: Connection, context: str, by: Principal) -> Task | None:
    """Return the newest task of the conversation that the principal can see and that has not failed or been
    cancelled."""
    mine = and_(tasks_seen(by), TASK.c.state.in_(_SUCCESSFUL))
    newest = (TASK.c.created_ms.desc(), TASK.c.id.desc())
    for way in _ways_into(context, by):  # each condition has an index; their disjunction has none
        if tasks := _first(connection, and_(mine, way), newest, 1):
            return tasks[0]
    return None


def _ways_into(context: str, by: Principal) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions by which tasks belong to a conversation: its name, its thread, or its first task."""
    named = and_(TASK.c.creator == by.id, TASK.c.context == context)
    return named, TASK.c.thread == context, TASK.c.id == context


def newest_names(connection: Connection, by: Principal) -> list[str]:
    """Return the names of the newest tasks that the principal can see, to suggest from."""
    newest = select(TASK.c.name).where(tasks_seen(by)).order_by(TASK.c.created_ms.desc(), TASK.c.id.desc())
    return list(dict.fromkeys(connection.execute(newest.limit(_MAX_NAMES)).scalars()))


def runs_of(connection: Connection, task_ids: Collection[str]) -> Mapping[str, Sequence[Run]]:
    """Return the runs of the tasks, oldest first, by task id."""
    runs: dict[str, list[Run]] = defaultdict(list)
    for run in _RUNS_OF.all(connection, tasks=sorted(task_ids)):
        runs[run.task_id].append(run)
    return runs


@dataclass(frozen=True, slots=True)
class TaskRuns:
    """Summary of a task's runs. Sums cover the known values of ended runs."""

    number: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    fees_usd: float | None = None
    unpriced: int = 0
    """Number of ended runs whose cost is not known."""
    shown: tuple[Run, ...] = ()
    """The last run that succeeded, and the last run."""

    @property
    def last(self) -> Run | None:
        """The last run."""
        return self.shown[-1] if self.shown else None


def run_summaries(connection: Connection, task_ids: Collection[str]) -> Mapping[str, TaskRuns]:
    """Return summaries of the tasks' runs, by task id, for tasks that have any. At most two runs of a task are read in
    full."""
    rows: dict[str, list[_SummedRun]] = defaultdict(list)
    for run in map(_SummedRun._make, _SUMMED_RUNS.rows(connection, tasks=sorted(task_ids))):
        rows[run.task_id].append(run)
    shown = {task_id: _shown(runs) for task_id, runs in rows.items()}
    wanted = sorted(run_id for ids in shown.values() for run_id in ids)
    whole = {run.id: run for run in _WHOLE_RUNS.all(connection, runs=wanted)} if wanted else {}
    return {task_id: _summed(runs, [whole[run_id] for run_id in shown[task_id]]) for task_id, runs in rows.items()}


def _summed(runs: Sequence[_SummedRun], shown: Iterable[Run]) -> TaskRuns:
    sums = {name: _sum(getattr(run, name) for run in runs if not run.live) for name in _SUMS}
    unpriced = sum(run.ended_as is not None and run.cost_usd is None and run.in_vain is not True for run in runs)
    return TaskRuns(number=len(runs), unpriced=unpriced, shown=tuple(shown), **sums)


def _shown(runs: Sequence[_SummedRun]) -> list[str]:
    """Return the ids of the last run that succeeded and of the last run, without duplicates."""
    succeeded = [run.id for run in runs if run.ended_as == OutcomeStatus.SUCCEEDED]
    return list(dict.fromkeys([*succeeded[-1:], runs[-1].id]))


def _sum(parts: Iterable[Any]) -> Any:
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def counts(connection: Connection, by: Principal = OPERATOR) -> dict[StateName, int]:
    """Return how many tasks in each state the principal can see, without empty states. Nearly all tasks are completed.
    Their number is computed from the total, because counting a whole table needs no access to its rows."""
    others, whole = _counts(representative(by))
    totals: dict[StateName, int] = dict(others.rows(connection))
    completed = int(whole.value(connection)) - sum(totals.values())
    return totals | ({"COMPLETED": completed} if completed else {})


@lru_cache(maxsize=16)
def _counts(by: Principal) -> tuple[Statement, Statement]:
    """Return the statements that count the tasks per state, except completed ones, and all tasks."""
    number, seen = func.count().label("number"), () if by.sees_all else (tasks_seen(by),)
    others = select(TASK.c.state, number).where(TASK.c.state.in_(_NOT_COMPLETED), *seen).group_by(TASK.c.state)
    return Statement(others), Statement(select(number).select_from(TASK).where(*seen))
