"""What a picture of a span of time is drawn from: runs, holds and starts of the daemon that fall into it."""

from collections.abc import Sequence

from sqlalchemy import Connection, and_, literal_column, or_, select

from claudomator_py.domain.limits import Bucket
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.units import DAY_MS
from claudomator_py.store.tables import EVENT, HOLD, RUN, TASK
from claudomator_py.store.visibility import runs_seen, tasks_seen
from claudomator_py.values import dataclass

STARTED = "daemon_started"
"""The event: a daemon has begun to work with the database."""
MAX_ENDED_RUN_MS = 2 * DAY_MS
"""An ended run that began earlier than this before the span is left out: there is an index of beginnings alone."""
MAX_RUNS = 50_000
_BEGUN = RUN.c.state != literal_column("'revoked'")
"""As the index has it."""


@dataclass(frozen=True, slots=True)
class DrawnRun:
    """A run, with what a picture shows of it."""

    task_id: str
    task_name: str
    agent: str
    started_ms: int
    ended_ms: int | None
    """None: it lives."""
    ended_as: str | None
    """See ``domain.outcome.OutcomeStatus``."""
    reason: str | None
    cost_usd: float | None
    dir_key: str


@dataclass(frozen=True, slots=True)
class DrawnHold:
    """A hold that was in force."""

    bucket: Bucket
    reason: str | None
    """None: an operator's own."""
    begin_ms: int
    end_ms: int | None
    """None: it is to be released."""


def runs(connection: Connection, since_ms: int, until_ms: int, by: Principal) -> Sequence[DrawnRun]:
    """Return the runs of that time that exist for that principal, by their beginning; the newest 50,000."""
    ended = and_(RUN.c.started_ms >= since_ms - MAX_ENDED_RUN_MS, RUN.c.ended_ms >= since_ms)
    query = (
        select(
            RUN.c.task_id,
            TASK.c.name,
            RUN.c.agent,
            RUN.c.started_ms,
            RUN.c.ended_ms,
            RUN.c.ended_as,
            RUN.c.reason,
            RUN.c.cost_usd,
            RUN.c.dir_key,
        )
        .join(TASK, TASK.c.id == RUN.c.task_id)
        .where(_BEGUN, RUN.c.started_ms < until_ms, tasks_seen(by))
        .order_by(RUN.c.started_ms.desc(), RUN.c.id)
        .limit(MAX_RUNS)
    )
    found = [*connection.execute(query.where(ended)), *connection.execute(query.where(RUN.c.live))]
    return sorted((DrawnRun(*row) for row in found), key=lambda run: run.started_ms)


def holds(connection: Connection, since_ms: int, until_ms: int) -> Sequence[DrawnHold]:
    """Return the holds that were in force in that time, by their beginning. They are everybody's."""
    lasts = and_(
        or_(HOLD.c.until_ms.is_(None), HOLD.c.until_ms > since_ms),
        or_(HOLD.c.released_ms.is_(None), HOLD.c.released_ms > since_ms),
    )
    query = select(HOLD).where(HOLD.c.created_ms < until_ms, lasts).order_by(HOLD.c.created_ms, HOLD.c.id)
    return [
        DrawnHold(
            Bucket(agent=row.agent, kind=row.kind, account=row.account, family=row.family),
            row.reason,
            row.created_ms,
            min((end for end in (row.until_ms, row.released_ms) if end is not None), default=None),
        )
        for row in connection.execute(query)
    ]


def starts(connection: Connection, since_ms: int, until_ms: int) -> Sequence[int]:
    """Return when daemons began in that time, in epoch milliseconds."""
    query = select(EVENT.c.at_ms).where(EVENT.c.task_id.is_(None), EVENT.c.kind == STARTED)  # of no task are few
    query = query.where(EVENT.c.at_ms >= since_ms, EVENT.c.at_ms < until_ms)
    return list(connection.execute(query.order_by(EVENT.c.id)).scalars())


def has_earlier(connection: Connection, since_ms: int, by: Principal) -> bool:
    """Return whether a run that exists for that principal began before that time."""
    query = select(RUN.c.id).where(_BEGUN, RUN.c.started_ms < since_ms, runs_seen(by))
    return connection.execute(query.limit(1)).one_or_none() is not None
