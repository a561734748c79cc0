"""What hosts cost those who have none."""

import re
from pathlib import Path

import pytest

from tests.e2e.scenarios_support import document, ended
from tests.e2e.site import Site


@pytest.mark.parametrize("has_hosts", [False, True])
def test_a_daemon_loads_what_is_for_clusters_only_where_it_has_one(cold_site: Site, has_hosts: bool) -> None:
    shared = cold_site.root / "shared"
    shared.mkdir()
    hosts = {"cluster": {"kind": "slurm", "root": str(shared)}}
    cold_site.configure(**({"hosts": hosts} if has_hosts else {}))
    daemon = cold_site.start(PYTHONPROFILEIMPORTTIME="1").ready()
    cold_site.drop("one.yaml", document("one", "do: true"))
    assert ended(daemon, "one").state == "COMPLETED"
    threads = {(task / "comm").read_text() for task in Path(f"/proc/{daemon.pid}/task").iterdir()}
    assert daemon.stop() == 0
    loaded = re.findall(r"^import time:.*\| +(claudomator_py\.hosts\.\S+)", cold_site.log_text(), re.MULTILINE)
    assert "claudomator_py.hosts.local" in loaded
    assert any("slurm" in name or name.endswith("shim.clone") for name in loaded) == has_hosts
    assert any(name.startswith("slurm") for name in threads) <= has_hosts
