"""A job that tries what a host keeps, by programs that stand in for Slurm's; `make slurm` asks a real cluster."""

import os
import re
import sys
import time
from pathlib import Path

import pytest

from claudomator_py.cli.doctor import Finding
from claudomator_py.cli.doctor.hosts import probe_findings
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.host import HostSpec, HostType
from claudomator_py.hosts.slurm import trial
from claudomator_py.hosts.slurm.trial import Untried, tried
from tests.fakes.slurm_commands import APART, PLACES, SINFO, STARTS, fake_commands, program
from tests.patience import PATIENCE_S

WITHOUT_LOCKS = (
    "import fcntl, runpy, sys; fcntl.flock = lambda *_: None; sys.argv = sys.argv[1:];"
    ' runpy.run_path(sys.argv[0], run_name="__main__")'
)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return fake_commands(tmp_path / "bin", monkeypatch)


def host(tmp_path: Path) -> HostSpec:
    root = tmp_path / "shared"
    root.mkdir()
    return HostSpec(kind=HostType.SLURM, root=str(root), partition="night")


def findings_of(tmp_path: Path, *agents: AgentSpec) -> list[Finding]:
    """What is found of a host, which leaves nothing behind."""
    lab = host(tmp_path)
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    findings = [*probe_findings("lab", lab, agents, environ)]
    assert [*Path(lab.root).iterdir()] == []
    return findings


def test_a_node_with_the_same_files_is_as_it_should_be(programs: Path, tmp_path: Path) -> None:
    program(programs / "sbatch", STARTS)
    (finding,) = findings_of(tmp_path)
    assert (finding.name, finding.verdict) == ("host lab: a node", "ok")
    assert finding.detail.endswith("and this machine: locks, exclusive creation, renaming and flushing work")


def test_two_nodes_try_the_folder_between_them(programs: Path, tmp_path: Path) -> None:
    program(programs / "sinfo", SINFO.format(nodes="n1 n2"))
    program(programs / "sbatch", PLACES)
    agent = AgentSpec(name="new", kind="command", command=("sh",), hosts=("lab",))
    findings = findings_of(tmp_path, agent)
    python = f"(Python {sys.version.split()[0]})"
    works = "locks, exclusive creation, renaming and flushing work"
    has = "has the programs and logins of its agents"
    assert [(finding.name, finding.detail) for finding in findings] == [
        ("host lab: a node", f"n1 {python} and this machine: {works}"),
        ("host lab: two nodes", f"n2 {python} and n1 {python}: {works}"),
        ("host lab: agents", f"n1 {python} {has}"),
        ("host lab: agents", f"n2 {python} {has}"),
    ]
    assert {finding.verdict for finding in findings} == {"ok"}


def test_two_nodes_that_share_less_than_each_does_with_this_machine_are_named(programs: Path, tmp_path: Path) -> None:
    """As where a mount option keeps locks on the node that takes them."""
    program(programs / "sinfo", SINFO.format(nodes="n1 n2"))
    python = tmp_path / "python"
    program(python, f"#!/bin/sh\nshift 2\nexec {sys.executable} -c '{WITHOUT_LOCKS}' \"$@\"\n")
    program(programs / "sbatch", PLACES.replace("cat >", f'sed "/ ask$/s#exec [^ ]*#exec {python}#" >'))
    _, two = findings_of(tmp_path)
    assert (two.name, two.verdict) == ("host lab: two nodes", "problem")
    assert "can hold the same lock at once" in two.detail


@pytest.mark.parametrize(
    ("nodes", "state", "details"),
    [("n1", "drained", []), ("n1 n2", "drained", ["not tried, because fewer than two nodes take runs"])],
)
def test_where_no_two_nodes_take_runs_none_are_tried(
    programs: Path, tmp_path: Path, nodes: str, state: str, details: list[str]
) -> None:
    program(programs / "sbatch", STARTS)
    program(programs / "sinfo", SINFO.format(nodes=nodes).replace("idle", state))
    assert [finding.detail for finding in findings_of(tmp_path)[1:]] == details


def test_what_a_node_does_not_share_is_said(programs: Path, tmp_path: Path) -> None:
    program(programs / "sbatch", APART)
    details = [finding.detail for finding in findings_of(tmp_path)]
    assert details[0] == f"n9 (Python 3.9.1) runs jobs as user 1, not {os.getuid()}"
    assert "the same lock at once" in details[1]
    assert "can both create the same file exclusively" in details[2]
    assert "does not see at once what this machine has renamed" in details[3]
    assert details[4] == "the clocks of n9 (Python 3.9.1) and this machine differ by about 100 s"


def test_programs_and_logins_that_a_node_lacks_are_named(programs: Path, tmp_path: Path) -> None:
    program(programs / "sbatch", STARTS)
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / ".credentials.json").touch()
    agents = [
        AgentSpec(name="claude", kind="claude", command=("sh",), hosts=("lab",)),
        AgentSpec(name="new", kind="command", command=("not-there",), hosts=("lab",)),
        AgentSpec(name="home", kind="command", command=("not-needed",)),
    ]
    _, about = findings_of(tmp_path, *agents)
    assert (about.name, about.verdict) == ("host lab: agents", "warn")
    assert about.detail.endswith(" lacks not-there")


def test_a_login_that_only_this_machine_has_is_named(programs: Path, tmp_path: Path) -> None:
    login = tmp_path / ".claude" / ".credentials.json"
    login.parent.mkdir()
    login.touch()
    # The node has a home directory of its own.
    program(programs / "sbatch", STARTS.replace("cat >", f"rm {login}; cat >"))
    (_, about) = findings_of(tmp_path, AgentSpec(name="claude", kind="claude", command=("sh",), hosts=("lab",)))
    assert about.detail.endswith(f" lacks {login}")


def test_a_job_that_is_refused_says_why(programs: Path, tmp_path: Path) -> None:
    program(programs / "sbatch", "#!/bin/sh\necho 'sbatch: error: Invalid partition name specified' >&2\nexit 1\n")
    (finding,) = findings_of(tmp_path)
    assert (finding.verdict, finding.detail) == (
        "problem",
        "the cluster has no such `partition` (sbatch: error: Invalid partition name specified)",
    )


def test_a_job_that_is_gone_is_not_waited_for(programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "_ASK_EVERY_S", 0.1)
    monkeypatch.setattr(trial, "_GONE_S", 0.1)
    program(programs / "sbatch", "#!/bin/sh\necho 7\n")
    program(programs / "squeue", "#!/bin/sh\nexit 0\n")
    began = time.monotonic()
    (finding,) = findings_of(tmp_path)
    assert (finding.verdict, finding.detail) == ("problem", "no node has answered, and its job is gone")
    assert time.monotonic() - began < PATIENCE_S


@pytest.mark.parametrize(
    ("squeue", "words"),
    [("echo 'PENDING (Resources)'", "PENDING (Resources)"), ("exit 1", "not known to squeue")],
)
def test_a_job_that_may_be_there_is_waited_for(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, squeue: str, words: str
) -> None:
    monkeypatch.setattr(trial, "_ASK_EVERY_S", 0.1)
    monkeypatch.setattr(trial, "_GONE_S", 0.1)
    program(programs / "sbatch", "#!/bin/sh\necho 7\n")
    program(programs / "squeue", f"#!/bin/sh\n{squeue}\n")
    with pytest.raises(Untried, match=rf"no node has answered within 1 s, and its job is {re.escape(words)}"):
        tried(host(tmp_path), start_s=1)
