"""``hosts``: where runs take place, and how these places are."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from claudomator_py.cli.connect import connected
from claudomator_py.cli.output import Format, FormatOption, heading, out, out_json, table_text
from claudomator_py.domain.host import HostView, NodeView
from claudomator_py.surface.table import Column, Table

if TYPE_CHECKING:
    from claudomator_py.client.http import Client

_HOSTS = Table[HostView](
    Column("NAME", lambda host: host.name),
    Column("KIND", lambda host: host.kind),
    Column("RUNS", lambda host: host.live, right=True),
    Column("WAITING", lambda host: _numbers(host.waits), flexible=True),
    Column("NODES", lambda host: _numbers(host.nodes), flexible=True),
    Column("DRAINED", lambda host: None if host.drained is None else host.drained or "yes", flexible=True),
    Column("PROBLEM", lambda host: host.problem, flexible=True),
    Column("VERSION", lambda host: host.version, wide=True),
)
_NODES = Table[tuple[str, NodeView]](
    Column("HOST", lambda row: row[0]),
    Column("NODE", lambda row: row[1].name),
    Column("STATE", lambda row: row[1].state),
    Column("REASON", lambda row: row[1].reason, flexible=True),
)


@connected
def hosts(client: "Client", output: FormatOption = Format.TABLE) -> None:
    """Show where runs take place.

    Of a cluster, what waits for a node and why, its nodes by state, and those that take no runs.
    """
    found = client.hosts()
    if output is Format.JSON:
        out_json(found)
        return
    wide = output is Format.WIDE
    out(table_text(_HOSTS, found, wide=wide))
    unusable = [(host.name, node) for host in found for node in host.unusable]
    if unusable:
        out(f"\n{heading('NODES WITHOUT RUNS')}\n{table_text(_NODES, unusable, wide=wide)}")


def _numbers(counts: Mapping[str, int]) -> str | None:
    """Return ``2 idle, 1 down``."""
    return ", ".join(f"{number} {what}" for what, number in counts.items()) or None
