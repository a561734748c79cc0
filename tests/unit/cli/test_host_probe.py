"""A job that tries what a host keeps, by programs that stand in for Slurm's; `make slurm` asks a real cluster."""

import os
import sys
import time
from pathlib import Path

import pytest

from claudomator_py.cli.doctor import Finding, host_probe
from claudomator_py.cli.doctor.host_probe import probe_findings
from claudomator_py.domain.host import HostSpec, HostType
from tests.patience import PATIENCE_S

# What is handed in is started, as Slurm does, and its id is said.
STARTS = """#!/bin/sh
cat > "$0.script"
for option; do case $option in --output=*) log=${option#--output=};; esac; done
sh "$0.script" > "$log" 2>&1 &
echo "7;cluster"
"""
# A node whose files are its own for a while, whose clock is late, and whose user is another one.
APART = f"""#!{sys.executable}
import json, os, sys, time
folder = next(one for one in sys.argv if one.startswith("--output=")).partition("=")[2].rpartition("/")[0]
json.dump({{"uid": 1, "node": "n9", "python": "3.9.1", "time": time.time() - 100}}, open(folder + "/held", "w"))
json.dump({{"exclusive": False, "renamed": False}}, open(folder + "/found", "w"))
print(8)
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    program(folder / "scancel", "#!/bin/sh\nexit 0\n")
    program(folder / "squeue", "#!/bin/sh\necho 'RUNNING (None)'\n")
    return folder


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def found(tmp_path: Path) -> list[Finding]:
    """What is found of a host, which leaves nothing behind."""
    root = tmp_path / "shared"
    root.mkdir()
    findings = [*probe_findings("lab", HostSpec(kind=HostType.SLURM, root=str(root), partition="night"))]
    assert [*root.iterdir()] == []
    return findings


def test_a_node_with_the_same_files_is_as_it_should_be(programs: Path, tmp_path: Path) -> None:
    program(programs / "sbatch", STARTS)
    (one,) = found(tmp_path)
    assert (one.name, one.verdict) == ("host lab: a node", "ok")
    assert "locks, exclusive creation and renaming work" in one.detail


def test_what_a_node_does_not_share_is_said(programs: Path, tmp_path: Path) -> None:
    program(programs / "sbatch", APART)
    details = [one.detail for one in found(tmp_path)]
    assert details[0] == f"n9 (Python 3.9.1) runs jobs as user 1, not {os.getuid()}"
    assert "the same lock at once" in details[1]
    assert "does not see at once" in details[2]
    assert "differs by about 100 s" in details[3]


def test_a_job_that_is_refused_says_why(programs: Path, tmp_path: Path) -> None:
    program(programs / "sbatch", "#!/bin/sh\necho 'sbatch: error: invalid partition' >&2\nexit 1\n")
    (one,) = found(tmp_path)
    assert (one.verdict, one.detail) == ("problem", "sbatch: error: invalid partition")


def test_a_job_that_is_gone_is_not_waited_for(programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_probe, "_ASK_EVERY_S", 0.1)
    monkeypatch.setattr(host_probe, "_GONE_S", 0.1)
    program(programs / "sbatch", "#!/bin/sh\necho 7\n")
    program(programs / "squeue", "#!/bin/sh\nexit 0\n")
    began = time.monotonic()
    (one,) = found(tmp_path)
    assert (one.verdict, one.detail) == ("problem", "no node has answered, and its job is gone")
    assert time.monotonic() - began < PATIENCE_S


@pytest.mark.parametrize(
    ("squeue", "words"),
    [("echo 'PENDING (Resources)'", "PENDING (Resources)"), ("exit 1", "not known to squeue")],
)
def test_a_job_that_may_be_there_is_waited_for(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, squeue: str, words: str
) -> None:
    monkeypatch.setattr(host_probe, "_ASK_EVERY_S", 0.1)
    monkeypatch.setattr(host_probe, "_GONE_S", 0.1)
    monkeypatch.setattr(host_probe, "_START_S", 1.0)
    program(programs / "sbatch", "#!/bin/sh\necho 7\n")
    program(programs / "squeue", f"#!/bin/sh\n{squeue}\n")
    (one,) = found(tmp_path)
    assert one.detail == f"no node has answered within 1 s, and its job is {words}"
