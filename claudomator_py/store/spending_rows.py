"""Spending of a task in total and of agents in a time span, summed from run rows each time.

A run counts for the time at which it began. Runs given up before they started are not counted, nor are runs in vain,
which only met a known limit or an outage.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    bindparam,
    case,
    cast,
    func,
    select,
)

from claudomator_py.domain.budget import Spending, WindowUse
from claudomator_py.domain.limits import MAX_RESET_MS
from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.store.run_rows import BEGUN
from claudomator_py.store.statement import Statement
from claudomator_py.store.stored_json import readable, sound
from claudomator_py.store.tables import RUN
from claudomator_py.store.visibility import representative, runs_seen

_NEWEST = (RUN.c.windows_ms.desc(), RUN.c.started_ms.desc(), RUN.c.id)
_LATEST = 8
"""Reports of an account that are read, as each may cover only some of its windows."""
_WINDOWS = Statement(
    select(RUN.c.windows_ms, RUN.c.id, RUN.c.windows)
    .where(RUN.c.kind == bindparam("kind"), RUN.c.account == bindparam("account"), RUN.c.windows_ms.is_not(None))
    .order_by(*_NEWEST)
    .limit(bindparam("limit", type_=Integer))
)


def of_task(connection: Connection, task_id: str) -> Spending:
    """Return the spending of all runs of the task, of all generations."""
    query = select(*_sums()).where(RUN.c.task_id == task_id, BEGUN)
    return _spending(*connection.execute(query).one())


def by_agent(connection: Connection, start_ms: int, end_ms: int, by: Principal = OPERATOR) -> Mapping[str, Spending]:
    """Return the spending by agent of runs visible to the principal that began from start_ms until before end_ms."""
    rows = _by_agent(representative(by)).rows(connection, start=start_ms, end=end_ms)
    return {agent: _spending(*sums) for agent, *sums in rows}


@lru_cache(maxsize=16)
def _by_agent(by: Principal) -> Statement:
    start, end = (bindparam(name, type_=BigInteger) for name in ("start", "end"))
    query = select(RUN.c.agent, *_sums()).where(RUN.c.started_ms >= start, RUN.c.started_ms < end)
    return Statement(query.where(BEGUN, runs_seen(by)).group_by(RUN.c.agent))


def fees(connection: Connection, start_ms: int, by: Principal) -> Mapping[str, tuple[int, float]]:
    """Return the fees owed to cards' creators for runs visible to the principal that began from start_ms on: number of
    runs and US dollars, by creator."""
    creator = sound(RUN.c.outcome)["fee"]["creator"].as_string()
    usd = func.sum(sound(RUN.c.outcome)["fee"]["usd"].as_float())
    query = select(creator, func.count(), usd).where(RUN.c.started_ms >= start_ms, BEGUN, runs_seen(by))
    query = query.where(RUN.c.specialist.is_not(None), creator.is_not(None)).group_by(creator).order_by(creator)
    return {name: (int(runs), float(total)) for name, runs, total in connection.execute(query)}


class WindowReport(NamedTuple):
    """An account's report on the use of its quota windows."""

    at_ms: int
    """When it was recorded, in epoch milliseconds."""
    run_id: str
    """The run that reported it."""
    uses: Mapping[str, WindowUse]
    """The plausible uses, by the window's name."""


def window_reports(connection: Connection, kind: str, account: str, limit: int = _LATEST) -> Sequence[WindowReport]:
    """Return at most ``limit`` of the account's last reports on its windows, newest first."""
    return [
        WindowReport(
            at_ms,
            run_id,
            {
                name: use
                for name, stored in windows_json.items()
                if (use := readable(WindowUse, stored)) is not None and use.resets_at <= at_ms + MAX_RESET_MS
            },
        )
        for at_ms, run_id, windows_json in _WINDOWS.rows(connection, kind=kind, account=account, limit=limit)
    ]


def windows(connection: Connection, kind: str, account: str) -> Mapping[str, WindowUse]:
    """Return the last plausible use of each of the account's windows, by name."""
    uses: dict[str, WindowUse] = {}
    for report in window_reports(connection, kind, account):
        uses = dict(report.uses) | uses
    return uses


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


def _spending(runs: int, usd: float, tokens: int, unpriced: int, uncounted: int) -> Spending:
    return Spending(float(usd), int(tokens), int(runs), int(unpriced), int(uncounted))
