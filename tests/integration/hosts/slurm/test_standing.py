"""What a cluster says of runs and their jobs, in the words of programs that stand in for Slurm's: its own are too slow
to be asked for each of these."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from claudomator_py.domain.run import RunFate
from claudomator_py.hosts.local.fate import held_lock
from claudomator_py.hosts.shim.record import now_ms
from claudomator_py.hosts.slurm import engine, fate, polling
from claudomator_py.hosts.slurm.cluster import ClockSkew
from claudomator_py.hosts.slurm.host import ClusterRunHost
from tests.integration.hosts.slurm.commands import KEY, ORDER, RUN_ID, Commands, submitted
from tests.patience import PATIENCE_S, wait_until

LARGE = {"gpus": 2, "memory": "3MB"}


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("Resources", "no node has room (Resources)"),
        ("ReqNodeNotAvail, UnavailableNodes:n[1-2]", "the nodes that it needs are not available (ReqNodeNotAvail,"),
        ("QOSMaxJobsPerUserLimit", "the quality of service allows no more at present (QOSMaxJobsPerUserLimit)"),
        ("QOSNotAllowed", "the quality of service is not allowed there (QOSNotAllowed)"),
        ("Something|new", "Something|new"),
    ],
)
def test_a_run_that_waits_for_a_node_says_why(
    host: ClusterRunHost, commands: Commands, reason: str, words: str
) -> None:
    commands.say("sbatch", "1\n")
    commands.say("squeue", f"{KEY}|PENDING|{reason}|\nelse|PENDING|Priority|\n")
    submitted(host)
    wait_until(lambda: (shown := host.obstacle(RUN_ID)) is not None and shown.startswith(f"waits for lab: {words}"))
    commands.say("squeue", f"{KEY}|RUNNING|None|n1\n")
    wait_until(lambda: host.obstacle(RUN_ID) is None)


def test_a_run_whose_job_is_suspended_says_so(host: ClusterRunHost, commands: Commands) -> None:
    commands.say("sbatch", "1\n")
    commands.say("squeue", f"{KEY}|SUSPENDED|None|n1\nelse|PENDING|Priority|\n")
    submitted(host)
    said = "stands still on lab: Slurm has suspended its job (SUSPENDED)"
    wait_until(lambda: host.obstacle(RUN_ID) == said)
    commands.say("squeue", f"{KEY}|RUNNING|None|n1\n")
    wait_until(lambda: host.obstacle(RUN_ID) is None)


def test_what_slurm_does_to_a_run_that_lives_is_known_though_nobody_asked_before(
    host: ClusterRunHost, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands.say("sbatch", "1\n")
    commands.say("squeue", f"{KEY}|PENDING|Resources|\n")
    submitted(host)
    wait_until(lambda: host.obstacle(RUN_ID) is not None)
    commands.say("squeue", f"{KEY}|SUSPENDED|None|n1\n")
    before = len(commands.all_asked("squeue"))
    monkeypatch.setattr(engine, "_RECENT_S", 0.0)
    monkeypatch.setattr(engine, "_LOOK_EVERY_S", 0.0)

    async def watch() -> None:
        while len(commands.all_asked("squeue")) < before + 3:
            host.watch([(RUN_ID, 0)])
            await asyncio.sleep(0.01)
        host.watch([])

    asyncio.run(watch())
    monkeypatch.setattr(engine, "_LOOK_EVERY_S", 3_600.0)
    assert str(host.obstacle(RUN_ID)).startswith("stands still on lab")


@pytest.mark.parametrize(("state", "is_lost"), [("PREEMPTED", True), ("CANCELLED", False), ("COMPLETED", False)])
def test_a_check_that_the_cluster_ended_is_lost_and_not_failed(
    host: ClusterRunHost, commands: Commands, state: str, is_lost: bool
) -> None:
    """With proctrack/linuxproc its program is told to stop as well, and may be gone before its supervisor is told."""
    commands.say("sbatch", "1\n")
    commands.say("squeue", f"{KEY}|RUNNING|None|n1\n")
    submitted(host)
    host.prepare(ORDER, 1)
    host.spawn(RUN_ID, {"PATH": os.environ["PATH"]}, 1)
    commands.say("squeue", f"cl-{RUN_ID}-1|{state}|None|n1\n")
    ended = {"exit_code": -15, "ended_by": None, "started_ms": 1, "ended_ms": 2, "error": None, "step": 0}
    (host.path(RUN_ID, 1) / "started").touch()
    (host.path(RUN_ID, 1) / "exit.json").write_text(json.dumps({**ended, "stragglers": 0}))
    wait_until(lambda: host.reconcile(RUN_ID, 1).fate not in (RunFate.ALIVE, RunFate.STARTING))
    assert host.reconcile(RUN_ID, 1).fate is (RunFate.UNFINISHED if is_lost else RunFate.ENDED)


def test_a_run_whose_job_is_held_after_a_failed_start_is_given_up(host: ClusterRunHost, commands: Commands) -> None:
    """Nobody may ever release it."""
    commands.say("sbatch", "1\n")
    commands.say("scancel", "")
    commands.say("squeue", f"{KEY}|PENDING|Resources|\n")
    submitted(host)
    wait_until(lambda: host.reconcile(RUN_ID).fate is RunFate.STARTING and host.obstacle(RUN_ID) is not None)
    assert not commands.is_asked("scancel")
    commands.say("squeue", f"{KEY}|PENDING|launch failed requeued held|\n")
    wait_until(lambda: host.reconcile(RUN_ID).fate is RunFate.REVOKED)
    wait_until(lambda: commands.all_asked("scancel") == [f"--me --name={KEY}"])


def test_a_run_that_wants_more_time_than_its_partition_allows_by_now_is_given_up(
    host: ClusterRunHost, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands.say("sbatch", "1\n")
    commands.say("scancel", "")
    commands.say("squeue", f"{KEY}|PENDING|PartitionTimeLimit|\n")
    submitted(host)
    wait_until(lambda: host.reconcile(RUN_ID).fate is RunFate.STARTING and host.obstacle(RUN_ID) is not None)
    monkeypatch.setattr(fate, "OUTAGE_S", 0.0)
    wait_until(lambda: host.reconcile(RUN_ID).fate is RunFate.REVOKED)
    wait_until(lambda: commands.all_asked("scancel") == [f"--me --name={KEY}"])


def test_jobs_that_wait_although_their_runs_are_over_are_cancelled(
    host: ClusterRunHost, commands: Commands, tmp_path: Path
) -> None:
    """Slurm may hold a job that it wants to start again until somebody releases it."""
    marks = {"ended": "exit.json", "revoked": "revoked", "lost": "started", "live": "started", "waits": "submitted"}
    for name, mark in {**marks, "running": "exit.json", "foreign": "exit.json", "held": "exit.json"}.items():
        (tmp_path / "shared" / name).mkdir()
        (tmp_path / "shared" / name / mark).touch()
    (tmp_path / "shared" / "held" / "check").mkdir()
    (tmp_path / "shared" / "held" / "check" / "exit.json").touch()
    commands.say("scancel", "")
    states = {**dict.fromkeys((*marks, "unknown", "held"), "PENDING"), "running": "RUNNING"}
    lines = [f"cl-{name}-0|{state}|cl-{name}-0" for name, state in states.items()]
    lines += [
        "cl-foreign-0|PENDING|(null)",
        "cl-held-1|REQUEUE_HOLD|cl-held-1",
        "cl-ended|PENDING|cl-ended",
        "x|PENDING|x",
    ]
    commands.say("squeue", "\n".join(lines))

    async def watch() -> None:
        host.watch([("live", 0)])
        host.watch([])

    with held_lock(host.path("held")):
        asyncio.run(watch())
        wait_until(lambda: len(commands.all_asked("scancel")) >= 4)
        host.close()
    cancelled = {f"--me --name=cl-{name}" for name in ("ended-0", "revoked-0", "lost-0", "held-1")}
    assert set(commands.all_asked("scancel")) == cancelled
    assert len([query for query in commands.all_asked("squeue") if "%k" in query]) == 1


@pytest.mark.parametrize("begins_with", ["", '{"exit_code": 0, '], ids=["missing", "incomplete"])
def test_the_record_of_a_run_may_appear_some_seconds_after_its_lock_is_free(
    host: ClusterRunHost, commands: Commands, monkeypatch: pytest.MonkeyPatch, begins_with: str
) -> None:
    """As on a network file system. Slurm has no job of it any more."""
    for name in ("sbatch", "squeue", "scancel"):
        commands.say(name, "")
    submitted(host)
    (host.path(RUN_ID) / "started").touch()
    if begins_with:
        (host.path(RUN_ID) / "exit.json").write_text(begins_with)
    wait_until(lambda: host.reconcile(RUN_ID).fate is RunFate.ALIVE and len(commands.all_asked("squeue")) > 1)
    assert [host.reconcile(RUN_ID).fate for _ in range(3)] == [RunFate.ALIVE] * 3
    with monkeypatch.context() as later:
        later.setattr(fate, "_SETTLED_S", 0.0)
        wait_until(lambda: host.reconcile(RUN_ID).fate is RunFate.UNFINISHED)
    record = {"exit_code": 0, "ended_by": None, "error": None, "step": 0, "started_ms": 1, "ended_ms": 2}
    (host.path(RUN_ID) / "exit.json").write_text(json.dumps(record))
    assert host.reconcile(RUN_ID).fate is RunFate.ENDED


def test_an_end_is_noticed_although_the_file_system_has_cached_that_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os.path, "exists", lambda _: False)
    monkeypatch.setattr(polling, "_LIST_EVERY_S", 0.05)

    async def look() -> None:
        heard = asyncio.Event()
        poll = polling.EndPoll(lambda *_: str(tmp_path), heard.set)
        poll.watch([(RUN_ID, 0)])
        (tmp_path / "exit.json").touch()
        await asyncio.wait_for(heard.wait(), PATIENCE_S)
        poll.close()

    asyncio.run(look())


@pytest.mark.parametrize(
    ("begun_s", "ended_s", "is_ahead_s"),
    [(0, 2, 0), (3_598, 3_600, 3_600), (-600, -598, -600), (-600, 2, 0), (2, 600, 600)],
    ids=["right", "ahead", "behind", "set-forward", "set-forward-too-far"],
)
def test_a_node_whose_clock_differs_is_noticed_by_its_runs_and_their_times_are_corrected(
    host: ClusterRunHost, commands: Commands, begun_s: int, ended_s: int, is_ahead_s: int
) -> None:
    """A run of two seconds, with times by the clock of its node. The file server's clock is two hours ahead."""
    for name in ("sbatch", "squeue", "sinfo"):
        commands.say(name, "")
    begin_ms = now_ms() - 7_200_000
    host._clusters["lab"].skew = ClockSkew(lambda: begin_ms)
    submitted(host)
    assert host.hosts()[1].clock_skew is None
    times = {"started_ms": begin_ms + begun_s * 1_000, "ended_ms": begin_ms + ended_s * 1_000}
    record = {"exit_code": 0, "ended_by": None, "error": None, "step": 0, **times}
    (host.path(RUN_ID) / "exit.json").write_text(json.dumps(record))
    for _ in ("this daemon", "the next"):
        host._clusters["lab"].skew = ClockSkew(iter(range(begin_ms + 2_000, begin_ms + 2_010)).__next__)
        corrected, again = (host.reconcile(RUN_ID).exit for _ in range(2))
        assert corrected is not None
        assert corrected == again
        assert corrected.ended_ms == pytest.approx(begin_ms + 2_000, abs=100)
        assert corrected.ended_ms - corrected.started_ms == (ended_s - begun_s) * 1_000
        assert host.hosts()[1].clock_skew == pytest.approx(is_ahead_s, abs=5)


def test_jobs_of_ours_that_belong_to_no_run_are_cancelled(host: ClusterRunHost, commands: Commands) -> None:
    commands.say("sbatch", "1\n")
    commands.say("scancel", "")
    submitted(host)
    lines = [f"{name}|RUNNING|{name}" for name in (KEY, "cl-forgotten-0", "else")]
    commands.say("squeue", "\n".join([*lines, "cl-of-the-user-0|RUNNING|(null)", "cl-other|RUNNING|a\ncl-line"]))
    trial = host.path(RUN_ID).parent / ".probe-trial"
    trial.mkdir()
    assert host.sweep(frozenset({RUN_ID})) == []
    assert trial.is_dir(), "a trial of the host may be in progress"
    assert commands.all_asked("scancel") == ["--me --name=cl-forgotten-0"]
    commands.fail("squeue", "squeue: error: no answer")
    assert host.sweep(frozenset()) == []
    assert host.has_directory(RUN_ID), "without an answer of Slurm's nothing is swept"


def test_a_cancelled_run_that_does_not_end_loses_its_job_after_the_grace_period(
    host: ClusterRunHost, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands.say("sbatch", "1\n")
    commands.say("squeue", f"{KEY}|RUNNING|None|n1\n")
    commands.say("scancel", "")
    submitted(host)
    (host.path(RUN_ID) / "started").touch()
    with held_lock(host.path(RUN_ID)):
        host.cancel(RUN_ID)
        wait_until(lambda: len(commands.all_asked("scancel")) == 3)
        assert host.reconcile(RUN_ID).fate is RunFate.ALIVE
        monkeypatch.setattr(fate, "FORCE_S", 0.0)
        wait_until(lambda: host.reconcile(RUN_ID).fate is RunFate.ALIVE and len(commands.all_asked("scancel")) > 3)
    assert commands.all_asked("scancel")[:4] == [
        f"--me --name={KEY} --state=PENDING",
        f"--me --name={KEY} --state=SUSPENDED",
        f"--me --name={KEY} --state=RUNNING --batch --signal=TERM",
        f"--me --name={KEY}",
    ]
