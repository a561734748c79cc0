"""A site whose runs are carried by the tests' cluster."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from claudomator_py.domain.host import HostSpec
from claudomator_py.hosts.slurm.first_use import FirstUse
from tests.e2e.daemon import Daemon
from tests.e2e.site import Site


def on_cluster(
    site: Site,
    *places: str,
    slots: int = 8,
    ahead: int = 0,
    host: Mapping[str, object] = MappingProxyType({}),
    is_tried: bool = True,
    simulated: Sequence[str] = ("local",),
    further: Sequence[str] = (),
    **more: object,
) -> None:
    """Have the agent ``sh`` work on the cluster alone, or at these places. host: of the cluster,
    which has a record of its trial if it ``is_tried``; simulated: where
    that agent works; further: agents, of which ``other`` is one like ``sh`` with ``ahead`` more slots; more: of the
    configuration."""
    shared = site.root / "shared"
    shared.mkdir()
    site.run_roots.append(shared)
    agent = {"kind": "command", "command": site.ledger.agent, "max_concurrent": slots, "hosts": places or ["cluster"]}
    hosts = {"cluster": {"kind": "slurm", "root": str(shared), "partition": "agents", **host}}
    if is_tried:
        FirstUse("cluster", HostSpec.model_validate(hosts["cluster"]), lambda: None).record()
    pretending = {"kind": "simulated", "max_concurrent": slots, "hosts": simulated}
    agents = {"sh": agent, "simulated": pretending}
    other = {**agent, "max_concurrent": slots + ahead}
    agents |= {name: other if name == "other" else {**pretending, "account": name} for name in further}
    site.configure(hosts=hosts, agents=agents, **more)


def start(site: Site) -> Daemon:
    """Start a daemon that reaches the cluster."""
    return site.start(**reaching()).ready()


def reaching() -> dict[str, str]:
    """Return the variables by which programs reach the cluster."""
    return {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "SLURM_CONF")}


def starts(site: Site) -> Counter[str]:
    """How often each run has begun."""
    return Counter(entry.run_id for entry in site.ledger.entries() if entry.what == "start")
