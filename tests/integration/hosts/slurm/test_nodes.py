"""Nodes of a cluster that take no runs, how hosts are shown, and what its commands say of their trouble."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from claudomator_py.domain.host import LOCAL, HostSpec, HostType
from claudomator_py.domain.run import RunFate
from claudomator_py.hosts import slurm
from claudomator_py.hosts.local.fate import held_lock
from claudomator_py.hosts.slurm import engine, fate, nodes
from claudomator_py.hosts.slurm.host import ClusterRunHost
from tests.integration.hosts.slurm.commands import KEY, ORDER, RUN_ID, Commands, submitted
from tests.patience import wait_until

IDLE = "n1|night|up|idle|0/4/0/4|(null)|none\nn2|night|up|idle|0/4/0/4|(null)|none\n"


def test_a_node_on_which_a_job_ends_before_its_run_begins_gets_no_runs_for_a_while(
    host: ClusterRunHost, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may not see the folder of the runs, and gets each of them, because it is idle again at once."""
    monkeypatch.setattr(host, "_fates", fate.Fates(0.0))
    monkeypatch.setattr(nodes, "_SOON_S", 0.0)
    commands.say("sbatch", "1\n")
    commands.say("scancel", "")
    commands.say("sinfo", IDLE)
    commands.say("squeue", f"{KEY}|FAILED|JobLaunchFailure|n1\n")
    submitted(host)
    said = "has not begun on lab, where its job has ended on n1: FAILED (JobLaunchFailure)"
    seen: set[str | None] = set()

    def is_given_up() -> bool:
        given_up = host.reconcile(RUN_ID).fate is RunFate.REVOKED
        seen.add(host.obstacle(RUN_ID))
        return given_up

    wait_until(is_given_up)
    assert said in seen
    lab = host.hosts()[1]
    assert lab.nodes == {"avoided": 1, "idle": 1}
    (avoided,) = lab.unusable
    assert (avoided.name, avoided.state) == ("n1", "avoided")
    cause = f"before its run began: FAILED (JobLaunchFailure); does the node have {host.path(RUN_ID).parent} and "
    assert cause in (avoided.reason or "")
    assert host.closed() == {}, "another node takes runs"
    commands.say("squeue", "cl-second-0|FAILED|NonZeroExitCode|n2\n")
    host.prepare(replace(ORDER, run_id="second"))
    host.spawn("second", {"PATH": os.environ["PATH"]})
    wait_until(lambda: host.reconcile("second").fate is RunFate.REVOKED)
    assert " --exclude=n1 " in commands.asked("sbatch")
    assert wait_until(lambda: host.closed().get("lab", "")).startswith("has no node that takes runs: n1 avoided (a job")
    monkeypatch.setattr(nodes, "_AVOIDED_S", 0.0)
    wait_until(lambda: host.closed() == {})


def test_a_node_on_which_somebody_has_cancelled_a_job_gets_others(
    host: ClusterRunHost, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "_fates", fate.Fates(0.0))
    commands.say("sbatch", "1\n")
    commands.say("scancel", "")
    commands.say("sinfo", IDLE)
    commands.say("squeue", f"{KEY}|CANCELLED|None|n1\n")
    submitted(host)
    wait_until(lambda: host.reconcile(RUN_ID).fate is RunFate.REVOKED)
    assert host.hosts()[1].unusable == ()


OUT = "n1|night|up|drained|0/0/4/4|(null)|a new disk\nn2|night|up|down*|0/0/4/4|(null)|Not responding\n"
BUSY = "n1|night|up|allocated|4/0/0/4|(null)|none\nn2|night|up|drained|0/0/4/4|(null)|a new disk\n"


@pytest.fixture
def without_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (nodes, fate):
        monkeypatch.setattr(module, "OUTAGE_S", 0.3)
    monkeypatch.setattr(nodes, "_SOON_S", 0.1)


@pytest.mark.usefixtures("without_patience")
def test_a_run_that_waits_for_nodes_of_which_none_takes_runs_is_given_up_and_its_host_gets_no_others(
    host: ClusterRunHost, commands: Commands
) -> None:
    commands.say("sbatch", "1\n")
    commands.say("scancel", "")
    commands.say("squeue", f"{KEY}|PENDING|Resources|\n")
    commands.say("sinfo", BUSY)
    submitted(host)

    def is_asked_for_long() -> bool:
        assert host.reconcile(RUN_ID).fate is RunFate.STARTING
        assert host.closed() == {}, "it is merely busy"
        return len(commands.all_asked("sinfo")) > 12

    wait_until(is_asked_for_long)
    commands.say("sinfo", OUT)
    reason = wait_until(lambda: host.closed().get("lab"))
    assert reason == "has no node that takes runs: n1 drained (a new disk), n2 down* (Not responding)"
    assert host.hosts(ask=False)[1].problem == reason
    wait_until(lambda: host.reconcile(RUN_ID).fate is RunFate.REVOKED)
    wait_until(lambda: commands.all_asked("scancel") == [f"--me --name={KEY}"])
    commands.say("squeue", "")
    commands.say("sinfo", BUSY)
    wait_until(lambda: host.closed() == {})


def test_a_host_stays_open_for_a_minute_without_a_usable_node(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 1_000.0
    monkeypatch.setattr(nodes, "time", SimpleNamespace(monotonic=lambda: now_s))
    commands.say("sinfo", OUT)
    with ThreadPoolExecutor(1) as pool:
        cluster = nodes.Nodes(HostSpec(kind=HostType.SLURM, root=str(tmp_path)), pool)
        outages = []
        for passed_s in (0.0, 59.0, 60.0):
            now_s = 1_000.0 + passed_s
            cluster.list()
            outages.append(cluster.outage(is_awaited=False) is not None)
    assert outages == [False, False, True]


@pytest.mark.usefixtures("without_patience")
def test_a_run_that_has_begun_or_may_have_stays_while_no_node_takes_others(
    host: ClusterRunHost, commands: Commands
) -> None:
    commands.say("sbatch", "1\n")
    commands.say("scancel", "")
    commands.say("squeue", f"{KEY}|PENDING|Resources|\n")
    commands.say("sinfo", OUT)
    submitted(host)
    with held_lock(host.path(RUN_ID)):
        wait_until(lambda: host.reconcile(RUN_ID).fate is RunFate.STARTING and host.closed())
        assert host.reconcile(RUN_ID).fate is RunFate.STARTING
        (host.path(RUN_ID) / "started").touch()
        assert host.reconcile(RUN_ID).fate is RunFate.ALIVE
    assert not commands.is_asked("scancel")


@pytest.mark.usefixtures("without_patience")
def test_a_check_waits_for_the_nodes_of_the_host_that_has_its_run(host: ClusterRunHost, commands: Commands) -> None:
    commands.say("sbatch", "1\n")
    commands.say("squeue", f"cl-{RUN_ID}-1|PENDING|Resources|\n")
    commands.say("sinfo", OUT)
    submitted(host)
    host.prepare(ORDER, 1)
    host.spawn(RUN_ID, {"PATH": os.environ["PATH"]}, 1)
    wait_until(lambda: host.reconcile(RUN_ID, 1).fate is RunFate.STARTING and host.closed())
    for _ in range(3):
        assert host.reconcile(RUN_ID, 1).fate is RunFate.STARTING


@pytest.mark.usefixtures("without_patience")
@pytest.mark.parametrize(
    ("listed", "is_out"),
    [
        ("n1|night|down|idle|0/4/0/4|(null)|none\n", True),
        ("n1|night|up|idle|0/4/0/4|(null)|none\nn1|day|down|idle|0/4/0/4|(null)|none\n", False),
        ("n1|night|up|idle~|0/4/0/4|(null)|none\n", False),
        ("n1|night|up|idle*|0/4/0/4|(null)|none\n", True),
        ("n1|night|up|drained|0/4/0/4|(null)|none\nn2|night|up|completing|0/4/0/4|(null)|none\n", False),
        ("", False),
    ],
)
def test_a_host_is_out_of_service_if_none_of_its_nodes_takes_runs(
    host: ClusterRunHost, commands: Commands, listed: str, is_out: bool
) -> None:
    commands.say("squeue", "cl-other-0|PENDING|Resources|\n")
    commands.say("sinfo", listed)
    host.hosts()
    wait_until(lambda: (host.hosts(ask=False), host.closed(), len(commands.all_asked("sinfo")) > 12)[-1])
    assert bool(host.closed()) is is_out


@pytest.mark.parametrize(
    ("constraint", "names"),
    [
        (None, ["n1", "n2", "n3"]),
        ("gpu", ["n1", "n2"]),
        ("gpu&large", ["n2"]),
        ("large|small", ["n2", "n3"]),
        ("[rack1*2]", ["n1", "n2", "n3"]),
    ],
)
def test_the_nodes_of_a_host_are_those_that_its_jobs_may_get(
    commands: Commands, tmp_path: Path, constraint: str | None, names: list[str]
) -> None:
    idle = "idle|0/4/0/4"
    lines = [f"n1|main*|up|{idle}|gpu|none", f"n2|main*|up|{idle}|gpu,large|none", f"n3|main*|up|{idle}|small|none"]
    commands.say("sinfo", "\n".join([*lines, f"n4|other|up|{idle}|gpu,large,small|none"]))
    spec = HostSpec(kind=HostType.SLURM, root=str(tmp_path), constraint=constraint)
    cluster = engine.Slurm(spec)
    assert [node.name for node in cluster.nodes.list().nodes] == names
    cluster.close()


def test_hosts_are_shown_with_what_takes_no_runs(host: ClusterRunHost, commands: Commands, tmp_path: Path) -> None:
    jobs = "cl-a-0|PENDING|Resources|\ncl-b-0|PENDING|Resources|\ncl-c-1|RUNNING|None|n1\n"
    commands.say("squeue", f"{jobs}cl-of-another-host-0|PENDING|Priority|\n")
    for name in "abc":
        (tmp_path / "shared" / name).mkdir()
    listed = "n1|night|up|mixed|1/3/0/4|(null)|none\nn2|night|up|down*|0/0/4/4|(null)|Not responding\n"
    listed += "n3|night|up|drained|0/0/2/2|(null)|disk | is full\n" + 2 * "n4|night|up|idle|0/8/0/8|(null)|none\n"
    commands.say("sinfo", listed)
    here, lab = host.hosts()
    assert (here.name, here.kind, here.problem) == (LOCAL, LOCAL, None)
    assert lab.waits == {"no node has room (Resources)": 2}
    assert lab.nodes == {"mixed": 1, "down*": 1, "drained": 1, "idle": 1}
    assert [(node.name, node.state, node.reason) for node in lab.unusable] == [
        ("n2", "down*", "Not responding"),
        ("n3", "drained", "disk | is full"),
    ]
    assert (lab.cpus_used, lab.cpus, lab.version) == (1, 18, "slurm 22.05.8")
    assert host.hosts(ask=False)[1] == lab, "the page shows the latest answer"


def test_nodes_are_asked_for_beside_whoever_wants_to_see_them(host: ClusterRunHost, commands: Commands) -> None:
    commands.say("squeue", "")
    commands.say("sinfo", "n1|night|up|idle|0/4/0/4|(null)|none\n")
    assert host.hosts(ask=False)[1].nodes == {}
    wait_until(lambda: host.hosts(ask=False)[1].nodes == {"idle": 1})
    assert len(commands.all_asked("sinfo")) == 2, "one question, and one for the version"


def test_a_command_that_is_missing_is_named(host: ClusterRunHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert "squeue is not on the daemon's PATH" in (host.hosts()[1].problem or "")


def test_what_a_command_says_of_its_trouble_is_shown_once_and_in_plain_words(
    host: ClusterRunHost, commands: Commands
) -> None:
    trouble = (
        "squeue: error: Munge encode failed: no socket\n" * 2 + "slurm_load_jobs error: Protocol authentication error"
    )
    commands.fail("squeue", trouble)
    assert host.hosts()[1].problem == (
        "munged does not run on this machine (squeue: error: Munge encode failed: no socket; "
        "slurm_load_jobs error: Protocol authentication error)"
    )


def test_what_else_a_site_prints_beside_its_nodes_is_passed_over(host: ClusterRunHost, commands: Commands) -> None:
    commands.say("squeue", "The cluster is down on Friday.\n")
    commands.say("sinfo", f"The cluster is down on Friday.\n{IDLE}")
    assert host.hosts()[1].nodes == {"idle": 2}
    commands.say("sinfo", "The cluster is down today.\n")
    assert host.hosts()[1].problem == "sinfo: its answer cannot be read: The cluster is down today."


def test_what_a_command_has_said_before_it_is_given_up_is_shown(
    host: ClusterRunHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``sbatch`` sleeps and asks again, if the controller has too many jobs at the moment."""
    again = "Slurm temporarily unable to accept job, sleeping and retrying"
    (tmp_path / "bin" / "squeue").write_text(f"#!/bin/sh\necho 'squeue: error: {again}' >&2\nexec sleep 600\n")
    monkeypatch.setattr(slurm, "ANSWER_S", 0.5)
    assert host.hosts()[1].problem == f"squeue has not answered within 0 seconds: {again}"


def test_a_cluster_that_does_not_answer_says_so(host: ClusterRunHost, commands: Commands) -> None:
    lab = host.hosts()[1]
    assert (lab.problem, lab.nodes) == ("squeue: error: no answer", {})
    commands.say("squeue", "")
    assert host.hosts()[1].problem == "sinfo: error: no answer"
