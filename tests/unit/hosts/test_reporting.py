"""The reading half of a host: what becomes of a run's output on its way to a report."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from claudomator_py.domain.agent import AgentSpec, ModelChoice, Price
from claudomator_py.domain.outcome import OutcomeStatus, Reason
from claudomator_py.domain.redaction import Redactor
from claudomator_py.domain.report import OutputPiece, RunReport
from claudomator_py.domain.run import ExitRecord, LaunchRequest, Stream
from claudomator_py.hosts import live_output
from claudomator_py.hosts.reporting import TAIL_BYTES, ReportingHost
from tests.fakes.agents import CLAUDE, OutcomeReader, ScriptedKind
from tests.fakes.steps import spec

RUN = "r"
GIVEN = ModelChoice(model="sonnet")
REQUEST = LaunchRequest(RUN, CLAUDE, spec("t"), "do t", GIVEN, "c")
PASSED = ExitRecord(0, None, 1, 2)
FAILED = ExitRecord(1, None, 1, 2)
USED = b'{"status": "succeeded", "tokens": {"input": 1000000, "output": 0}}\n'


class HostInMemory(ReportingHost):
    """What runs print is in memory, and is read when the test says so."""

    def __init__(self, kind: ScriptedKind | None = None, secrets: Iterable[str] = ()) -> None:
        super().__init__({"claude": kind or ScriptedKind()}, lambda *_: Redactor(secrets), lambda: 5)
        self.printed: dict[tuple[str, int, Stream], bytes] = {}

    def read(self, run_id: str, stream: Stream, offset: int, limit: int, step: int = 0) -> OutputPiece:
        data = self.printed.get((run_id, step, stream), b"")
        piece = data[offset : offset + limit]
        return OutputPiece(offset, piece, len(data))

    def prints(self, data: bytes, stream: Stream = "stdout", step: int = 0) -> None:
        key = (RUN, step, stream)
        self.printed[key] = self.printed.get(key, b"") + data

    def turn(self) -> None:
        while self._monitor.turn():
            pass

    def read_report(self, request: LaunchRequest = REQUEST, record: ExitRecord | None = PASSED) -> RunReport:
        self.report(request, record)
        self.turn()
        report = self.report(request, record)
        assert report is not None
        return report


@pytest.fixture(autouse=True)
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is so little that it is read at once."""
    monkeypatch.setattr(live_output, "MAX_REST_BYTES", -1)


def test_there_is_no_report_until_the_output_was_read() -> None:
    host = HostInMemory()
    host.prints(USED)
    assert host.report(REQUEST, PASSED) is None
    host.turn()
    report = host.report(REQUEST, PASSED)
    assert report is not None
    assert report.outcome is not None
    assert (report.outcome.status, report.exit) == (OutcomeStatus.SUCCEEDED, PASSED)


def test_of_a_kind_that_is_not_known_nothing_is_read_and_its_run_is_lost() -> None:
    host = HostInMemory()
    unknown = replace(REQUEST, agent=AgentSpec(name="x", kind="gemini"))
    assert host.follow(unknown) is None
    report = host.report(unknown, PASSED)
    assert report is not None
    assert report.outcome is not None
    assert (report.outcome.status, report.outcome.reason) == (OutcomeStatus.LOST, Reason.LOST)
    assert "'gemini'" in str(report.outcome.detail)


def test_what_a_live_run_has_said() -> None:
    host = HostInMemory()
    host.prints(b"# on it\n")
    assert host.follow(REQUEST) is not None
    host.turn()
    live_output = host.follow(REQUEST)
    assert live_output is not None
    assert live_output.answered


@pytest.mark.parametrize("stuck", ["stuck_until", "stuck_since"])
def test_whether_it_has_printed_since_is_looked_for_only_where_a_run_is_stuck(
    stuck: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = HostInMemory()
    host.prints(b"# on it\n")
    host.follow(REQUEST)
    host.turn()
    live_output = host.follow(REQUEST)
    assert live_output is not None
    assert not live_output.is_current, "nobody asks"
    monkeypatch.setattr(OutcomeReader, stuck, 9)
    host.prints(b"# still\n")
    host.turn()
    live_output = host.follow(REQUEST)
    assert live_output is not None
    assert live_output.is_current
    host.prints(b"# and on\n")
    live_output = host.follow(REQUEST)
    assert live_output is not None
    assert not live_output.is_current


def test_news_are_passed_on() -> None:
    host, messages = HostInMemory(), list[str]()
    host.news = lambda: messages.append("news")
    host.prints(b"# on it\n")
    host.follow(REQUEST)
    host.turn()
    assert messages == ["news"]


def test_a_run_that_is_not_live_any_more_is_forgotten() -> None:
    host = HostInMemory()
    host.report(REQUEST, PASSED)
    host.watch([("other", 0), (RUN, 0)])
    assert host.backlog(RUN) is not None
    host.watch([("other", 0), (RUN, 1)])
    assert host.backlog(RUN) is None, "its check is live, and that is not read"


def test_reading_begins_and_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    host, messages = HostInMemory(), list[str]()
    monkeypatch.setattr(host._monitor, "start", lambda: messages.append("start"))
    monkeypatch.setattr(host._monitor, "close", lambda: messages.append("close"))
    host.start_reading()
    assert messages == ["start"]
    host.close()
    assert messages == ["start", "close"]


@pytest.mark.parametrize(("model", "usd"), [(GIVEN, 3.0), (None, None)], ids=["priced", "no model"])
def test_tokens_are_priced_by_the_model_of_the_run(model: ModelChoice | None, usd: float | None) -> None:
    host = HostInMemory()
    host.prints(USED)
    agent = CLAUDE.model_copy(update={"prices": {"sonnet": Price(input=3, output=15)}})
    outcome = host.read_report(replace(REQUEST, agent=agent, model=model)).outcome
    assert outcome is not None
    assert outcome.cost_usd == usd


@pytest.mark.parametrize(
    ("record", "status"),
    [(PASSED, OutcomeStatus.SUCCEEDED), (ExitRecord(None, "cancel", 1, 2), OutcomeStatus.CANCELLED)],
    ids=["by itself", "stopped"],
)
def test_what_a_run_had_done_is_told_however_it_was_ended(record: ExitRecord, status: OutcomeStatus) -> None:
    host = HostInMemory(secrets=["tell-nobody-0123456789"])
    host.prints(b'{"status": "succeeded", "text": "done, with tell-nobody-0123456789"}\n')
    report = host.read_report(record=record)
    assert report.outcome is not None
    assert report.outcome.status is status
    assert report.undisturbed is not None
    assert (report.undisturbed.status, report.undisturbed.text) == (OutcomeStatus.SUCCEEDED, "done, with [redacted]")


@pytest.mark.parametrize(
    ("record", "output"),
    [
        (FAILED, "out err"),
        (ExitRecord(0, "timeout", 1, 2), "out err"),
        (ExitRecord(None, "stall", 1, 2), "out err"),
        (PASSED, None),
        (ExitRecord(None, "cancel", 1, 2), None),
        (None, None),
    ],
    ids=["failed", "too late, and then well", "stalled", "passed", "cancelled", "lost"],
)
def test_what_a_check_wrote_is_told_unless_nobody_asks(record: ExitRecord | None, output: str | None) -> None:
    host = HostInMemory()
    host.prints(b"out ", step=1)
    host.prints(b"err\n", "stderr", step=1)
    report = host.report(REQUEST, record, step=1)
    assert report is not None
    assert (report.step, report.exit, report.check_output, report.outcome) == (1, record, output, None)


def test_a_check_that_wrote_nothing_has_no_output() -> None:
    report = HostInMemory().report(REQUEST, FAILED, step=1)
    assert report is not None
    assert report.check_output is None


def test_of_what_a_check_wrote_the_end_is_told_without_a_part_of_a_secret() -> None:
    secret = "tell-nobody-0123456789"
    host = HostInMemory(secrets=[secret])
    host.prints(b"x" * 9_000 + secret.encode() + b"y" * (TAIL_BYTES - 8), step=1)
    report = host.report(REQUEST, FAILED, step=1)
    assert report is not None
    assert report.check_output is not None
    assert len(report.check_output) == TAIL_BYTES
    assert "0123456789"[-8:] not in report.check_output
    assert report.check_output.endswith("y" * 100)
