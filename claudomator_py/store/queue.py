"""The queue: what is demanded, lanes and their heads, and which tasks are routed."""

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
from claudomator_py.store.statement import Statement
from claudomator_py.store.stored_json import raw
from claudomator_py.store.tables import TASK, TASK_REVISION, Task

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


# Literally the conditions of the partial indexes, so that these are used.
QUEUED = text("task.state = 'QUEUED'")
_UNROUTED = text("task.state = 'QUEUED' AND task.constraints IS NULL")
EXCLUSIVE = func.coalesce(TASK.c.thread, TASK.c.id)
_BATCH_SIZE = 500
"""Tasks fetched by one statement."""
ORDER = (TASK.c.rank_ms, TASK.c.created_ms, TASK.c.id)
_DEMANDED = (TASK.c.hint == bindparam("of_hint"), TASK.c.demand == bindparam("of_demand"))


def _among(name: str) -> BindParameter[Sequence[str]]:
    return bindparam(name, expanding=True)


def _following(order: Sequence[ColumnElement[Any]], *conditions: ColumnElement[bool]) -> ScalarSelect[str]:
    """Select the id of the first matching queued task in that order."""
    query = select(TASK.c.id).where(QUEUED, *conditions).order_by(*order).limit(1)
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


# Compiled once, as each tick runs nearly all of them.
_DEMANDS = Statement(_demands())
_LANES = Statement(_lanes())
_HEADS = select(TASK.c.id).where(
    QUEUED,
    TASK.c.lane == bindparam("in_lane"),
    or_(TASK.c.dir_key.not_in(_among("dir_keys")), TASK.c.id.in_(_among("keepers"))),
    or_(EXCLUSIVE.not_in(_among("threads")), TASK.c.id.in_(_among("in_turn"))),
    TASK.c.id.not_in(_among("without")),
)
_BEHIND = tuple_(*ORDER) > tuple_(*(bindparam(f"after_{column.name}", type_=column.type) for column in ORDER))
_PLACES = (
    select(*ORDER, TASK.c.lane, TASK.c.tenant, TASK.c.dir_key, TASK.c.thread)
    .where(QUEUED)
    .order_by(*ORDER)
    .limit(bindparam("most"))
)
_QUEUED_IDS = select(TASK.c.id).where(QUEUED).limit(bindparam("most"))
_NUMBER = Statement(select(func.count()).select_from(_QUEUED_IDS.subquery()))
_FIRST_PLACES = Statement(_PLACES)
_NEXT_PLACES = Statement(_PLACES.where(*_DEMANDED, _BEHIND))
_WAITED = TASK.c.updated_ms <= bindparam("queued_by")
_HEAD = {
    (after, waited): Statement(
        _HEADS.where(*((_BEHIND,) if after else ()), *((_WAITED,) if waited else ())).order_by(*ORDER).limit(1)
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
_FIRST_UNROUTED = Statement(select(TASK.c.id).where(_UNROUTED).order_by(*ORDER).limit(bindparam("most")))
_PASS_ROUTING = Statement(
    update(TASK).where(TASK.c.id.in_(_among("tasks")), TASK.c.version == bindparam("of_version"), _UNROUTED)
)
_WITH_CAPS = Statement(
    select(TASK.c.constraints).where(TASK.c.state == "RUNNING", TASK.c.constraints.contains('"caps"'))
)


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
            QUEUED, kept_for, TASK.c.hint == demand.hint, TASK.c.demand == demand.constraints
        )
        lanes.update(connection.execute(keeping).scalars())
    return lanes


def all_lanes(connection: Connection) -> list[str]:
    """Return all lanes of the queue."""
    groups = (lanes(connection, demand, Taken()) for demand in demands(connection))
    return sorted(lane for those in groups for lane in those)


def number(connection: Connection, most: int) -> int:
    """Return the number of queued tasks, or ``most`` if there are more."""
    return int(_NUMBER.value(connection, most=most))


def first_places(connection: Connection, limit: int) -> list[QueuePlace]:
    """Return where the first queued tasks would work, in the queue's order."""
    return [QueuePlace(row[:3], *row[3:]) for row in _FIRST_PLACES.rows(connection, most=limit)]


def next_places(connection: Connection, demand: Demand, limit: int, after: Position) -> list[QueuePlace]:
    """Return where the first queued tasks with that demand behind the position would work, in the queue's order."""
    behind = {f"after_{column.name}": value for column, value in zip(ORDER, after, strict=True)}
    given = {"of_hint": demand.hint, "of_demand": demand.constraints, **behind}
    return [QueuePlace(row[:3], *row[3:]) for row in _NEXT_PLACES.rows(connection, most=limit, **given)]


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
    without: Collection[str],
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
        places |= {f"after_{column.name}": value for column, value in zip(ORDER, after, strict=True)}
    return places


def contents(connection: Connection, task_ids: Sequence[str]) -> list[tuple[Task, Content]]:
    """Return the tasks with their specs, in the queue's order."""
    tasks: list[tuple[Task, Content]] = []
    for start in range(0, len(task_ids), _BATCH_SIZE):
        for row in _CONTENTS.rows(connection, tasks=task_ids[start : start + _BATCH_SIZE]):
            *columns, spec = row
            tasks.append((Task.load(columns), spec))
    return sorted(tasks, key=lambda pair: position(pair[0]))


def unrouted(connection: Connection, limit: int, without: Collection[str] = ()) -> list[tuple[Task, Content]]:
    """Return the first queued tasks that are not routed yet, with their specs. without: tasks to leave out."""
    first = _FIRST_UNROUTED.values(connection, most=limit + len(without))
    return contents(connection, [task_id for task_id in first if task_id not in without][:limit])


def pass_routing(connection: Connection, versions: Mapping[str, int]) -> None:
    """Record that no specialist does these tasks. Their versions stay, so that plans for them remain valid. versions:
    the tasks' versions at the decision, by id; a task that has changed since is left alone."""
    for version in sorted(set(versions.values())):
        ids = sorted(task_id for task_id, of in versions.items() if of == version)
        _PASS_ROUTING.run(connection, tasks=ids, of_version=version, constraints=Constraints().text)


def route_again(connection: Connection, task_ids: Collection[str] | None = None) -> int:
    """Have queued tasks routed and judged again, and return their number. task_ids: only these; None: all queued
    tasks."""
    routed = update(TASK).where(QUEUED, TASK.c.constraints.is_not(None))
    if task_ids is not None:
        routed = routed.where(TASK.c.id.in_(task_ids))
    return connection.execute(routed.values(constraints=None, version=TASK.c.version + 1)).rowcount


def caps_in_use(connection: Connection) -> Counter[str]:
    """Return the number of running tasks by policy rule that limits concurrency."""
    capped = _WITH_CAPS.values(connection)
    return Counter(cap.rule for text in capped for cap in Constraints.shown(text).caps)


def first(connection: Connection, lane: str, limit: int) -> list[Position]:
    """Return the positions of the lane's first tasks, whether or not their places are free."""
    query = select(*ORDER).where(QUEUED, TASK.c.lane == lane).order_by(*ORDER).limit(limit)
    return [(rank_ms, created_ms, task_id) for rank_ms, created_ms, task_id in connection.execute(query)]


def position(task: Task) -> Position:
    """Return the task's position in the queue's order."""
    return task.rank_ms, task.created_ms, task.id
