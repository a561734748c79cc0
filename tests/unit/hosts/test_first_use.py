"""A host is tried before its first run, once for each folder and configuration."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from claudomator_py.domain.host import HostSpec, HostType
from claudomator_py.hosts.slurm import first_use
from claudomator_py.hosts.slurm.first_use import FirstUse
from tests.fakes.slurm_commands import APART, STARTS, fake_commands, program
from tests.patience import wait_until

REFUSES = """#!/bin/sh
echo 'sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified' >&2
exit 1
"""
Begin = Callable[..., FirstUse]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return fake_commands(tmp_path / "bin", monkeypatch)


@pytest.fixture
def begin(tmp_path: Path, programs: Path) -> Iterator[Begin]:
    del programs
    (tmp_path / "shared").mkdir()
    made: list[FirstUse] = []

    def make(**fields: object) -> FirstUse:
        spec = HostSpec.model_validate({"kind": HostType.SLURM, "root": str(tmp_path / "shared"), **fields})
        made.append(FirstUse("lab", spec, lambda: None))
        return made[-1]

    yield make
    for trial in made:
        trial.close()


def test_it_is_tried_once(begin: Begin, programs: Path, tmp_path: Path) -> None:
    program(programs / "sbatch", STARTS)
    first = begin()
    assert (first.obstacle() or "").startswith("is being tried before its first run")
    wait_until(lambda: first.obstacle() is None)
    program(programs / "sbatch", REFUSES)
    assert begin().obstacle() is None, "the success is remembered"
    other = begin(partition="other")
    assert other.obstacle() is not None
    other.close()
    assert [path.name for path in (tmp_path / "shared").iterdir()] == [".tried-lab"]


def test_another_folder_at_the_same_place_is_tried(begin: Begin, programs: Path, tmp_path: Path) -> None:
    program(programs / "sbatch", STARTS)
    first = begin()
    wait_until(lambda: first.obstacle() is None)
    (tmp_path / "shared").rename(tmp_path / "before")
    (tmp_path / "shared").mkdir()
    assert begin().obstacle() is not None


def test_a_host_that_keeps_no_locks_is_refused_with_the_reason_and_tried_again(
    begin: Begin, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_use, "AGAIN_S", 0.5)
    program(programs / "sbatch", APART.replace('"uid": 1', '"uid": os.getuid()'))
    tried = begin()
    words = wait_until(lambda: words if "is not used" in (words := tried.obstacle() or "") else None)
    assert "n9 (Python 3.9.1) and this machine can hold the same lock at once; n9 (Python 3.9.1) and" in words
    assert "NFS" in words
    assert tried.words == words
    program(programs / "sbatch", STARTS)
    wait_until(lambda: tried.obstacle() is None)


def test_a_cluster_that_refuses_the_job_says_why(begin: Begin, programs: Path) -> None:
    program(programs / "sbatch", REFUSES)
    tried = begin()
    words = wait_until(lambda: words if "could not be tried" in (words := tried.obstacle() or "") else None)
    assert "the `account` is not valid, or may not use the partition (sbatch: error: Batch job" in words
    assert "ask the cluster's administrators" in words


def test_the_trial_of_a_busy_cluster_waits_and_holds_nobody_up(begin: Begin, programs: Path, tmp_path: Path) -> None:
    program(programs / "sbatch", "#!/bin/sh\necho 7\n")
    program(programs / "squeue", "#!/bin/sh\necho 'PENDING (Resources)'\n")
    program(programs / "scancel", f'#!/bin/sh\necho "$@" > {tmp_path}/cancelled\n')
    tried = begin()
    began = time.monotonic()
    tried.obstacle()
    assert time.monotonic() - began < 1
    wait_until(lambda: "the job for that is PENDING (Resources)" in (tried.obstacle() or ""))
    tried.close()
    assert "--name=claudomator-probe-" in (tmp_path / "cancelled").read_text()
    assert [*(tmp_path / "shared").iterdir()] == []


def test_a_missing_folder_is_named(begin: Begin, tmp_path: Path) -> None:
    (tmp_path / "shared").rmdir()
    tried = begin()
    wait_until(lambda: f"no folder can be created in {tmp_path / 'shared'}" in (tried.obstacle() or ""))
