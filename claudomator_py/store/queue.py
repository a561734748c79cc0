"""The queue: lanes and their heads, due tasks, and the next time at which something is due."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    CTE,
    BindParameter,
    Column,
    ColumnElement,
    Connection,
    Integer,
    ScalarSelect,
    Select,
    and_,
    bindparam,
    case,
    exists,
    func,
    or_,
    select,
    text,
    tuple_,
    update,
)

from claudomator_py.domain.principal import OWN
from claudomator_py.domain.routing import Constraints
from claudomator_py.scheduler.lanes import Demand
from claudomator_py.scheduler.load import NOTHING_SHUT, Shut, Taken
from claudomator_py.store.classification_rows import NEXT_DEADLINE
from claudomator_py.store.hold_rows import NEXT_END
from claudomator_py.store.statement import Statement
from claudomator_py.store.stored_json import raw
from claudomator_py.store.tables import TASK, TASK_DEPENDENCY, TASK_REVISION, Task
from claudomator_py.store.task_rows import task_from

Position = tuple[int, int, str]
"""Rank, creation time and id: the queue's order."""
FRONT: Final[Position] = (-(2**63), 0, "")
"""Before all tasks."""
Content = str
"""A spec as stored JSON, see ``task_rows.read_spec``."""


class QueuePlace(NamedTuple):
    """Where a queued task stands, and what it would use."""

    position: Position
    lane: str
    tenant: str
    dir_key: str
    thread: str | None


class NextTimes(NamedTuple):
    """The next time of each kind, in epoch milliseconds, or None."""

    waiting: int | None
    """A waiting task becomes due."""
    expiring: int | None
    """A task's wait for a person expires."""
    kept: int | None
    """A kept directory is released."""
    hold: int | None
    """A hold ends by itself."""
    question: int | None
    """A question about a tier is given up."""


# Literally the conditions of the partial indexes, so that these are used.
_QUEUED = text("task.state = 'QUEUED'")
_UNROUTED = text("task.state = 'QUEUED' AND task.constraints IS NULL")
_KEEPING = ("NEEDS_INPUT", "WAITING", "QUEUED")
_TIMED = (text("task.state = 'WAITING'"), text("task.state = 'NEEDS_INPUT' AND task.until_ms IS NOT NULL"))
_NOT_ENDED = ("WAITING", "QUEUED", "RUNNING", "NEEDS_INPUT")
_EXCLUSIVE = func.coalesce(TASK.c.thread, TASK.c.id)
_BATCH_SIZE = 500
"""Tasks fetched by one statement."""
_ORDER = (TASK.c.rank_ms, TASK.c.created_ms, TASK.c.id)
_DEMANDED = (TASK.c.hint == bindparam("of_hint"), TASK.c.demand == bindparam("of_demand"))


def _among(name: str) -> BindParameter[Sequence[str]]:
    return bindparam(name, expanding=True)


def _following(order: Sequence[ColumnElement[Any]], *conditions: ColumnElement[bool]) -> ScalarSelect[str]:
    """Select the id of the first matching queued task in that order."""
    query = select(TASK.c.id).where(_QUEUED, *conditions).order_by(*order).limit(1)
    return query.correlate_except(TASK).scalar_subquery()


def _stepping(
    start: ColumnElement[str], columns: Sequence[Column[Any]], step: Callable[[CTE], ColumnElement[str]]
) -> CTE:
    """Return these columns of the task whose id is ``start``, and of each that ``step`` makes of the one before."""
    place = select(TASK.c.id, *columns).where(TASK.c.id == start).cte("place", recursive=True)
    arrived = TASK.alias("arrived")
    further = (arrived.c[column.name] for column in columns)
    return place.union_all(select(arrived.c.id, *further).join_from(place, arrived, arrived.c.id == step(place)))


def _demands() -> Select[Any]:
    """See ``demands``."""
    order = (TASK.c.hint, TASK.c.demand, TASK.c.tenant)  # the order of one index: two begin with hint and demand

    def step(place: CTE) -> ColumnElement[str]:
        another = _following(order, TASK.c.hint == place.c.hint, TASK.c.demand > place.c.demand)
        under_another = _following(order, TASK.c.hint > place.c.hint)
        skipped = place.c.hint.in_(_among("hints"))
        return case((skipped, under_another), else_=func.coalesce(another, under_another))

    place = _stepping(_following(order), order[:2], step)
    # NOT IN needs a parameter of its own, see ``Statement``.
    return select(place.c.hint, place.c.demand).where(place.c.hint.not_in(_among("without_hints")))


def _lanes() -> Select[Any]:
    """See ``lanes``."""
    order = (TASK.c.tenant, TASK.c.lane, TASK.c.dir_key)
    newcomers = bindparam("newcomers", type_=Integer) == 1

    def following(*conditions: ColumnElement[bool]) -> ScalarSelect[str]:
        return _following(order, *_DEMANDED, *conditions)

    def step(place: CTE) -> ColumnElement[str]:
        theirs = TASK.c.tenant == place.c.tenant
        in_lane = following(theirs, TASK.c.lane == place.c.lane, TASK.c.dir_key > place.c.dir_key)
        in_another = following(theirs, TASK.c.lane > place.c.lane)
        of_another = case((newcomers, following(TASK.c.tenant > place.c.tenant)))
        return case(
            (place.c.tenant.in_(_among("tenants")), of_another),
            (place.c.dir_key.in_(_among("dir_keys")), func.coalesce(in_lane, in_another, of_another)),
            else_=func.coalesce(in_another, of_another),
        )

    start = case((newcomers, following()), else_=following(TASK.c.tenant == OWN))
    place = _stepping(start, order, step)
    return select(place.c.lane).where(
        place.c.dir_key.not_in(_among("without_dir_keys")), place.c.tenant.not_in(_among("without_tenants"))
    )


def select_in_turn() -> Select[Any]:
    """Select what ``in_turn`` returns."""
    another = TASK.alias("another")
    followed = exists().where(another.c.state.in_(_NOT_ENDED), another.c.thread == TASK.c.id)
    return (
        select(_EXCLUSIVE, TASK.c.id)
        .where(text("task.seq > 0"), TASK.c.state.in_(_KEEPING), or_(TASK.c.thread.is_not(None), followed))
        .where(or_(TASK.c.state != "WAITING", TASK.c.reason != "dependency"))
        .order_by(*_ORDER)
    )


def _on_ended() -> Select[Any]:
    """See ``waiting_on_ended``."""
    dependency = TASK.alias("dependency")
    bound = TASK_DEPENDENCY.join(dependency, dependency.c.id == TASK_DEPENDENCY.c.depends_on_id)
    failed = (
        exists()
        .select_from(bound)
        .where(TASK_DEPENDENCY.c.task_id == TASK.c.id, dependency.c.state.in_(("FAILED", "CANCELLED")))
    )
    open_dependency = (
        exists()
        .select_from(TASK_DEPENDENCY.outerjoin(dependency, dependency.c.id == TASK_DEPENDENCY.c.depends_on_id))
        .where(
            TASK_DEPENDENCY.c.task_id == TASK.c.id, or_(dependency.c.id.is_(None), dependency.c.state != "COMPLETED")
        )
    )
    query = select(TASK).where(TASK.c.state == "WAITING", TASK.c.reason == "dependency", or_(failed, ~open_dependency))
    return query.limit(bindparam("most"))


# Compiled once, as each tick runs nearly all of them.
_DEMANDS = Statement(_demands())
_LANES = Statement(_lanes())
_IN_TURN = Statement(select_in_turn())
_ON_ENDED = Statement(_on_ended())
_HEADS = select(TASK.c.id).where(
    _QUEUED,
    TASK.c.lane == bindparam("in_lane"),
    or_(TASK.c.dir_key.not_in(_among("dir_keys")), TASK.c.id.in_(_among("keepers"))),
    or_(_EXCLUSIVE.not_in(_among("threads")), TASK.c.id.in_(_among("in_turn"))),
    TASK.c.id.not_in(_among("without")),
)
_BEHIND = tuple_(*_ORDER) > tuple_(*(bindparam(f"after_{column.name}", type_=column.type) for column in _ORDER))
_FIRST_PLACES = Statement(
    select(*_ORDER, TASK.c.lane, TASK.c.tenant, TASK.c.dir_key, TASK.c.thread)
    .where(_QUEUED, *_DEMANDED, _BEHIND)
    .order_by(*_ORDER)
    .limit(bindparam("most"))
)
_WAITED = TASK.c.updated_ms <= bindparam("queued_by")
_HEAD = {
    (after, waited): Statement(
        _HEADS.where(*((_BEHIND,) if after else ()), *((_WAITED,) if waited else ())).order_by(*_ORDER).limit(1)
    )
    for after in (False, True)
    for waited in (False, True)
}
"""By whether a position and a waiting time are given."""
_WAITING = Statement(
    _HEADS.with_only_columns(TASK.c.updated_ms)
    .where(_BEHIND, TASK.c.updated_ms > bindparam("queued_after"))
    .order_by(TASK.c.updated_ms)
    .limit(1)
)
_CONTENTS = Statement(
    select(TASK, raw(TASK_REVISION.c.spec))
    .join(TASK_REVISION, and_(TASK_REVISION.c.task_id == TASK.c.id, TASK_REVISION.c.revision == TASK.c.revision))
    .where(TASK.c.id.in_(_among("tasks")))
)
_FIRST_UNROUTED = Statement(select(TASK.c.id).where(_UNROUTED).order_by(*_ORDER).limit(bindparam("most")))
_PASS_ROUTING = Statement(
    update(TASK).where(TASK.c.id.in_(_among("tasks")), TASK.c.version == bindparam("of_version"), _UNROUTED)
)
_WITH_CAPS = Statement(
    select(TASK.c.constraints).where(TASK.c.state == "RUNNING", TASK.c.constraints.contains('"caps"'))
)
DUE = tuple(and_(state, TASK.c.until_ms <= bindparam("now")) for state in _TIMED)
"""Separate conditions, as each has an index."""
_DUE = tuple(Statement(select(TASK).where(due).order_by(TASK.c.until_ms).limit(bindparam("most"))) for due in DUE)
STILL_KEPT = (TASK.c.kept_until_ms > bindparam("now"), TASK.c.state.in_(_KEEPING))
_KEPT_AS = ("dir_key", "task_id", "name", "until")
_KEPT = Statement(
    select(TASK.c.dir_key, TASK.c.id, TASK.c.name, TASK.c.kept_until_ms)
    .where(*STILL_KEPT, TASK.c.dir_key != "")
    .order_by(TASK.c.dir_key, TASK.c.id)
)
_NEXT_TIMES = Statement(
    select(
        *(select(func.min(TASK.c.until_ms)).where(state).scalar_subquery() for state in _TIMED),
        select(func.min(TASK.c.kept_until_ms)).where(*STILL_KEPT).scalar_subquery(),
        NEXT_END.scalar_subquery(),
        NEXT_DEADLINE.scalar_subquery(),
    )
)
_RUNNING = Statement(select(TASK).where(TASK.c.state == "RUNNING"))
WITH_INTENT = or_(TASK.c.cancel_requested_ms.is_not(None), TASK.c.restart_requested.is_not(None))
_WITH_INTENT = Statement(select(TASK).where(WITH_INTENT))
_ANY = Statement(select(TASK.c.id).where(_QUEUED).limit(1))
_UNENDED = select(TASK.c.state, func.count().label("number")).where(TASK.c.state.in_(_NOT_ENDED)).group_by(TASK.c.state)


def has_tasks(connection: Connection) -> bool:
    """Return whether any task is queued."""
    return _ANY.row(connection) is not None


def demands(connection: Connection, without_hints: Collection[str] = ()) -> list[Demand]:
    """Return what queued tasks demand. The query skips from demand to demand, so its cost grows with their number, not
    with that of tasks, and skips all demands with a hint to leave out at once."""
    hints = sorted(without_hints)
    return [Demand(*row) for row in _DEMANDS.rows(connection, hints=hints, without_hints=hints)]


def lanes(connection: Connection, demand: Demand, taken: Taken, shut: Shut = NOTHING_SHUT) -> set[str]:
    """Return the lanes of that demand that have a task whose directory is free. shut: tenants to leave out.

    The query skips from lane to lane and, within a lane, from directory to directory up to the first free one. Its cost
    grows with the number of lanes and taken directories, not of tasks.
    """
    given = {"dir_keys": sorted(taken.dir_keys), "tenants": sorted(shut.tenants)}
    given |= {f"without_{name}": values for name, values in given.items()}
    newcomers = 0 if shut.newcomers else 1
    lanes = set(
        _LANES.values(connection, newcomers=newcomers, of_hint=demand.hint, of_demand=demand.constraints, **given)
    )
    if taken.keepers:
        kept_for = TASK.c.id.in_(sorted(taken.keepers))
        keeping = select(TASK.c.lane).where(
            _QUEUED, kept_for, TASK.c.hint == demand.hint, TASK.c.demand == demand.constraints
        )
        lanes.update(connection.execute(keeping).scalars())
    return lanes


def all_lanes(connection: Connection) -> list[str]:
    """Return all lanes of the queue."""
    groups = (lanes(connection, demand, Taken()) for demand in demands(connection))
    return sorted(lane for those in groups for lane in those)


def first_places(connection: Connection, demand: Demand, limit: int, after: Position) -> list[QueuePlace]:
    """Return where the first queued tasks with that demand behind the position would work, in the queue's order."""
    behind = {f"after_{column.name}": value for column, value in zip(_ORDER, after, strict=True)}
    given = {"of_hint": demand.hint, "of_demand": demand.constraints, **behind}
    return [QueuePlace(row[:3], *row[3:]) for row in _FIRST_PLACES.rows(connection, most=limit, **given)]


def heads(
    connection: Connection,
    wanted: Collection[str],
    taken: Taken,
    *,
    after: Position | None = None,
    without: Collection[str] = (),
    queued_by: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, tuple[Task, Content]]:
    """Return each lane's first task, in the queue's order, whose directory and thread are free, with its spec.

    after: only tasks after this position. without: tasks to leave out. queued_by: by lane, a time in epoch milliseconds
    since which its tasks must not have changed.
    """
    places = _places(taken, after, without)
    ids: list[str] = []
    for lane in sorted(wanted):
        given = {**places, "in_lane": lane}
        if lane in queued_by:
            given["queued_by"] = queued_by[lane]
        ids += _HEAD[after is not None, lane in queued_by].values(connection, **given)
    return {str(task.lane): (task, spec) for task, spec in contents(connection, ids)}


def waiting_since(
    connection: Connection,
    lane: str,
    taken: Taken,
    *,
    after: Position,
    without: Collection[str] = (),
    queued_after: int,
) -> int | None:
    """Return the earliest change, in epoch milliseconds, of the lane's tasks after the position that have changed since
    ``queued_after`` and whose places are free, or None. without: see ``heads``."""
    places = _places(taken, after, without)
    count: int | None = _WAITING.value(connection, **places, in_lane=lane, queued_after=queued_after)
    return count


def _places(taken: Taken, after: Position | None, without: Collection[str]) -> dict[str, object]:
    """Return the parameters of the statements of ``heads``."""
    places: dict[str, object] = {
        "dir_keys": sorted(taken.dir_keys),
        "keepers": sorted(taken.keepers),
        "threads": sorted(taken.threads),
        "in_turn": sorted(taken.in_turn),
        "without": sorted(without),
    }
    if after is not None:
        places |= {f"after_{column.name}": value for column, value in zip(_ORDER, after, strict=True)}
    return places


def contents(connection: Connection, task_ids: Sequence[str]) -> list[tuple[Task, Content]]:
    """Return the tasks with their specs, in the queue's order."""
    tasks: list[tuple[Task, Content]] = []
    for start in range(0, len(task_ids), _BATCH_SIZE):
        for row in _CONTENTS.rows(connection, tasks=task_ids[start : start + _BATCH_SIZE]):
            *columns, spec = row
            tasks.append((task_from(columns), spec))
    return sorted(tasks, key=lambda pair: position(pair[0]))


def unrouted(connection: Connection, limit: int, without: Collection[str] = ()) -> list[tuple[Task, Content]]:
    """Return the first queued tasks that are not routed yet, with their specs. without: tasks to leave out."""
    first = _FIRST_UNROUTED.values(connection, most=limit + len(without))
    return contents(connection, [task_id for task_id in first if task_id not in without][:limit])


def pass_routing(connection: Connection, versions: Mapping[str, int]) -> None:
    """Record that no specialist does these tasks. Their versions stay, so that plans for them remain valid.

    versions: the tasks' versions at the decision, by id; a task that has changed since is left alone.
    """
    for version in sorted(set(versions.values())):
        ids = sorted(task_id for task_id, of in versions.items() if of == version)
        _PASS_ROUTING.run(connection, tasks=ids, of_version=version, constraints=Constraints().text)


def route_again(connection: Connection, task_ids: Collection[str] | None = None) -> int:
    """Have queued tasks routed and judged again, and return their number.

    task_ids: only these; None: all queued tasks.
    """
    routed = update(TASK).where(_QUEUED, TASK.c.constraints.is_not(None))
    if task_ids is not None:
        routed = routed.where(TASK.c.id.in_(task_ids))
    return connection.execute(routed.values(constraints=None, version=TASK.c.version + 1)).rowcount


def caps_in_use(connection: Connection) -> Counter[str]:
    """Return the number of running tasks by policy rule that limits concurrency."""
    capped = _WITH_CAPS.values(connection)
    return Counter(cap.rule for text in capped for cap in Constraints.shown(text).caps)


def first(connection: Connection, lane: str, limit: int) -> list[Position]:
    """Return the positions of the lane's first tasks, whether or not their places are free."""
    query = select(*_ORDER).where(_QUEUED, TASK.c.lane == lane).order_by(*_ORDER).limit(limit)
    return [(rank_ms, created_ms, task_id) for rank_ms, created_ms, task_id in connection.execute(query)]


def position(task: Task) -> Position:
    """Return the task's position in the queue's order."""
    return task.rank_ms, task.created_ms, task.id


def due(connection: Connection, now_ms: int, limit: int) -> Sequence[Task]:
    """Return waiting tasks that are due, and tasks whose wait for a person has expired."""
    agents = []
    for query in _DUE:
        agents += [task_from(row) for row in query.rows(connection, now=now_ms, most=limit)]
    return agents


def waiting_on_ended(connection: Connection, limit: int) -> Sequence[Task]:
    """Return tasks that wait for dependencies although all of them have completed, or one has failed.

    A task's end readies its dependents in the same transaction, so this finds only what older versions left behind.
    """
    return [task_from(row) for row in _ON_ENDED.rows(connection, most=limit)]


def next_times(connection: Connection, now_ms: int) -> NextTimes:
    """Return the next times, by one query."""
    return NextTimes(*_NEXT_TIMES.rows(connection, now=now_ms)[0])


def kept(connection: Connection, now_ms: int) -> list[dict[str, Any]]:
    """Return the directories kept for tasks, as dir_key, task_id, name and until, in a fixed order."""
    return [dict(zip(_KEPT_AS, row, strict=True)) for row in _KEPT.rows(connection, now=now_ms)]


def running(connection: Connection) -> Sequence[Task]:
    """Return the tasks with a live run."""
    return [task_from(row) for row in _RUNNING.rows(connection)]


def with_intent(connection: Connection) -> Sequence[Task]:
    """Return tasks whose requested cancellation or forced restart is pending."""
    return [task_from(row) for row in _WITH_INTENT.rows(connection)]


def in_turn(connection: Connection) -> dict[str, str]:
    """Return, for each thread shared by several tasks, the task whose turn it is: it has begun, and will continue."""
    names: dict[str, str] = {}
    for thread, task_id in _IN_TURN.rows(connection):
        names.setdefault(thread, task_id)
    return names


def unended(connection: Connection) -> dict[str, int]:
    """Return the number of tasks in each state that is not final."""
    return {row.state: row.number for row in connection.execute(_UNENDED)}
