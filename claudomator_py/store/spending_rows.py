"""What was spent, asked of run rows each time, and never counted up: by a task in all, by each agent in a span of time.

A run counts where it began. One that was given up before it started cost nothing, and is no run; neither is one that
only met a limit which was known by then, or an outage.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    Row,
    bindparam,
    case,
    cast,
    func,
    literal_column,
    select,
)

from claudomator_py.domain.budget import Spending, WindowUse
from claudomator_py.domain.limits import MAX_RESET_MS
from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.store.statement import Statement
from claudomator_py.store.stored_json import readable, sound
from claudomator_py.store.tables import RUN
from claudomator_py.store.visibility import alike, runs_seen

# As the index has it: SQLite uses that only for a condition that is written like its own.
_BEGUN = RUN.c.state != literal_column("'revoked'")
_NEWEST = (RUN.c.windows_ms.desc(), RUN.c.started_ms.desc(), RUN.c.id)
_LATEST = 8
"""Reports of an account that are looked at: each may be about some of its windows only."""
_WINDOWS = Statement(
    select(RUN.c.windows_ms, RUN.c.id, RUN.c.windows)
    .where(RUN.c.kind == bindparam("kind"), RUN.c.account == bindparam("account"), RUN.c.windows_ms.is_not(None))
    .order_by(*_NEWEST)
    .limit(bindparam("limit", type_=Integer))
)


def of_task(connection: Connection, task_id: str) -> Spending:
    """Return what all runs of the task have used, of whichever generation."""
    query = select(*_sums()).where(RUN.c.task_id == task_id, _BEGUN)
    return _spending(connection.execute(query).one())


def by_agent(connection: Connection, start_ms: int, end_ms: int, by: Principal = OPERATOR) -> Mapping[str, Spending]:
    """Return what the runs that exist for that principal have used that began from start_ms until before end_ms, by
    agent."""
    rows = _by_agent(alike(by)).rows(connection, start=start_ms, end=end_ms)
    return {
        agent: Spending(float(usd), int(tokens), int(runs), int(unpriced), int(uncounted))
        for agent, runs, usd, tokens, unpriced, uncounted in rows
    }


@lru_cache(maxsize=16)
def _by_agent(by: Principal) -> Statement:
    start, end = (bindparam(name, type_=BigInteger) for name in ("start", "end"))
    query = select(RUN.c.agent, *_sums()).where(RUN.c.started_ms >= start, RUN.c.started_ms < end)
    return Statement(query.where(_BEGUN, runs_seen(by)).group_by(RUN.c.agent))


def fees(connection: Connection, start_ms: int, by: Principal) -> Mapping[str, tuple[int, float]]:
    """Return what is owed to creators of cards for runs that exist for that principal and began at start_ms or later:
    how many runs, and US dollars, by creator."""
    creator = sound(RUN.c.outcome)["fee"]["creator"].as_string()
    usd = func.sum(sound(RUN.c.outcome)["fee"]["usd"].as_float())
    query = select(creator, func.count(), usd).where(RUN.c.started_ms >= start_ms, _BEGUN, runs_seen(by))
    query = query.where(RUN.c.specialist.is_not(None), creator.is_not(None)).group_by(creator).order_by(creator)
    return {name: (int(runs), float(total)) for name, runs, total in connection.execute(query)}


class WindowReport(NamedTuple):
    """What an account said of its windows."""

    at_ms: int
    """When that was noted."""
    run_id: str
    """In which run."""
    uses: Mapping[str, WindowUse]
    """By the window's name, as far as it is to be believed."""


def window_reports(connection: Connection, kind: str, account: str, limit: int = _LATEST) -> Sequence[WindowReport]:
    """Return what the account said last of its windows, the newest first, at most limit."""
    return [
        WindowReport(
            at_ms,
            run_id,
            {
                name: use
                for name, stored in said.items()
                if (use := readable(WindowUse, stored)) is not None and use.resets_at <= at_ms + MAX_RESET_MS
            },
        )
        for at_ms, run_id, said in _WINDOWS.rows(connection, kind=kind, account=account, limit=limit)
    ]


def windows(connection: Connection, kind: str, account: str) -> Mapping[str, WindowUse]:
    """Return what the account last said of each of its windows, by name, as far as it is to be believed."""
    found: dict[str, WindowUse] = {}
    for report in window_reports(connection, kind, account):
        found = dict(report.uses) | found
    return found


def _sums() -> tuple[ColumnElement[Any], ...]:
    def missing(column: ColumnElement[Any]) -> ColumnElement[Any]:
        unsaid = ~RUN.c.live & column.is_(None) & RUN.c.in_vain.is_not(True)
        return func.coalesce(func.sum(cast(case((unsaid, 1), else_=0), Integer)), 0)

    def total(column: ColumnElement[Any]) -> ColumnElement[Any]:
        return func.coalesce(func.sum(column), 0)

    return (
        func.coalesce(func.sum(case((RUN.c.in_vain.is_(True), 0), else_=1)), 0).label("runs"),
        total(RUN.c.cost_usd).label("usd"),
        (total(RUN.c.input_tokens) + total(RUN.c.output_tokens)).label("tokens"),
        missing(RUN.c.cost_usd).label("unpriced"),
        missing(RUN.c.output_tokens).label("uncounted"),
    )


def _spending(row: Row[Any]) -> Spending:
    return Spending(float(row.usd), int(row.tokens), int(row.runs), int(row.unpriced), int(row.uncounted))
