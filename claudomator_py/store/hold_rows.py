"""Rows of holds, which keep runs off a bucket of quota, and of operators' switches."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Connection,
    and_,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from claudomator_py.domain.limits import TRIED_FIRST, Bucket, Hold, in_family
from claudomator_py.domain.outcome import Provenance, Reason
from claudomator_py.store.statement import Selection, Statement
from claudomator_py.store.tables import HOLD, SWITCH, SwitchRow
from claudomator_py.values import dataclass

E = TypeVar("E", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class LimitHit:
    """The hold that results from a run's limit. known: the limit was met before, and has not been shown to be over
    since. is_news: the hold is new, or lasts longer than was known."""

    hold: Hold
    known: bool
    is_news: bool


def add(connection: Connection, hold: Hold, run_id: str | None) -> None:
    """Insert a hold."""
    connection.execute(insert(HOLD).values(**_columns(hold, run_id)))


def record_limit_hit(connection: Connection, hold: Hold, run_id: str, met_ms: int) -> LimitHit:
    """Record that a run has met a limit. Runs that meet the same limit share one hold, which is never shortened.
    met_ms: when the run ended, in epoch milliseconds. The count of runs continues while the limit is being retried."""
    same = _on(hold.bucket) & (HOLD.c.reason == (hold.reason.value if hold.reason is not None else None))
    now_ms = hold.created_ms
    query = select(HOLD).where(same, _open(now_ms) | _expired(now_ms)).order_by(HOLD.c.id.desc())
    rows = connection.execute(query).all()
    met = {"met": 1 + max((row.met or 1 for row in rows), default=0), "met_ms": met_ms}
    held = max((row for row in rows if _hold(row).holds_at(now_ms)), key=lambda row: _hold(row).end, default=None)
    if held is None:
        connection.execute(insert(HOLD).values(**_columns(hold, run_id), **met))
        return LimitHit(hold, known=bool(rows), is_news=True)
    known = _hold(held)
    longer = hold.end > known.end
    changes = {**_columns(hold, run_id), **met} if longer else met
    connection.execute(update(HOLD).where(HOLD.c.id == held.id).values(**changes))
    return LimitHit(hold if longer else known, known=True, is_news=hold.is_news_after(known))


def in_force(connection: Connection, now_ms: int) -> Sequence[Hold]:
    """Return each bucket's longest hold, the longest first."""
    return _longest(_IN_FORCE.rows(connection, now=now_ms))


def in_force_and_expired(connection: Connection, now_ms: int) -> tuple[Sequence[Hold], Sequence[Hold]]:
    """Return the holds ``in_force``, and those ``expired``."""
    longest = _longest(_IN_FORCE_OR_EXPIRED.rows(connection, now=now_ms))
    return [hold for hold in longest if hold.holds_at(now_ms)], [hold for hold in longest if not hold.holds_at(now_ms)]


def expired(connection: Connection, now_ms: int) -> Sequence[Hold]:
    """Return the limits whose time is over but that are not closed yet, of buckets without a hold in force."""
    return in_force_and_expired(connection, now_ms)[1]


def first_expiry(connection: Connection, bucket: Bucket, now_ms: int) -> int | None:
    """Return the earliest end of the bucket's limits that are over but not closed, in epoch milliseconds, or None."""
    query = select(func.min(HOLD.c.until_ms)).where(_on(bucket), _expired(now_ms))
    first: int | None = connection.execute(query).scalar_one()
    return first


def close(connection: Connection, hold: Hold, now_ms: int) -> None:
    """Close a limit that is over, which ends the cautious use of its bucket."""
    until = HOLD.c.until_ms <= hold.until_ms
    connection.execute(
        update(HOLD).where(_on(hold.bucket), HOLD.c.released_ms.is_(None), until).values(released_ms=now_ms)
    )


def clock_set_back(connection: Connection, by_ms: int) -> None:
    """Move the times of holds along with a clock that was set back by so many milliseconds, except ends that are not
    only guessed."""
    there = HOLD.c.released_ms.is_(None)
    met = {"created_ms": HOLD.c.created_ms - by_ms, "met_ms": HOLD.c.met_ms - by_ms}
    connection.execute(update(HOLD).where(there).values(met))
    guessed = HOLD.c.provenance.in_([Provenance.ESTIMATED, Provenance.PROBED])
    connection.execute(update(HOLD).where(there, guessed).values(until_ms=HOLD.c.until_ms - by_ms))


def latest(connection: Connection, bucket: Bucket) -> Hold | None:
    """Return the bucket's newest hold that was not set by an operator, in force or not, or None."""
    query = select(HOLD).where(_on(bucket), HOLD.c.reason.is_not(None)).order_by(HOLD.c.id.desc()).limit(1)
    row = connection.execute(query).one_or_none()
    return None if row is None else _hold(row)


def hits(connection: Connection, bucket: Bucket, now_ms: int) -> tuple[int, int]:
    """Return how many runs have met the limits in force on the bucket, and when the last did (epoch milliseconds); 0
    if none has."""
    number = func.coalesce(func.sum(func.coalesce(HOLD.c.met, 1)), 0)
    last_ms = func.max(func.coalesce(HOLD.c.met_ms, HOLD.c.created_ms))
    query = select(number, last_ms).where(_on(bucket), _open(now_ms), HOLD.c.reason.is_not(None))
    times, at_ms = connection.execute(query).one()
    return int(times), at_ms or 0


def release(
    connection: Connection, agent: str, kind: str, account: str, now_ms: int, *, family: str | None = None
) -> int:
    """Release all holds on the agent's buckets, and return their number. family: only holds on this family of models,
    by any of its names."""
    its = or_(HOLD.c.agent == agent, and_(HOLD.c.kind == kind, HOLD.c.account == account))
    its &= _open(now_ms) | _expired(now_ms)
    if family is not None:
        held = connection.execute(select(HOLD.c.family).where(its, HOLD.c.family.is_not(None)).distinct()).scalars()
        its &= HOLD.c.family.in_([name for name in held if name == family or in_family(family, name)])
    return connection.execute(update(HOLD).where(its).values(released_ms=now_ms)).rowcount


def _longest(rows: Iterable[Sequence[Any]]) -> Sequence[Hold]:
    longest: dict[Bucket, Hold] = {}
    for row in rows:
        hold = _hold(row)
        other = longest.get(hold.bucket)
        if other is None or hold.end > other.end:
            longest[hold.bucket] = hold
    return sorted(longest.values(), key=lambda hold: (-hold.end, hold.bucket.label))


def _open(now_ms: int | BindParameter[int]) -> ColumnElement[bool]:
    return HOLD.c.released_ms.is_(None) & or_(HOLD.c.until_ms.is_(None), HOLD.c.until_ms > now_ms)


def _expired(now_ms: int | BindParameter[int]) -> ColumnElement[bool]:
    tried = HOLD.c.reason.in_(sorted(TRIED_FIRST))
    return HOLD.c.released_ms.is_(None) & tried & (HOLD.c.until_ms <= now_ms)


def _on(bucket: Bucket) -> ColumnElement[bool]:
    columns = {"agent": bucket.agent, "kind": bucket.kind, "account": bucket.account, "family": bucket.family}
    return and_(*(HOLD.c[name].is_not_distinct_from(value) for name, value in columns.items()))


def _columns(hold: Hold, run_id: str | None) -> dict[str, object]:
    return {
        "agent": hold.bucket.agent,
        "kind": hold.bucket.kind,
        "account": hold.bucket.account,
        "family": hold.bucket.family,
        "window": hold.window[:100] if hold.window is not None else None,
        "reason": hold.reason.value if hold.reason is not None else None,
        "until_ms": hold.until_ms,
        "provenance": hold.provenance.value,
        "source": hold.source[:500],
        "run_id": run_id,
        "created_ms": hold.created_ms,
        "doubted_ms": hold.doubted_ms,
    }


def _hold(row: Sequence[Any]) -> Hold:
    """Return the hold. What cannot be read of it, as after a change by hand, does not end it: without its reason or
    its end, it lasts until an operator releases it."""
    columns = dict(zip(_NAMES, row, strict=True))
    return Hold(
        bucket=Bucket(
            agent=columns["agent"], kind=columns["kind"], account=columns["account"], family=columns["family"]
        ),
        reason=_member(Reason, columns["reason"]),
        until_ms=_instant(columns["until_ms"]),
        provenance=_member(Provenance, columns["provenance"]) or Provenance.OPERATOR,
        source=columns["source"],
        created_ms=_instant(columns["created_ms"]) or 0,
        window=columns["window"],
        run_id=columns["run_id"],
        doubted_ms=_instant(columns["doubted_ms"]),
    )


def _member(kind: type[E], word: object) -> E | None:
    return next((member for member in kind if member.value == word), None)


def _instant(value: object) -> int | None:
    return value if isinstance(value, int) and 0 <= value < _END_MS else None


_END_MS = 253_402_300_800_000
"""The end of the year 9999, in epoch milliseconds."""
# Compiled once, as each tick runs them.
_NOW: BindParameter[int] = bindparam("now", type_=BigInteger)
_IN_FORCE = Statement(select(HOLD).where(_open(_NOW)).order_by(HOLD.c.id))
IN_FORCE_OR_EXPIRED = _open(_NOW) | _expired(_NOW)
_IN_FORCE_OR_EXPIRED = Statement(select(HOLD).where(IN_FORCE_OR_EXPIRED).order_by(HOLD.c.id))
NEXT_END = select(func.min(HOLD.c.until_ms)).where(HOLD.c.released_ms.is_(None), HOLD.c.until_ms > _NOW)
"""When the next hold ends by itself, in epoch milliseconds; see ``tick_rows.next_times``."""
_NAMES = tuple(column.name for column in HOLD.columns)


DRAIN = "drain"
OF_HOST = f"{DRAIN}:"
"""Prefix of the name of a single host's drain."""
_FIND = Selection(SwitchRow, select(SWITCH).where(SWITCH.c.name == bindparam("switch")))
_HOSTS = Selection(SwitchRow, select(SWITCH).where(SWITCH.c.name.startswith(OF_HOST)))


def turn_on(connection: Connection, name: str, reason: str | None, now_ms: int) -> bool:
    """Turn a switch on. Return False, and keep its time and reason, if it is on already."""
    if find_switch(connection, name) is not None:
        return False
    connection.execute(insert(SWITCH).values(name=name, since_ms=now_ms, reason=reason))
    return True


def turn_off(connection: Connection, name: str) -> bool:
    """Turn a switch off. Return whether it was on."""
    return connection.execute(delete(SWITCH).where(SWITCH.c.name == name)).rowcount > 0


def find_switch(connection: Connection, name: str) -> SwitchRow | None:
    """Return the switch if it is on, else None."""
    return _FIND.first(connection, switch=name)


def drained_hosts(connection: Connection) -> dict[str, str | None]:
    """Return the reasons of drained hosts, which take no new runs, by name."""
    return {switch.name.removeprefix(OF_HOST): switch.reason for switch in _HOSTS.all(connection)}
