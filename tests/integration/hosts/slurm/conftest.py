"""Fixtures of the tests of clusters."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.domain.host import HostSpec, HostType
from claudomator_py.hosts.local.launcher import Launcher
from claudomator_py.hosts.slurm.first_use import FirstUse
from claudomator_py.hosts.slurm.host import ClusterRunHost
from tests.integration.hosts.slurm.commands import Commands


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return Commands(tmp_path / "bin")


@pytest.fixture
def host(tmp_path: Path, commands: Commands) -> Iterator[ClusterRunHost]:
    del commands
    (tmp_path / "shared").mkdir()
    spec = HostSpec(
        kind=HostType.SLURM, root=str(tmp_path / "shared"), partition="night", licenses={"claude": "claude-max"}
    )
    FirstUse("lab", spec, lambda: None).record()
    launcher = Launcher()
    host = ClusterRunHost(tmp_path / "runs", launcher, hosts={"lab": spec}, grace_ms=100)
    yield host
    host.close()
    launcher.close()
