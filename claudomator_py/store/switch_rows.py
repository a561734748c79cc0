"""Switch rows: what an operator has switched on, durable until it is switched off."""

from sqlalchemy import Connection, bindparam, delete, insert, select

from claudomator_py.store.statement import Statement, loader
from claudomator_py.store.tables import SWITCH, SwitchRow

DRAIN = "drain"
OF_HOST = f"{DRAIN}:"
"""Begins the name of the drain of one host."""
_FIND = Statement(select(SWITCH).where(SWITCH.c.name == bindparam("switch")))
_HOSTS = Statement(select(SWITCH).where(SWITCH.c.name.startswith(OF_HOST)))
_switch_from = loader(SwitchRow)


def turn_on(connection: Connection, name: str, reason: str | None, now_ms: int) -> bool:
    """Switch it on; return whether it was off before. One that is on keeps its time and its reason."""
    if find(connection, name) is not None:
        return False
    connection.execute(insert(SWITCH).values(name=name, since_ms=now_ms, reason=reason))
    return True


def turn_off(connection: Connection, name: str) -> bool:
    """Switch it off; return whether it was on before."""
    return connection.execute(delete(SWITCH).where(SWITCH.c.name == name)).rowcount > 0


def find(connection: Connection, name: str) -> SwitchRow | None:
    """Return the switch, if it is on."""
    row = _FIND.row(connection, switch=name)
    return None if row is None else _switch_from(row)


def drained_hosts(connection: Connection) -> dict[str, str | None]:
    """Return the hosts that take no new runs, each with the reason that was given."""
    found = map(_switch_from, _HOSTS.rows(connection))
    return {switch.name.removeprefix(OF_HOST): switch.reason for switch in found}
