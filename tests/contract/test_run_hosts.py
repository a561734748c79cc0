"""What the daemon asks of a host of runs, on this machine's and on the one that tests use."""

import asyncio
import json
import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.host import LOCAL, HostSpec, HostType
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason
from claudomator_py.domain.redaction import Redactor
from claudomator_py.domain.report import OutputPiece, RunReport
from claudomator_py.domain.run import LaunchRequest, RunConflict, RunFate, RunLimits, RunSpec, RunStatus, WindDown
from claudomator_py.domain.task import TaskSpec
from claudomator_py.hosts.local import LocalRunHost
from claudomator_py.hosts.local.fate import shim_identity
from claudomator_py.hosts.local.launcher import Launcher
from claudomator_py.hosts.local.sweep import kill_survivors
from claudomator_py.hosts.slurm.host import ClusterRunHost
from claudomator_py.ports import AgentKind, RunHost
from tests.fakes.agents import ScriptedKind
from tests.fakes.runs import MemoryRunHost
from tests.patience import PATIENCE_S, wait_until

RUN, CHECK = "contract-run", ("check", 1)
SECRET = "hunter2-hunter2"
# Says what it is given to say, and ends with the code that it is given.
PROGRAM = """
while :; do
    if [ -e code ]; then exit "$(cat code)"; fi
    if [ -e said ]; then cat said; rm said; fi
    sleep 0.01
done
"""
LIMITS = RunLimits(timeout_ms=60_000, stall_ms=None, grace_ms=200, output_bytes=1 << 20)
LIVE = (RunFate.STARTING, RunFate.ALIVE)


@pytest.fixture(autouse=True, scope="module")
def _own_run_id() -> None:
    """Tests in another process end the processes of theirs."""
    global RUN
    RUN = f"contract-run-{os.getpid()}"


class Place(ABC):
    """A host, and what its programs do."""

    host: RunHost
    hosts: tuple[str, ...] = (LOCAL,)

    @abstractmethod
    def say(self, data: bytes) -> None:
        """The program of the run prints this."""

    @abstractmethod
    def end(self, code: int, step: int = 0) -> None:
        """The program ends."""

    @abstractmethod
    def lose_shim(self, *, agent_lives: bool = False) -> None:
        """Its supervisor is killed; so is the program, unless it lives on."""

    @abstractmethod
    def end_agent(self) -> None:
        """The program ends whose supervisor was lost."""

    def prepare(self, step: int = 0, run_id: str | None = None) -> None:
        command = ("sh", "-c", PROGRAM)
        self.host.prepare(RunSpec(run_id or RUN, (command,), None, (), ("PATH",), "", LIMITS, hosts=self.hosts), step)

    def start(self, step: int = 0) -> None:
        """A run that lives."""
        self.prepare(step)
        self.spawn(step)
        self.until(RunFate.ALIVE, step)

    def spawn(self, step: int = 0) -> None:
        self.host.spawn(RUN, {"PATH": os.environ["PATH"]}, step)

    def fate(self, step: int = 0) -> RunFate:
        return self.host.reconcile(RUN, step).fate

    def until(self, fate: RunFate, step: int = 0) -> RunStatus:
        return wait_until(lambda: status if (status := self.host.reconcile(RUN, step)).fate is fate else None)

    def report(self, kind: str = "claude", step: int = 0) -> RunReport:
        """The report, however long it takes to read what was printed."""
        record = self.host.reconcile(RUN, step).exit
        return wait_until(lambda: self.host.report(request(kind), record, step))


class Local(Place):
    """This machine."""

    def __init__(self, root: Path) -> None:
        self.launcher = Launcher()
        self.local = self.made(root, {"claude": ScriptedKind("claude")})
        self.local.start_reading()
        self.host = self.local

    def made(self, root: Path, kinds: Mapping[str, AgentKind]) -> LocalRunHost:
        """The host."""
        return LocalRunHost(root, self.launcher, grace_ms=100, kinds=kinds, redactor=redactor, clock=lambda: 5)

    def say(self, data: bytes) -> None:
        self._hand("said", data)

    def end(self, code: int, step: int = 0) -> None:
        self._hand("code", str(code).encode())
        self.until(RunFate.ENDED, step)
        (self.local.path(RUN) / "work" / "code").unlink()

    def lose_shim(self, *, agent_lives: bool = False) -> None:
        wait_until(lambda: (self.local.path(RUN) / "agent.json").exists())
        path = self.local.path(RUN)
        shim = shim_identity(path)
        assert shim is not None
        agent = self._agent()
        os.kill(shim.pid, signal.SIGKILL)
        wait_until(lambda: shim_identity(path) is None)
        if not agent_lives:
            os.kill(agent, signal.SIGKILL)

    def end_agent(self) -> None:
        os.kill(self._agent(), signal.SIGKILL)

    def close(self) -> None:
        self.local.close()
        self.launcher.close()
        assert not kill_survivors(RUN, grace_ms=0).left

    def _agent(self) -> int:
        pid: int = json.loads((self.local.path(RUN) / "agent.json").read_text())["pid"]
        return pid

    def _hand(self, name: str, data: bytes) -> None:
        work = self.local.path(RUN) / "work"
        wait_until(lambda: not (work / name).exists())
        (work / "new").write_bytes(data)
        (work / "new").rename(work / name)


class Clustered(Local):
    """A cluster of two nodes, whose daemons are real."""

    hosts = ("cluster",)

    def made(self, root: Path, kinds: Mapping[str, AgentKind]) -> LocalRunHost:
        """The host."""
        shared = root.with_name("shared")
        shared.mkdir()
        hosts = {"cluster": HostSpec(kind=HostType.SLURM, root=str(shared))}
        return ClusterRunHost(
            root, self.launcher, hosts=hosts, grace_ms=100, kinds=kinds, redactor=redactor, clock=lambda: 5, absent_s=3
        )


class Memory(Place):
    """The host of tests."""

    def __init__(self) -> None:
        self.memory = MemoryRunHost()
        self.memory.serve({"claude": ScriptedKind("claude")}, redactor, lambda: 5)
        self.host = self.memory

    def say(self, data: bytes) -> None:
        self.memory.write(RUN, data)

    def end(self, code: int, step: int = 0) -> None:
        self.memory.end(RUN, code, step=step)

    def lose_shim(self, *, agent_lives: bool = False) -> None:
        self.memory.kill_shim(RUN, agent_lives=agent_lives)

    def end_agent(self) -> None:
        self.memory.end_orphan(RUN)


def redactor(*_: object) -> Redactor:
    return Redactor([SECRET])


def request(kind: str = "claude") -> LaunchRequest:
    agent = AgentSpec(name="a", kind=kind)
    return LaunchRequest(RUN, agent, TaskSpec(name="t", instructions="Do it."), "", None, "conversation")


@pytest.fixture(params=["local", "memory", pytest.param("slurm", marks=pytest.mark.slurm)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "memory":
        yield Memory()
        return
    if request.param == "slurm":
        request.getfixturevalue("slurm_cluster")
    local = (Clustered if request.param == "slurm" else Local)(tmp_path / "runs")
    yield local
    local.close()


def test_of_a_run_that_is_not_there_nothing_is_said(place: Place) -> None:
    host = place.host
    assert host.reconcile(RUN) == RunStatus(RunFate.MISSING)
    assert host.read(RUN, "stdout", 3, 10) == OutputPiece(3, b"", 0)
    assert host.scratch(RUN) is None
    assert not host.has_directory(RUN)
    assert host.end_survivors(RUN)
    assert host.backlog(RUN) is None
    host.remove(RUN)
    with pytest.raises(OSError, match=RUN):
        host.cancel(RUN)


def test_a_run_that_nobody_started_is_revoked_by_a_look_and_never_starts(place: Place) -> None:
    place.prepare()
    for _ in range(2):
        assert place.fate() is RunFate.REVOKED
    place.spawn()
    place.until(RunFate.REVOKED)
    assert place.host.read(RUN, "stdout", 0, 10).data == b""


def test_what_did_not_start_is_prepared_again_and_what_did_never(place: Place) -> None:
    place.prepare()
    place.prepare()
    assert place.fate() is RunFate.REVOKED
    place.start()
    with pytest.raises(RunConflict):
        place.prepare()
    place.end(0)
    with pytest.raises(RunConflict):
        place.prepare()


def test_a_run_starts_once_however_often_that_is_asked_for(place: Place) -> None:
    place.start()
    place.spawn()
    place.say(b"once\n")
    wait_until(lambda: place.host.read(RUN, "stdout", 0, 10).data == b"once\n")
    assert place.fate() is RunFate.ALIVE
    place.end(3)
    place.spawn()
    status = place.until(RunFate.ENDED)
    assert status.exit is not None
    assert (status.exit.exit_code, status.exit.ended_by) == (3, None)
    assert place.host.reconcile(RUN) == status
    assert place.host.read(RUN, "stdout", 0, 10).data == b"once\n"


def test_output_is_read_by_offset_and_kept(place: Place) -> None:
    place.start()
    place.say(b"0123456789")
    read = place.host.read
    wait_until(lambda: read(RUN, "stdout", 0, 0).size == 10)
    assert read(RUN, "stdout", 2, 3) == OutputPiece(2, b"234", 10)
    assert read(RUN, "stdout", 8, 100) == OutputPiece(8, b"89", 10)
    assert read(RUN, "stdout", 10, 100) == OutputPiece(10, b"", 10)
    assert read(RUN, "stderr", 0, 100) == OutputPiece(0, b"", 0)
    place.end(0)
    assert read(RUN, "stdout", 2, 3) == OutputPiece(2, b"234", 10)


def test_a_cancelled_run_ends_and_says_so(place: Place) -> None:
    place.start()
    place.host.cancel(RUN)
    place.host.cancel(RUN)
    status = place.until(RunFate.ENDED)
    assert status.exit is not None
    assert status.exit.ended_by == "cancel"
    place.host.cancel(RUN)
    assert place.host.reconcile(RUN) == status


def test_a_run_that_stays_after_its_last_word_is_ended_unless_it_has_said_more(place: Place) -> None:
    place.start()
    place.say(b"done")
    wait_until(lambda: place.host.read(RUN, "stdout", 0, 0).size == 4)
    place.host.wind_down(RUN, WindDown(stdout=3, after_ms=0, idle=False))
    assert place.fate() is RunFate.ALIVE
    place.host.wind_down(RUN, WindDown(stdout=4, after_ms=0, idle=False))
    status = place.until(RunFate.ENDED)
    assert status.exit is not None
    assert status.exit.ended_by == "wind_down"


def test_a_run_that_is_cancelled_before_it_starts_never_does(place: Place) -> None:
    place.prepare()
    place.host.cancel(RUN)
    place.spawn()
    place.until(RunFate.REVOKED)


def test_a_check_is_a_run_of_its_own_in_the_directory_of_the_first(place: Place) -> None:
    place.start()
    place.end(0)
    for step, code in ((1, 1), (2, 0)):
        assert place.fate(step) is RunFate.MISSING
        place.start(step)
        place.end(code, step)
        status = place.until(RunFate.ENDED, step)
        assert status.exit is not None
        assert status.exit.exit_code == code
    assert place.fate(1) is RunFate.ENDED
    assert place.fate() is RunFate.ENDED


def test_a_run_that_outlives_its_supervisor_gets_another_one(place: Place) -> None:
    place.start()
    place.lose_shim(agent_lives=True)
    if not isinstance(place, Clustered):  # There, its node is another one, and Slurm ends what is left.
        assert place.fate() is RunFate.ORPHANED
        place.until(RunFate.ALIVE)
        place.end_agent()
    place.until(RunFate.UNFINISHED)
    assert place.host.end_survivors(RUN)
    assert place.fate() is RunFate.UNFINISHED


def test_a_run_whose_supervisor_and_program_are_lost_is_unfinished(place: Place) -> None:
    place.start()
    place.lose_shim()
    place.until(RunFate.UNFINISHED)
    assert place.host.end_survivors(RUN)
    report = place.report()
    assert report.outcome is not None
    assert (report.exit, report.outcome.status) == (None, OutcomeStatus.LOST)


def test_what_a_live_run_says_is_followed(place: Place) -> None:
    place.start()
    place.say(b"# on it\n")
    wait_until(
        lambda: (
            (live_output := place.host.follow(request())) is not None
            and live_output.answered
            and live_output.unread == 0
        )
    )
    assert place.host.follow(request("a kind that is gone")) is None


def test_the_report_of_a_run_is_the_same_whenever_it_is_asked_for(place: Place) -> None:
    outcome = Outcome(status=OutcomeStatus.SUCCEEDED, text=f"it is {SECRET}")
    place.start()
    place.say(outcome.model_dump_json().encode() + b"\n")
    wait_until(lambda: place.host.read(RUN, "stdout", 0, 0).size)
    place.end(0)
    report = place.report()
    assert (report.run_id, report.step, report.exit) == (RUN, 0, place.host.reconcile(RUN).exit)
    assert report.outcome is not None
    assert report.outcome.text == "it is [redacted]"
    assert place.report() == report
    place.host.watch(())
    assert place.report() == report, "also when it was forgotten"
    assert RunReport.model_validate_json(report.model_dump_json()) == report


def test_the_report_of_a_run_that_nobody_can_read_says_that_it_is_lost(place: Place) -> None:
    place.start()
    place.end(0)
    outcome = place.report("a kind that is gone").outcome
    assert outcome is not None
    assert (outcome.status, outcome.reason) == (OutcomeStatus.LOST, Reason.LOST)
    assert "a kind that is gone" in str(outcome.detail)


def test_the_report_of_a_check_has_what_it_wrote_if_it_failed(place: Place) -> None:
    place.start()
    place.end(0)
    for step, code in ((1, 0), (2, 2)):
        place.start(step)
        place.end(code, step)
    passed, failed = place.report(step=1), place.report(step=2)
    assert (passed.step, passed.outcome, passed.check_output) == (1, None, None)
    assert failed.exit is not None
    assert failed.exit.exit_code == 2
    lost = place.host.report(request(), None, 3)
    assert lost == RunReport(run_id=RUN, step=3)


def test_an_end_is_news_once(place: Place) -> None:
    async def main() -> None:
        event = asyncio.Event()
        news: list[None] = []
        loop = asyncio.get_running_loop()

        def hear() -> None:
            news.append(None)
            loop.call_soon_threadsafe(event.set)

        place.start()
        place.host.news = hear
        place.host.watch([(RUN, 0)])
        assert news == []
        await asyncio.to_thread(place.end, 0)
        async with asyncio.timeout(PATIENCE_S):
            await event.wait()
        place.host.watch([(RUN, 0)])
        place.host.watch([(RUN, 0)])
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(news) == 1
        place.host.watch(())

    asyncio.run(main())


def test_a_live_run_is_not_removed_and_an_ended_one_is(place: Place) -> None:
    place.start()
    assert place.host.scratch(RUN) == f"{place.host.place(RUN)}/work"
    assert place.host.has_directory(RUN)
    with pytest.raises(RunConflict):
        place.host.remove(RUN)
    place.end(0)
    for _ in range(2):
        place.host.remove(RUN)
        assert place.fate() is RunFate.MISSING
    assert place.host.scratch(RUN) is None


def test_what_a_run_has_left_is_listed_and_measured_and_its_scratch_folder_given_up(place: Place) -> None:
    assert place.host.run_ids() == []
    assert place.host.size(RUN) == 0
    assert place.host.users(RUN) == []
    place.host.give_up_scratch(RUN)
    place.start()
    place.say(b"done")
    place.end(0)
    place.until(RunFate.ENDED)
    assert RUN in place.host.place(RUN)
    assert place.host.run_ids() == [RUN]
    assert place.host.size(RUN) > 0
    for _ in range(2):
        place.host.give_up_scratch(RUN)
        assert place.host.scratch(RUN) is None
    place.host.remove(RUN)
    assert place.host.run_ids() == []


def test_a_sweep_leaves_known_runs_and_ends_those_that_live(place: Place) -> None:
    place.start()
    place.prepare(run_id="known")
    place.prepare(run_id="unknown")
    swept = {swept.name: swept.action for swept in place.host.sweep(frozenset({"known"}))}
    assert swept == {RUN: "cancelled", "unknown": "removed"}
    place.until(RunFate.ENDED)
    swept = {swept.name: swept.action for swept in place.host.sweep(frozenset({"known"}))}
    assert swept == {RUN: "removed"}
    assert place.fate() is RunFate.MISSING
    assert place.host.reconcile("known").fate is RunFate.REVOKED
