"""Reading what runs write beside the tick: each byte once, a little at a time, and no run at another's cost."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason
from claudomator_py.domain.report import Backlog, LiveOutput, Stage, Used
from claudomator_py.domain.run import ExitRecord, RunLimits, RunSpec, Stream
from claudomator_py.hosts import live_output
from claudomator_py.hosts.live_output import LiveRunMonitor
from claudomator_py.hosts.local import LocalRunHost
from claudomator_py.hosts.local.launcher import Launcher
from claudomator_py.hosts.shim.output import STDOUT, CappedOutput
from tests.fakes.runs import MemoryRunHost
from tests.patience import wait_until

KIB = 1 << 10
CAP = 1 << 20
ENDED = ExitRecord(0, None, 1, 2)
CANCELLED = ExitRecord(None, "cancel", 1, 2)


class Reader:
    """Keeps what it is fed. Its model has answered once it said so, and a line ``boom`` is more than it can take."""

    stuck_until: int | None = None
    stuck_since: int | None = None
    stage = Stage.WORKING
    used = Used()

    def __init__(self) -> None:
        self.fed: dict[Stream, bytes] = {"stdout": b"", "stderr": b""}

    @property
    def answered(self) -> bool:
        return b"answer" in self.fed["stdout"]

    def feed(self, stream: Stream, data: bytes) -> None:
        if b"boom" in data:
            raise ValueError("too much")
        self.fed[stream] += data

    def outcome(self, exit_record: ExitRecord | None, now_ms: int) -> Outcome:
        ended_by = None if exit_record is None else exit_record.ended_by
        if ended_by == "cancel":
            return Outcome(status=OutcomeStatus.CANCELLED, reason=Reason.CANCELLED)
        return Outcome(status=OutcomeStatus.SUCCEEDED, text=self.fed["stdout"].decode())


class MonitoredHost:
    """A monitor of runs in memory, which reads only when a test has it read."""

    def __init__(self) -> None:
        self.host = MemoryRunHost()
        self.host.piece = 1 << 16
        self.monitor = LiveRunMonitor(lambda *wanted: self.host.read(*wanted), lambda: 5)
        self.readers: dict[str, list[Reader]] = {}
        self.wakes = 0
        self.monitor.news = self._hear

    def begin(self, *run_ids: str) -> None:
        for run_id in run_ids:
            self.host.prepare(RunSpec(run_id, (("x",),), None, (), (), "", RunLimits(None, None, 0, 0)))

    def make(self, run_id: str) -> Reader:
        self.readers.setdefault(run_id, []).append(Reader())
        return self.readers[run_id][-1]

    def follow(self, run_id: str) -> LiveOutput:
        return self.monitor.follow(run_id, lambda: self.make(run_id))

    def report(self, run_id: str, record: ExitRecord | None = ENDED) -> live_output.Report | None:
        return self.monitor.report(run_id, lambda: self.make(run_id), record)

    def _hear(self) -> None:
        self.wakes += 1


@pytest.fixture
def monitored() -> MonitoredHost:
    return MonitoredHost()


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn ends with what there is to read, not with a moment that a busy machine has taken."""
    monkeypatch.setattr(live_output, "TURN_S", 600.0)


@pytest.fixture(autouse=True)
def beside(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is so little that it is read at once, but where a test says so."""
    if "at_once" not in request.fixturenames:
        monkeypatch.setattr(live_output, "MAX_REST_BYTES", -1)


@pytest.fixture
def at_once() -> int:
    """So many bytes are read by whoever asks for the report."""
    return live_output.MAX_REST_BYTES


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """One piece of each stream is a turn."""
    monkeypatch.setattr(live_output, "TURN_S", 0.0)


def test_a_tick_reads_nothing_itself(monitored: MonitoredHost) -> None:
    monitored.begin("run")
    monitored.host.write("run", b"answer\n")
    assert monitored.follow("run") == LiveOutput()
    assert not monitored.monitor.turn(), "all is read"
    assert monitored.follow("run").answered


def test_each_byte_is_read_once_to_the_end(monitored: MonitoredHost) -> None:
    monitored.begin("run")
    for number in range(3):
        monitored.host.write("run", b"line %d\n" % number)
        monitored.follow("run")
        monitored.monitor.turn()
    monitored.host.write("run", b"the end")
    monitored.host.write("run", b"aside", "stderr")
    assert monitored.report("run") is None
    monitored.monitor.turn()
    report = monitored.report("run")
    assert report is not None
    assert report.outcome.text == "line 0\nline 1\nline 2\nthe end"
    (reader,) = monitored.readers["run"]
    assert reader.fed["stderr"] == b"aside"
    assert monitored.report("run") is report, "it is read once"
    assert not monitored.monitor.turn()


def test_the_little_that_an_ended_run_has_left_is_read_at_once(monitored: MonitoredHost, at_once: int) -> None:
    monitored.begin("run")
    monitored.host.write("run", b"answer\n")
    report = monitored.report("run")
    assert report is not None
    assert (report.answered, report.outcome.text) == (True, "answer\n")
    assert monitored.wakes == 0, "nobody has to be woken for it"
    assert not monitored.monitor.turn()


def test_much_of_it_is_read_beside_the_tick(monitored: MonitoredHost, at_once: int) -> None:
    monitored.begin("run")
    monitored.host.write("run", b"y\n" * at_once)
    assert monitored.report("run") is None
    assert not monitored.monitor.turn()
    assert monitored.wakes == 1
    assert monitored.report("run") is not None


def test_no_two_threads_read_one_run(monitored: MonitoredHost, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monitored.begin("run")
    monitored.host.write("run", b"answer\n")
    followed: list[live_output.Report | None] = []
    make, feed = monitored.make, Reader.feed

    def reader(run_id: str) -> Reader:
        made = make(run_id)

        def feed_while_asked(stream: Stream, data: bytes) -> None:
            followed.append(monitored.report("run"))
            feed(made, stream, data)

        monkeypatch.setattr(made, "feed", feed_while_asked)
        return made

    monkeypatch.setattr(monitored, "make", reader)
    monitored.follow("run")
    monitored.monitor.turn()
    assert followed == [None], "the end is heard while the output is read"
    assert monitored.report("run") is not None
    assert monitored.readers["run"][0].fed["stdout"] == b"answer\n"


def test_a_flood_takes_no_turn_from_another_run(monitored: MonitoredHost, hasty: None) -> None:
    monitored.begin("flood", "quiet")
    monitored.host.write("flood", b"y\n" * CAP)
    monitored.host.write("quiet", b"answer\n")
    monitored.follow("flood")
    monitored.follow("quiet")
    assert monitored.monitor.turn(), "the flood is not read to its end"
    assert monitored.follow("quiet").answered
    assert monitored.follow("flood").unread == 2 * CAP - monitored.host.piece
    assert monitored.report("quiet") is None
    monitored.monitor.turn()
    assert monitored.report("quiet") is not None


def test_one_stream_does_not_keep_the_other_from_being_read(monitored: MonitoredHost, hasty: None) -> None:
    monitored.begin("run")
    monitored.host.write("run", b"y\n" * CAP)
    monitored.host.write("run", b"aside", "stderr")
    monitored.follow("run")
    monitored.monitor.turn()
    assert monitored.readers["run"][0].fed["stderr"] == b"aside"


def test_what_no_reader_can_take_is_the_trouble_of_its_run_alone(monitored: MonitoredHost) -> None:
    monitored.begin("bad", "good")
    monitored.host.write("bad", b"boom")
    monitored.host.write("good", b"answer")
    for run_id in ("bad", "good"):
        monitored.follow(run_id)
    monitored.monitor.turn()
    assert monitored.follow("good").answered
    assert not monitored.follow("bad").answered
    monitored.report("bad")
    monitored.monitor.turn()
    report = monitored.report("bad")
    assert report is not None
    assert report.outcome.detail == "its output could not be understood: too much"


def test_what_is_behind_is_told(monitored: MonitoredHost, hasty: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_output, "BEHIND_BYTES", CAP)
    monitored.begin("run")
    assert monitored.monitor.backlog("run") is None
    monitored.host.write("run", b"y\n" * CAP)
    monitored.follow("run")
    monitored.monitor.turn()
    assert monitored.monitor.backlog("run") == Backlog(2 * CAP - monitored.host.piece, ended=False)
    monitored.report("run")
    monitored.monitor.turn()
    assert monitored.monitor.backlog("run") == Backlog(2 * CAP - 2 * monitored.host.piece, ended=True)
    while monitored.monitor.turn():
        pass
    assert monitored.monitor.backlog("run") is None


@pytest.mark.parametrize(("record", "limit"), [(ENDED, "BACKLOG_LIMIT"), (CANCELLED, "CANCELLED_BACKLOG_LIMIT")])
def test_at_the_end_a_flood_is_not_read_for_ever(
    monitored: MonitoredHost, hasty: None, monkeypatch: pytest.MonkeyPatch, record: ExitRecord, limit: str
) -> None:
    monkeypatch.setattr(live_output, limit, live_output.BacklogLimit(0.0, 10))
    monitored.begin("run")
    monitored.host.write("run", b"answer\n" + b"y" * CAP)
    monitored.follow("run")
    monitored.monitor.turn()
    monitored.host.write("run", b"y" * CAP + b"\nthe end\n")
    monitored.report("run", record)
    while monitored.monitor.turn():
        pass
    assert monitored.report("run", record) is not None
    fed = monitored.readers["run"][0].fed["stdout"]
    assert fed == b"answer\n" + b"y" * (monitored.host.piece - 7) + b"\nthe end\n", "and the torn line is no line"


def test_what_cannot_be_read_is_tried_again_and_told(monitored: MonitoredHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monitored.begin("run")
    with monkeypatch.context() as broken:
        broken.setattr(monitored.host, "read", _no_such_disk)
        with pytest.raises(OSError, match="no disk"):
            monitored.report("run")
        assert not monitored.monitor.turn(), "no attempt follows by itself"
    assert monitored.report("run") is None
    monitored.monitor.turn()
    assert monitored.report("run") is not None


def test_what_cannot_be_read_of_a_live_run_is_told_with_the_next_look(
    monitored: MonitoredHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitored.begin("run")
    with monkeypatch.context() as broken:
        broken.setattr(monitored.host, "read", _no_such_disk)
        monitored.follow("run")
        assert not monitored.monitor.turn(), "no attempt follows by itself"
        with pytest.raises(OSError, match="no disk"):
            monitored.follow("run")


def test_a_tick_is_woken_for_what_it_may_act_on_and_for_nothing_else(monitored: MonitoredHost) -> None:
    monitored.begin("run")
    for written, record in ((b"words\n", 0), (b"answer\n", 1), (b"more\n", 1)):
        monitored.host.write("run", written)
        monitored.follow("run")
        monitored.monitor.turn()
        assert monitored.wakes == record
    monitored.report("run")
    monitored.monitor.turn()
    assert monitored.wakes == 2


def test_what_is_known_is_current_until_the_run_prints_on(monitored: MonitoredHost) -> None:
    monitored.begin("run")
    assert not monitored.monitor.is_current("run")
    monitored.host.write("run", b"words")
    monitored.follow("run")
    assert not monitored.monitor.is_current("run"), "it is not read yet"
    monitored.monitor.turn()
    assert monitored.wakes == 1, "somebody waited for it"
    monitored.follow("run")
    assert monitored.monitor.is_current("run")
    monitored.monitor.turn()
    assert monitored.wakes == 1
    monitored.host.write("run", b"more")
    assert not monitored.monitor.is_current("run")


def test_a_run_that_was_ended_is_judged_as_if_it_had_not_been_too(monitored: MonitoredHost) -> None:
    monitored.begin("run")
    monitored.report("run", CANCELLED)
    monitored.monitor.turn()
    report = monitored.report("run", CANCELLED)
    assert report is not None
    assert (report.outcome.status, report.undisturbed.status) == (OutcomeStatus.CANCELLED, OutcomeStatus.SUCCEEDED)


def test_a_run_that_is_kept_no_longer_is_begun_afresh(monitored: MonitoredHost) -> None:
    monitored.begin("run")
    monitored.follow("run")
    monitored.monitor.keep([])
    monitored.follow("run")
    assert len(monitored.readers["run"]) == 2


def test_its_thread_reads_when_it_is_asked(monitored: MonitoredHost) -> None:
    monitored.begin("run")
    monitored.monitor.start()
    try:
        monitored.host.write("run", b"answer")
        wait_until(lambda: monitored.follow("run").answered)
        wait_until(lambda: monitored.report("run"))
    finally:
        monitored.monitor.close()


@pytest.fixture
def capped(tmp_path: Path) -> Iterator[tuple[LocalRunHost, CappedOutput]]:
    """A host on this disk with a run, and the stdout of that."""
    (tmp_path / "run").mkdir()
    fd = os.open(tmp_path / "run", os.O_RDONLY | os.O_DIRECTORY)
    output = CappedOutput(fd, STDOUT, CAP)
    launcher = Launcher()
    yield LocalRunHost(tmp_path, launcher, grace_ms=0), output
    launcher.close()
    os.close(output.fd)
    os.close(fd)


def written(output: CappedOutput, data: bytes) -> None:
    os.write(output.fd, data)
    output.grew()
    output.within_cap()


def read_to_the_end(host: LocalRunHost, reader: Reader, monitor: LiveRunMonitor | None = None) -> bytes:
    monitor = monitor or LiveRunMonitor(host.read, lambda: 5)
    monitor.report("run", lambda: reader, ENDED)
    while monitor.turn():
        pass
    assert monitor.report("run", lambda: reader, ENDED) is not None
    return reader.fed["stdout"]


def test_no_line_is_put_together_across_a_hole(capped: tuple[LocalRunHost, CappedOutput]) -> None:
    host, output = capped
    written(output, b"".join(b"%099d\n" % number for number in range(30_000)))
    lines = read_to_the_end(host, Reader()).split(b"\n")
    assert lines[-1] == b""
    whole = [int(line) for line in lines if len(line) == 99]
    assert len(lines) - 1 - len(whole) == 1
    assert whole[0] == 0
    assert whole[-1] == 29_999
    assert len(whole) == len(set(whole)) < 10_000


def test_a_tail_without_a_line_break_is_no_line(capped: tuple[LocalRunHost, CappedOutput]) -> None:
    host, output = capped
    written(output, b"first\n" + b"x" * (3 * CAP))
    data = read_to_the_end(host, Reader())
    assert data.startswith(b"first\nxxx")
    assert len(data) == 256 * KIB + 1


def test_what_was_not_kept_is_skipped_by_one_who_was_reading_before_it(
    capped: tuple[LocalRunHost, CappedOutput],
) -> None:
    host, output = capped
    reader, monitor = Reader(), LiveRunMonitor(host.read, lambda: 5)
    written(output, b"first\n")
    monitor.follow("run", lambda: reader)
    monitor.turn()
    written(output, b"x" * (2 * CAP) + b"\n" + b"y" * (2 * CAP) + b"\nlast\n")
    data = read_to_the_end(host, reader, monitor)
    assert data.startswith(b"first\nxxx")
    assert data.endswith(b"\nlast\n")
    assert len(data) < CAP


def _no_such_disk(*_: object) -> int:
    raise OSError("no disk")
