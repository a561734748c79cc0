"""What a cluster is asked to run, where, and what follows if it refuses, by programs that stand in for Slurm's."""

import json
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from claudomator_py.domain.host import LOCAL, HostNeeds, HostSpec, HostType
from claudomator_py.domain.run import RunFate
from claudomator_py.domain.units import MINUTE_MS
from claudomator_py.hosts.local.launcher import Launcher
from claudomator_py.hosts.shim import record
from claudomator_py.hosts.shim.spec import load
from claudomator_py.hosts.slurm import SUBMITTED, engine, words_of
from claudomator_py.hosts.slurm.host import ClusterRunHost
from tests.integration.hosts.rig import LIMITS
from tests.integration.hosts.slurm.commands import KEY, ORDER, RUN_ID, Commands, submitted
from tests.patience import wait_until


def test_what_a_node_reads_is_durable_before_the_submission(
    host: ClusterRunHost, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job may begin after this machine has lost power."""
    flushed: set[str] = set()

    def fsync(descriptor: int) -> None:
        assert not commands.is_asked("sbatch")
        flushed.add(Path(f"/proc/self/fd/{descriptor}").readlink().name)

    commands.say("sbatch", "1\n")
    monkeypatch.setattr(os, "fsync", fsync)
    host.prepare(ORDER)
    host.flush_prepared()
    host.spawn(RUN_ID, {"PATH": os.environ["PATH"]})
    wait_until(lambda: commands.is_asked("sbatch"))
    assert flushed >= {"shared", RUN_ID, "spec.json", "prompt.md", SUBMITTED}


@pytest.mark.parametrize(
    ("given", "of_the_node", "expected"),
    [
        ({"TMPDIR": "/of/this/machine", "XDG_RUNTIME_DIR": "/of/this/machine"}, {}, {"TZ": "Asia/Tokyo"}),
        ({}, {"TMPDIR": "/scratch/7", "HOME": "/"}, {"TZ": "Asia/Tokyo", "TMPDIR": "/scratch/7"}),
        ({"TMPDIR": "/scratch", "TZ": "UTC"}, {"TMPDIR": "/scratch/7"}, {"TZ": "UTC", "TMPDIR": "/scratch"}),
    ],
    ids=["inherited", "of-the-node", "of-the-task"],
)
def test_a_run_has_the_folders_of_its_node_and_this_machine_s_time_zone(
    host: ClusterRunHost,
    commands: Commands,
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, str],
    of_the_node: dict[str, str],
    expected: dict[str, str],
) -> None:
    """Its program would print in the node's zone when a limit ends, and this machine would misread that."""
    for name in record.OF_THE_MACHINE:
        monkeypatch.setenv(name, "/of/this/machine")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    commands.say("sbatch", "1\n")
    host.prepare(replace(ORDER, env_names=tuple(sorted({*given, "PATH"}))))
    host.spawn(RUN_ID, {**given, "PATH": "/bin"})
    for name in record.OF_THE_MACHINE:
        monkeypatch.delenv(name)
    for name, value in of_the_node.items():
        monkeypatch.setenv(name, value)
    directory = os.open(host.path(RUN_ID), os.O_RDONLY)
    variables, spec = record.take_variables(directory), load(directory)
    os.close(directory)
    assert {name: variables[name] for name in spec.env_names if name in variables} == {"PATH": "/bin", **expected}


@pytest.mark.parametrize(
    ("hosts", "goes_to"), [(("lab", LOCAL), "lab"), ((LOCAL,), LOCAL), (("elsewhere",), "lab"), ((), "lab")]
)
def test_a_run_in_the_folder_of_another_goes_to_its_host_or_to_this_machine_which_sees_the_folder(
    host: ClusterRunHost, hosts: tuple[str, ...], goes_to: str
) -> None:
    host.prepare(ORDER)
    host.prepare(replace(ORDER, run_id="next", scratch_of=RUN_ID, hosts=hosts))
    assert host.host_of("next") == goes_to
    assert host.scratch(RUN_ID) == str(host.path(RUN_ID) / "work")


@pytest.mark.parametrize("listed", ["", f"{KEY}|PENDING|Resources|\n"], ids=["gone", "listed before it began"])
@pytest.mark.parametrize(("has_ended", "goes_to"), [(False, LOCAL), (True, "lab")])
def test_a_run_that_has_ended_takes_no_place_from_the_next_one(
    host: ClusterRunHost, commands: Commands, listed: str, has_ended: bool, goes_to: str
) -> None:
    """Which may begin in the same tick, before Slurm is asked again."""
    commands.say("sbatch", "1\n")
    commands.say("squeue", listed)
    commands.say("sinfo", "n1|night|up|idle|0/4/0/4|(null)|none\n")
    submitted(host)
    assert sum(host.hosts()[1].waits.values()) == (1 if listed else 0)
    if has_ended:
        ended = {"exit_code": 0, "ended_by": None, "error": None, "step": 0, "started_ms": 1, "ended_ms": 2}
        (host.path(RUN_ID) / "exit.json").write_text(json.dumps(ended))
        assert host.reconcile(RUN_ID).fate is RunFate.ENDED
    host.prepare(replace(ORDER, run_id="next", hosts=("lab", LOCAL)))
    assert host.host_of("next") == goes_to


def test_where_two_hosts_are_partitions_of_one_cluster_each_has_its_own_runs(
    commands: Commands, tmp_path: Path
) -> None:
    specs = {}
    for name in ("lab", "night"):
        (tmp_path / name).mkdir()
        specs[name] = HostSpec(kind=HostType.SLURM, root=str(tmp_path / name), partition=name)
    commands.say("squeue", f"{KEY}|PENDING|Resources|\n")
    commands.say("sinfo", "n1|night|up|idle|0/4/0/4|(null)|none\n")
    launcher = Launcher()
    host = ClusterRunHost(tmp_path / "runs", launcher, hosts=specs, grace_ms=100)
    host.prepare(ORDER)
    _, lab, night = host.hosts()
    assert (sum(lab.waits.values()), sum(night.waits.values())) == (1, 0)
    host.prepare(replace(ORDER, run_id="next", hosts=("lab", "night")))
    assert host.host_of("next") == "night"
    host.close()
    launcher.close()


def test_queries_do_not_wait_for_submissions(commands: Commands, tmp_path: Path) -> None:
    """What is prepared before, such as a clone, may take minutes."""
    commands.say("squeue", f"{KEY}|RUNNING|None|n1\n")
    cluster, ready = engine.Slurm(HostSpec(kind=HostType.SLURM, root=str(tmp_path))), threading.Event()
    for number in range(8):
        cluster.submit(f"cl-{number}-0", str(tmp_path), ready.wait)
    listed = wait_until(cluster.listed)
    assert [*listed.jobs] == [KEY]
    ready.set()
    cluster.close()


def test_a_run_that_the_cluster_refuses_says_what_it_was_told(host: ClusterRunHost, commands: Commands) -> None:
    commands.fail("sbatch", "sbatch: error: invalid partition specified: night")
    commands.say("squeue", "")
    submitted(host)

    def obstacle() -> str | None:
        host.reconcile(RUN_ID)
        return host.obstacle(RUN_ID)

    shown = wait_until(obstacle)
    assert shown == "waits for lab, which has not accepted it: sbatch: error: invalid partition specified: night"
    commands.say("sinfo", "n1|night|up|idle|0/4/0/4|(null)|none\n")
    assert "invalid partition" in (host.hosts()[1].problem or "")
    host.prepare(replace(ORDER, run_id="next", hosts=("lab", LOCAL)))
    assert host.host_of("next") == LOCAL


@pytest.mark.parametrize(("text", "plain"), [*words_of("refusals").items()])
def test_a_host_that_refuses_all_runs_takes_none_for_a_while(
    host: ClusterRunHost, commands: Commands, monkeypatch: pytest.MonkeyPatch, text: str, plain: str
) -> None:
    commands.fail("sbatch", f"sbatch: error: Batch job submission failed: {text}")
    commands.say("squeue", "")
    submitted(host)
    wait_until(lambda: plain in host.closed().get("lab", ""))
    monkeypatch.setattr(engine, "_REFUSAL_S", 0.0)
    assert "refuses" not in host.closed().get("lab", "")


def test_a_run_that_the_cluster_took_without_an_answer_was_not_refused(
    host: ClusterRunHost, commands: Commands
) -> None:
    commands.fail("sbatch", "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation")
    commands.say("squeue", "")
    submitted(host)
    wait_until(lambda: "Socket timed out" in (host.hosts(ask=False)[1].problem or ""))
    commands.say("squeue", f"{KEY}|RUNNING|None|n1\n")
    wait_until(lambda: host.reconcile(RUN_ID).fate is RunFate.STARTING and host.hosts(ask=False)[1].problem is None)


def test_a_host_that_refuses_a_single_run_takes_others(host: ClusterRunHost, commands: Commands) -> None:
    commands.fail("sbatch", "sbatch: error: Batch job submission failed: Requested node configuration is not available")
    commands.say("squeue", "")
    submitted(host)
    wait_until(lambda: "not available" in (host.hosts(ask=False)[1].problem or ""))
    assert "refuses" not in host.closed().get("lab", "")


def test_what_the_cluster_refuses_again_and_again_is_submitted_ever_more_rarely(
    commands: Commands, tmp_path: Path
) -> None:
    """As a job that asks for more than any node has."""
    cluster = engine.Slurm(HostSpec(kind=HostType.SLURM, root=str(tmp_path)))

    def submit(number: int, gpus: int | None) -> int:
        (folder := tmp_path / str(number)).mkdir(exist_ok=True)
        limits = {"timeout_ms": None, "grace_ms": 100}
        (folder / "spec.json").write_text(json.dumps({"limits": limits, "node": {"needs": {"gpus": gpus}}}))
        cluster.submit(f"cl-{number}-0", str(folder)).result()
        return cluster.patience(f"cl-{number}-0")

    commands.fail("sbatch", "sbatch: error: Invalid generic resource (gres) specification")
    assert [submit(number, gpus=1) for number in range(6)] == [1, 2, 4, 8, 10, 10]
    assert submit(6, gpus=None) == 1
    commands.say("sbatch", "1\n")
    assert submit(7, gpus=1) == 1
    commands.fail("sbatch", "sbatch: error: Invalid generic resource (gres) specification")
    assert submit(8, gpus=1) == 1
    assert submit(9, gpus=1) == 2
    cluster.close()


def test_a_run_whose_kind_is_refused_is_given_up_later(
    host: ClusterRunHost, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine.Slurm, "patience", lambda *_: 1_000_000)
    host._fates._absent_s = 0.01
    commands.fail("sbatch", "sbatch: error: Invalid generic resource (gres) specification")
    commands.say("squeue", "")
    commands.say("scancel", "")
    submitted(host)
    wait_until(lambda: host.reconcile(RUN_ID).fate is RunFate.STARTING and host.obstacle(RUN_ID) is not None)
    asked = len(commands.all_asked("squeue"))
    wait_until(
        lambda: host.reconcile(RUN_ID).fate is not RunFate.STARTING or len(commands.all_asked("squeue")) > asked + 1
    )
    assert host.reconcile(RUN_ID).fate is RunFate.STARTING
    monkeypatch.setattr(engine.Slurm, "patience", lambda *_: 1)
    wait_until(lambda: host.reconcile(RUN_ID).fate is RunFate.REVOKED)


@pytest.mark.parametrize(
    ("needs", "options"),
    [
        (None, []),
        (HostNeeds(cpus=4), ["--nodes=1", "--ntasks=1", "--cpus-per-task=4"]),
        (
            HostNeeds.model_validate({"gpus": 2, "memory": "3MB"}),
            ["--nodes=1", "--ntasks=1", "--gres=gpu:2", "--mem=3M"],
        ),
    ],
)
def test_slurm_is_asked_for_what_a_run_needs(
    host: ClusterRunHost, commands: Commands, needs: HostNeeds | None, options: list[str]
) -> None:
    commands.say("sbatch", "1\n")
    commands.say("squeue", "")
    host.prepare(replace(ORDER, needs=needs, agent="claude"))
    host.spawn(RUN_ID, {"PATH": os.environ["PATH"]})
    asked = wait_until(lambda: commands.asked("sbatch") if commands.is_asked("sbatch") else None).split()
    resources = [word for word in asked if word.startswith(("--nodes", "--ntasks", "--cpus", "--gres", "--mem"))]
    assert resources == options
    assert "--licenses=claude-max:1" in asked
    assert "--partition=night" in asked


@pytest.mark.parametrize(
    ("listed", "minutes"),
    [
        ("night|5:00", 5),
        ("night|1:30:00", 90),
        ("night|infinite", 122),
        ("night|1-00:00:00", 122),
        ("night|30:00\nlong|1:00:00", 60),
        ("night|30:00\nlong|infinite", 122),
        ("night|n/a", 122),
        ("", 122),
        (None, 122),
    ],
)
def test_a_job_asks_for_no_more_time_than_its_partition_allows(
    host: ClusterRunHost, commands: Commands, listed: str | None, minutes: int
) -> None:
    """Slurm would keep it waiting for ever."""
    commands.say("sbatch", "1\n")
    commands.say("squeue", "")
    if listed is not None:
        commands.say("sinfo", listed)
    host.prepare(replace(ORDER, limits=replace(LIMITS, timeout_ms=111 * MINUTE_MS, grace_ms=100)))
    host.spawn(RUN_ID, {"PATH": os.environ["PATH"]})
    asked = wait_until(lambda: commands.asked("sbatch") if commands.is_asked("sbatch") else None).split()
    assert f"--time={minutes}" in asked
