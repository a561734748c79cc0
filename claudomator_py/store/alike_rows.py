"""Counts for truncated lists of the status: how many unlisted tasks share the reason of a listed one."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Connection,
    ScalarSelect,
    Select,
    bindparam,
    case,
    func,
    select,
    text,
)

from claudomator_py.domain.lifecycle import UNSUCCESSFUL, WaitReason
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.store.reads import Listed, StatusList
from claudomator_py.store.statement import Statement
from claudomator_py.store.stored_json import sound
from claudomator_py.store.tables import RUN, TASK, TASK_DEPENDENCY
from claudomator_py.store.visibility import representative, tasks_seen

_OTHER = TASK.alias("other")
_LISTED: BindParameter[Sequence[str]] = bindparam("listed", expanding=True)
_SAID_OF_FAILURES = ("reason", "detail", "over_budget", "refused_handoff")
_ASKED = ("kind", "text", "refused_handoff", "unclear", "until_ms")


def unlisted(
    connection: Connection, lists: Mapping[StatusList, Listed], failed_since_ms: int, by: Principal = OPERATOR
) -> dict[str, int]:
    """Return, by id of a listed task, how many unlisted tasks are in the same list for the same reason. Only tasks
    visible to the principal count, each once. Questions are left out, as each is different."""
    counts: dict[str, int] = {}
    for name, query in _queries(representative(by)).items():
        listed = lists[name]
        if listed.total > len(listed.tasks) > 0:
            given = {"since": failed_since_ms} if name == "problems" else {}
            for statement in query:
                rows = statement.rows(connection, listed=[task.id for task in listed.tasks], **given)
                counts.update((task_id, int(number)) for task_id, number in rows)
    return counts


@lru_cache(maxsize=16)
def _queries(by: Principal) -> Mapping[StatusList, Sequence[Statement]]:
    mine, outcome, asks = tasks_seen(by), sound(RUN.c.outcome), sound(TASK.c.asks)
    asked = [asks[part].as_string() for part in _ASKED]
    texts = [outcome[part].as_string() for part in _SAID_OF_FAILURES]
    of_a_person = TASK.c.reason.in_([Reason.EXPIRED.value, Reason.REJECTED.value])
    failed = (
        *texts,
        case((TASK.c.reason == Reason.DEPENDENCY_FAILED.value, _dependencies(_OTHER.c.state.in_(UNSUCCESSFUL)))),
        *(case((of_a_person, part)) for part in (*asked, asks["rejected"].as_string())),
    )
    since = TASK.c.updated_ms >= bindparam("since", type_=BigInteger)
    in_use = select(RUN.c.dir_key).where(RUN.c.live)
    kept = select(_OTHER.c.dir_key).where(_OTHER.c.kept_until_ms.is_not(None))
    # A task whose directory is free waits for the same thing as its whole lane.
    place = case((TASK.c.dir_key.in_(in_use), TASK.c.dir_key), (TASK.c.dir_key.in_(kept), TASK.c.dir_key))
    unready = case(
        (TASK.c.reason == WaitReason.DEPENDENCY.value, _dependencies(_OTHER.c.state.is_distinct_from("COMPLETED")))
    )
    # Only lanes of listed tasks count; there may be thousands of others.
    their_lanes = select(_OTHER.c.lane).where(_OTHER.c.id.in_(_LISTED))
    queued = (text("task.state = 'QUEUED'"), TASK.c.lane.in_(their_lanes))
    waits = func.coalesce(TASK.c.reason, "") != WaitReason.BUDGET.value
    return {
        "needs_you": [
            _counted(select(*asked), mine, TASK.c.state == "NEEDS_INPUT", func.coalesce(asked[0], "") != "question")
        ],
        "problems": [
            _counted(
                select(*failed).select_from(TASK.outerjoin(RUN, RUN.c.id == TASK.c.last_run_id)),
                mine,
                TASK.c.state == "FAILED",
                since,
            )
        ],
        "queued": [
            _counted(select(TASK.c.lane, place, TASK.c.thread), mine, *queued),
            _counted(select(TASK.c.until_ms, unready), mine, TASK.c.state == "WAITING", waits),
        ],
    }


def _counted(alike_in: Select[Any], *which: ColumnElement[bool] | Any) -> Statement:
    """Group tasks by columns and reason: for each group with a listed task, its id and the number unlisted."""
    listed = case((TASK.c.id.in_(_LISTED), TASK.c.id)).label("listed")
    parts = [column.label(f"part_{number}") for number, column in enumerate(alike_in.selected_columns)]
    # A subquery, because PostgreSQL treats an expression with parameters as a different one at each occurrence.
    subquery = (
        alike_in.with_only_columns(listed, TASK.c.reason, *parts, maintain_column_froms=True).where(*which).subquery()
    )
    beyond = func.count() - func.count(subquery.c.listed)
    chosen: list[ColumnElement[Any]] = [func.min(subquery.c.listed), beyond]
    query = select(*chosen).group_by(*list(subquery.c)[1:])
    return Statement(query.having(func.count(subquery.c.listed) > 0, beyond > 0))


def _dependencies(which: ColumnElement[bool]) -> ScalarSelect[str]:
    """Return the names and states of the dependencies that meet the condition, as one string."""
    text = TASK_DEPENDENCY.c.name + " " + func.coalesce(_OTHER.c.state, "")
    pairs = TASK_DEPENDENCY.outerjoin(_OTHER, _OTHER.c.id == TASK_DEPENDENCY.c.depends_on_id)
    query = select(func.aggregate_strings(text, ",")).select_from(pairs)
    return query.where(TASK_DEPENDENCY.c.task_id == TASK.c.id, which).correlate(TASK).scalar_subquery()
