"""Reading for people: lists with filters and cursors, and finding a task by what somebody typed."""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, get_args

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    Select,
    String,
    and_,
    bindparam,
    cast,
    exists,
    false,
    func,
    or_,
    select,
    tuple_,
)

from claudomator_py.domain.lifecycle import UNSUCCESSFUL, StateName
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.domain.requests import LatestFilter, StateSelection, TaskFilter
from claudomator_py.store.run_rows import run_from
from claudomator_py.store.statement import Statement
from claudomator_py.store.tables import RUN, SPECIALIST, TASK, Run, Task
from claudomator_py.store.task_rows import task_from
from claudomator_py.store.visibility import agent_hidden, alike, cards_hidden, tasks_seen
from claudomator_py.values import dataclass

_SUCCESSFUL = tuple(state for state in get_args(StateName) if state not in UNSUCCESSFUL)
_RUNS_OF = Statement(
    select(RUN).where(RUN.c.task_id.in_(bindparam("tasks", expanding=True))).order_by(RUN.c.generation, RUN.c.seq)
)
Position = tuple[int, str]


def page(
    connection: Connection, wanted: TaskFilter, before: Position | None, limit: int, by: Principal = OPERATOR
) -> Sequence[Task]:
    """Return tasks that exist for that principal, newest first. before: creation time and id of the last one seen."""
    query = _matching(wanted, by)
    if query is None:
        return []
    if before is not None:
        query = query.where(tuple_(TASK.c.created_ms, TASK.c.id) < before)
    query = query.order_by(TASK.c.created_ms.desc(), TASK.c.id.desc()).limit(limit)
    return [task_from(row) for row in connection.execute(query)]


def count(connection: Connection, wanted: TaskFilter, by: Principal = OPERATOR) -> int:
    """Return how many tasks match, of those that exist for that principal."""
    query = _matching(wanted, by)
    return 0 if query is None else connection.execute(query.with_only_columns(func.count())).scalar_one()


def failures(connection: Connection, since_ms: int, by: Principal = OPERATOR) -> dict[str, int]:
    """Return how many tasks failed since then for each reason, of those that exist for that principal."""
    failed = and_(tasks_seen(by), TASK.c.state == "FAILED", TASK.c.updated_ms >= since_ms)
    query = select(TASK.c.reason, func.count()).where(failed).group_by(TASK.c.reason)
    return {reason or "unknown": number for reason, number in connection.execute(query)}


def _matching(wanted: TaskFilter, by: Principal) -> Select[Any] | None:
    """Return the query for the tasks that match; None where nothing can."""
    if any("\0" in text for text in wanted.model_dump(exclude_none=True).values()):
        # PostgreSQL refuses such a text altogether.
        return None
    query = select(TASK).where(tasks_seen(by))
    if wanted.state is not None:
        query = query.where(TASK.c.state == wanted.state)
    if wanted.name is not None:
        query = query.where(TASK.c.name == wanted.name)
    if wanted.text is not None:
        query = query.where(func.lower(TASK.c.name).contains(wanted.text.lower(), autoescape=True))
    if wanted.specialist is not None:
        # One whose card is hidden from whoever asks is found by no name.
        concealed = exists().where(SPECIALIST.c.id == wanted.specialist, cards_hidden(by))
        query = query.where(TASK.c.specialist == wanted.specialist, ~concealed)
    if wanted.creator is not None:
        query = query.where(TASK.c.creator == wanted.creator)
    if wanted.source is not None:
        query = query.where(TASK.c.source == wanted.source)
    if wanted.tag is not None:
        # The tag as JSON writes it. Not LIKE, which ignores case with SQLite.
        tags = cast(TASK.c.tags, String)
        query = query.where(func.replace(tags, json.dumps(wanted.tag), "") != tags)
    if wanted.agent is not None:
        query = query.join(RUN, RUN.c.id == TASK.c.last_run_id)
        query = query.where(RUN.c.agent == wanted.agent, ~agent_hidden(wanted.agent, by))
    return query


def latest(
    connection: Connection, wanted: LatestFilter, before: Position | None, limit: int, by: Principal = OPERATOR
) -> "Listed":
    """Return tasks that exist for that principal, the latest change first, at most ``limit``, and how many there are in
    all. before: time of the latest change, in epoch milliseconds, and id of the last one seen."""
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
    """Of ``TASK``, as ``StateSelection.holds`` says of its view."""
    which = [TASK.c.state == standing.state]
    if standing.begun is not None:
        which.append(TASK.c.last_run_id.is_not(None) if standing.begun else TASK.c.last_run_id.is_(None))
    if standing.rejected is not None:
        rejected = TASK.c.reason.is_not_distinct_from(Reason.REJECTED.value)
        which.append(rejected if standing.rejected else ~rejected)
    return and_(*which)


@dataclass(frozen=True, slots=True)
class Listed:
    """The beginning of a list, and how long it is."""

    tasks: Sequence[Task]
    total: int


StatusList = Literal["needs_you", "problems", "running", "queued", "recent"]
_OVER: tuple[StateName, ...] = ("CANCELLED", "COMPLETED")
_MAX_NAMES = 200
_NOT_COMPLETED: tuple[StateName, ...] = ("WAITING", "QUEUED", "RUNNING", "NEEDS_INPUT", "FAILED", "CANCELLED")
_FOR_BUDGET = and_(TASK.c.state == "WAITING", TASK.c.reason == "budget")
"""Waiting for a larger budget, which only a person gives."""


def status_lists(
    connection: Connection,
    limit: int,
    *,
    failed_since_ms: int,
    counts: Mapping[StateName, int],
    by: Principal = OPERATOR,
) -> dict[StatusList, Listed]:
    """Return what the status lists for that principal, each in its order, at most that many of each. counts: of its
    tasks by state, see ``counts``.

    Those that need a person, the failed ones since then, the running, and the ended ones: the latest change first.
    Those that are queued in the order in which they would start, then waiting ones by the time that they wait for.
    """
    lists = _status_lists(alike(by))

    def in_state(state: StateName) -> Listed:
        """How many there are is known already: to count all that has ended takes longer the more there are."""
        return Listed(lists[state].first(connection, limit), counts.get(state, 0))

    queued = in_state("QUEUED")
    waiting = lists["WAITING"].listed(connection, limit - len(queued.tasks))
    return {
        "needs_you": lists["NEEDS_INPUT"].listed(connection, limit),
        "problems": lists["FAILED"].listed(connection, limit, since=failed_since_ms),
        "running": in_state("RUNNING"),
        "queued": Listed([*queued.tasks, *waiting.tasks], queued.total + waiting.total),
        "recent": _joined([in_state(state) for state in _OVER], limit),
    }


class _StatusList:
    """Statements for the beginning of a list, and for its length."""

    def __init__(self, which: ColumnElement[bool], order: Sequence[Any]) -> None:
        self._first = Statement(select(TASK).where(which).order_by(*order).limit(bindparam("limit", type_=Integer)))
        self._count = Statement(select(func.count()).select_from(TASK).where(which))

    def first(self, connection: Connection, limit: int, **given: int) -> list[Task]:
        return [task_from(row) for row in self._first.rows(connection, limit=limit, **given)] if limit else []

    def listed(self, connection: Connection, limit: int, **given: int) -> Listed:
        tasks = self.first(connection, limit, **given)
        return Listed(tasks, len(tasks) if len(tasks) < limit else self._count.value(connection, **given))


@lru_cache(maxsize=16)
def _status_lists(by: Principal) -> Mapping[StateName, _StatusList]:
    """By the state that most of its tasks are in, what the status lists for that principal."""
    mine = tasks_seen(by)
    latest = (TASK.c.updated_ms.desc(), TASK.c.id.desc())
    in_turn = (TASK.c.rank_ms, TASK.c.created_ms, TASK.c.id)
    by_time = (TASK.c.until_ms.is_(None), TASK.c.until_ms, TASK.c.id)
    since = TASK.c.updated_ms >= bindparam("since", type_=BigInteger)
    return {
        "NEEDS_INPUT": _StatusList(and_(mine, or_(TASK.c.state == "NEEDS_INPUT", _FOR_BUDGET)), latest),
        "FAILED": _StatusList(and_(mine, TASK.c.state == "FAILED", since), latest),
        "QUEUED": _StatusList(and_(mine, TASK.c.state == "QUEUED"), in_turn),
        "WAITING": _StatusList(and_(mine, TASK.c.state == "WAITING", ~_FOR_BUDGET), by_time),
        **{state: _StatusList(and_(mine, TASK.c.state == state), latest) for state in ("RUNNING", *_OVER)},
    }


def _joined(lists: Sequence[Listed], limit: int) -> Listed:
    """The latest of several lists: of each state by itself, since an index is in order within a state only."""
    tasks = sorted(
        (task for one in lists for task in one.tasks), key=lambda task: (task.updated_ms, task.id), reverse=True
    )
    return Listed(tasks[:limit], sum(one.total for one in lists))


def _first(connection: Connection, which: ColumnElement[bool], order: Sequence[Any], limit: int) -> Sequence[Task]:
    found = connection.execute(select(TASK).where(which).order_by(*order).limit(limit)) if limit else ()
    return [task_from(row) for row in found]


def matching(connection: Connection, ref: str, by: Principal = OPERATOR) -> Sequence[Task]:
    """Return the task of that id; else the newest of that name; else up to 10 whose id begins so, newest first.

    Only those that exist for that principal. An id may be written in capitals.
    """
    if not ref or "\0" in ref:
        return []
    by_id, by_name = _exactly(by)
    row = by_id.row(connection, id=ref.lower()) or by_name.row(connection, name=ref)
    if row is not None:
        return [task_from(row)]
    # PostgreSQL's LIKE heeds case, and SQLite's does not.
    prefixed = select(TASK).where(tasks_seen(by), TASK.c.id.startswith(ref.lower(), autoescape=True))
    found = connection.execute(prefixed.order_by(TASK.c.created_ms.desc()).limit(10))
    return [task_from(row) for row in found]


@lru_cache(maxsize=64)
def _exactly(by: Principal) -> tuple[Statement, Statement]:
    """By id, and by name, for that principal."""
    mine = select(TASK).where(tasks_seen(by))
    newest = mine.where(TASK.c.name == bindparam("name")).order_by(TASK.c.created_ms.desc(), TASK.c.id.desc()).limit(1)
    return Statement(mine.where(TASK.c.id == bindparam("id"))), Statement(newest)


def in_context(context: str, by: Principal) -> ColumnElement[bool]:
    """Select of ``TASK`` those of the conversation that this principal calls so, or that a task of this id began."""
    return or_(*_ways_into(context, by))


def last_of_context(connection: Connection, context: str, by: Principal) -> Task | None:
    """Return the newest task of that conversation that exists for the principal and has not come to nothing."""
    mine = and_(tasks_seen(by), TASK.c.state.in_(_SUCCESSFUL))
    newest = (TASK.c.created_ms.desc(), TASK.c.id.desc())
    for way in _ways_into(context, by):  # each of which has an index, and all of them together none
        if found := _first(connection, and_(mine, way), newest, 1):
            return found[0]
    return None


def _ways_into(context: str, by: Principal) -> tuple[ColumnElement[bool], ...]:
    """How tasks belong to a conversation: by its name, by who began it, and as that one."""
    named = and_(TASK.c.creator == by.id, TASK.c.context == context)
    return named, TASK.c.thread == context, TASK.c.id == context


def names_like(connection: Connection, by: Principal = OPERATOR) -> list[str]:
    """Return names of the newest tasks that exist for that principal, to suggest one from."""
    query = select(TASK.c.name).where(tasks_seen(by)).order_by(TASK.c.created_ms.desc()).limit(_MAX_NAMES)
    return list(dict.fromkeys(connection.execute(query).scalars()))


def runs_of(connection: Connection, task_ids: Collection[str]) -> Mapping[str, Sequence[Run]]:
    """Return the runs of these tasks, oldest first, by task."""
    runs: dict[str, list[Run]] = defaultdict(list)
    for row in _RUNS_OF.rows(connection, tasks=sorted(task_ids)):
        run = run_from(row)
        runs[run.task_id].append(run)
    return runs


def counts(connection: Connection, by: Principal = OPERATOR) -> dict[StateName, int]:
    """Return how many tasks there are in each state, for that principal; of a state without any, nothing.

    Nearly all have been completed, and are what the others leave of all: to count a whole table the database looks
    into no row.
    """
    others, whole = _counts(alike(by))
    found: dict[StateName, int] = dict(others.rows(connection))
    completed = int(whole.value(connection)) - sum(found.values())
    return found | ({"COMPLETED": completed} if completed else {})


@lru_cache(maxsize=16)
def _counts(by: Principal) -> tuple[Statement, Statement]:
    """How many there are in each state but one, and in all."""
    number, seen = func.count().label("number"), () if by.sees_all else (tasks_seen(by),)
    others = select(TASK.c.state, number).where(TASK.c.state.in_(_NOT_COMPLETED), *seen).group_by(TASK.c.state)
    return Statement(others), Statement(select(number).select_from(TASK).where(*seen))
