"""The nodes that a host's jobs may get, and whether any of them takes runs."""

import logging
import re
import sys
import time
from collections.abc import Collection, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace
from typing import Final

from claudomator_py.domain.host import HostSpec, NodeView
from claudomator_py.hosts.slurm import EngineSilent, ask
from claudomator_py.values import dataclass

log = logging.getLogger(__name__)

OUTAGE_S: Final = 60.0
"""How long no node must have taken runs before the host counts as out of service. Restarts of Slurm's daemons take
less."""

_EVERY_S: Final = 60.0
"""Minimum pause between two queries of the nodes if nobody waits for one."""
_SOON_S: Final = 10.0
_USABLE: Final = ("idle", "mixed", "allocated", "completing", "planned", "reserved")
_FLAGS: Final = "~#!%@^-"
"""Slurm appends one of these to the state of a node that takes jobs now or later, such as one that is powered down. The
others, a star for a node that does not respond and a dollar sign during maintenance, mean that it takes none."""
_PLAIN: Final = re.compile(r"[\w.-]+([&|][\w.-]+)*")
_NODE: Final = re.compile(r"[\w.-]+")
_LIMIT: Final = re.compile(r"(?:(?:(\d+)-)?(\d+):)?(\d+):\d\d")
_MAX_SHOWN: Final = 3
_AVOIDED_S: Final = 300.0
"""How long a node gets no runs after a job that has ended there before its run began: as it is idle, it would get all.
"""
_AVOIDED: Final = "avoided"


@dataclass(frozen=True, slots=True)
class NodeList:
    """The nodes of a host, and Slurm's version."""

    version: str
    nodes: Sequence[NodeView]
    cpus: int
    cpus_used: int

    @property
    def unusable(self) -> list[NodeView]:
        """The nodes that take no runs, even once they have room."""
        return [node for node in self.nodes if not _takes_runs(node)]


def list_nodes(host: HostSpec) -> NodeList:
    """Return the nodes that a host's jobs may get, as Slurm lists them now. Raises EngineSilent."""
    nodes: dict[str, NodeView] = {}
    cpus = {}
    for name, _, partition, state, counts, features, reason in _rows(host, "%N|%P|%a|%T|%C|%f|%E", "--Node"):
        # A node is listed once per partition.
        is_listed = name in nodes and _takes_runs(nodes[name])
        if not is_listed and _fits(host.constraint, features.split(",")):
            state = state if partition == "up" else f"partition {partition}"
            nodes[name] = NodeView(name=name, state=state, reason=None if reason in ("", "none") else reason)
            cpus[name] = [int(number) for number in counts.split("/")]  # allocated, idle, other, total
    version = ask("sinfo", "--version").strip()
    used, *_, whole = (sum(of_kind) for of_kind in zip(*cpus.values(), strict=True)) if cpus else (0, 0)
    return NodeList(version, [*nodes.values()], whole, used)


def longest_min(host: HostSpec) -> int | None:
    """Return how many minutes a host's jobs may take, as Slurm says now; None if that has no limit, or an unknown one.
    Raises EngineSilent."""
    limits = [_minutes(limit) for _, limit in _rows(host, "%P|%l")]
    # A job may name several partitions, and gets one that allows what it asks for.
    known = [limit for limit in limits if limit is not None]
    return max(known) if known and len(known) == len(limits) else None


def _rows(host: HostSpec, columns: str, *options: str) -> list[list[str]]:
    """Return these columns of what sinfo says about the partitions that a host's jobs may get. Raises EngineSilent."""
    chosen = [] if host.partition is None else [f"--partition={host.partition}"]
    lines = ask("sinfo", *options, "--noheader", f"--format={columns}", *chosen).splitlines()
    # A site's own sinfo may print more than it was asked for.
    last, place = columns.count("|"), columns.split("|").index("%P")
    rows = [line.split("|", last) for line in lines if line.count("|") >= last]
    if lines and not rows:
        raise EngineSilent(f"sinfo: its answer cannot be read: {lines[0]}")
    # A job that names no partition gets the default one, which has a star.
    default = [row for row in rows if row[place].endswith("*")] if host.partition is None else []
    return default or rows


class Nodes:
    """The nodes of one host. Safe to use from many threads."""

    def __init__(self, host: HostSpec, pool: Executor) -> None:
        """pool: its threads query Slurm."""
        self._host = host
        self._pool = pool
        self._listed: NodeList | None = None
        self._looking: Future[None] | None = None
        self._looked_at = -_EVERY_S
        self._allowed: tuple[float, int | None] | None = None
        """When the partition's time limit was asked for, and that."""
        self._outage: tuple[float, float] | None = None
        """Times of the first and the latest answer without a usable node, unless a later answer had one."""
        self._avoided: dict[str, tuple[float, str]] = {}
        """By node: since when no run is sent there, and why."""

    def list(self) -> NodeList:
        """Return the nodes as Slurm lists them now, see ``list_nodes``. Raises EngineSilent."""
        asked_at = time.monotonic()
        listed = list_nodes(self._host)
        # An empty list may only mean that this user may not see the nodes.
        is_outage = len(listed.unusable) == len(listed.nodes) > 0
        self._outage = (asked_at if self._outage is None else self._outage[0], asked_at) if is_outage else None
        self._listed = listed
        return self._marked(listed)

    @property
    def avoided(self) -> dict[str, str]:
        """Why no run is sent to a node at present, by node."""
        now = time.monotonic()
        return {node: words for node, (since, words) in [*self._avoided.items()] if now < since + _AVOIDED_S}

    def avoid(self, node: str, words: str) -> None:
        """Send no runs to a node for some minutes. words: how a job has ended there before its run began."""
        if _NODE.fullmatch(node):
            needs = f"{self._host.root} and {self._host.python or sys.executable}"
            reason = f"a job ended there before its run began: {words}; does the node have {needs}?"
            log.warning("no run is sent to the node %s for %.0f minutes: %s", node, _AVOIDED_S / 60, reason)
            self._avoided[node] = time.monotonic(), reason

    def listed(self, every_s: float = _EVERY_S) -> NodeList | None:
        """Return the latest answer of ``list`` at once, None if there is none yet. A thread refreshes it, at most once
        in that time."""
        now = time.monotonic()
        if now >= self._looked_at + every_s and (self._looking is None or self._looking.done()):
            self._looked_at = now
            self._looking = self._pool.submit(self._look)
        return None if self._listed is None else self._marked(self._listed)

    def allowed_min(self) -> int | None:
        """Return how many minutes a job may take, as Slurm said within the last minute; None if that has no limit, or
        an unknown one. Asks Slurm if necessary, and waits for its answer."""
        now = time.monotonic()
        if self._allowed is None or now >= self._allowed[0] + _EVERY_S:
            try:
                self._allowed = now, longest_min(self._host)
            except EngineSilent as problem:
                log.debug("Slurm does not say how long jobs may take: %s", problem)
                return None
        return self._allowed[1]

    def outage(self, *, is_awaited: bool) -> str | None:
        """Return why no node has taken runs for ``OUTAGE_S``, or why all that take any are avoided, as a clause that
        follows the host's name; None if a run may be sent to one, or if that is unknown. Returns at once. is_awaited:
        whether a run waits for a node."""
        outage = self._outage
        listed = self.listed(_SOON_S if is_awaited or outage is not None or self.avoided else float("inf"))
        if listed is None or len(listed.unusable) < len(listed.nodes):
            return None
        is_avoided = any(node.state == _AVOIDED for node in listed.nodes)
        if not is_avoided and (outage is None or outage[1] - outage[0] < OUTAGE_S):
            return None
        words = [f"{node.name} {node.state}" + (f" ({node.reason})" if node.reason else "") for node in listed.nodes]
        more = f" and {len(words) - _MAX_SHOWN} more" if len(words) > _MAX_SHOWN else ""
        return f"has no node that takes runs: {', '.join(words[:_MAX_SHOWN])}{more}"

    def _marked(self, listed: NodeList) -> NodeList:
        """Return the list with the nodes that are avoided as such."""
        avoided = self.avoided
        return replace(listed, nodes=[_without_runs(node, avoided.get(node.name)) for node in listed.nodes])

    def _look(self) -> None:
        try:
            self.list()
        except (EngineSilent, ValueError) as problem:
            log.debug("Slurm does not list its nodes: %s", problem)


def _minutes(limit: str) -> int | None:
    """Return the whole minutes of a time limit such as ``1-00:30:00`` or ``5:00``; None for ``infinite`` and others."""
    if (match := _LIMIT.fullmatch(limit.strip())) is None:
        return None
    days, hours, minutes = (int(part or 0) for part in match.groups())
    return (days * 24 + hours) * 60 + minutes


def _without_runs(node: NodeView, reason: str | None) -> NodeView:
    """Return the node as one that takes no runs, if it would and there is a reason."""
    if reason is None or not _takes_runs(node):
        return node
    return node.model_copy(update={"state": _AVOIDED, "reason": reason})


def _takes_runs(node: NodeView) -> bool:
    return node.state.rstrip(_FLAGS) in _USABLE


def _fits(constraint: str | None, features: Collection[str]) -> bool:
    """Return whether a node with these features may get jobs with that constraint; assume so if the constraint has more
    than ``&`` and ``|``, such as numbers of nodes."""
    if constraint is None or not _PLAIN.fullmatch(constraint):
        return True
    return any(all(each in features for each in choice.split("&")) for choice in constraint.split("|"))
