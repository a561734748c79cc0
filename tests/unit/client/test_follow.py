"""Following over HTTP: in order, over restarts of the daemon, and no longer than there is something to follow."""

from itertools import islice
from pathlib import Path

import pytest

from claudomator_py.api.streams import MAX_STREAMS
from claudomator_py.client import DaemonNotRunning, NotAuthorised, ServiceProblem
from claudomator_py.client.http import Client
from claudomator_py.domain.lifecycle import Completed, Running
from claudomator_py.domain.outcome import Outcome, OutcomeStatus
from tests.fakes.daemon import Daemon, running
from tests.fakes.prepared import PreparedService

SUCCESS = Outcome(status=OutcomeStatus.SUCCEEDED)
CALL = b'{"type":"assistant","message":{"content":[{"type":"text","text":"hi"},{"type":"tool_use","name":"T"}]}}\n'


def test_events_from_now_on_and_from_an_earlier_one(daemon: Daemon, prepared: PreparedService) -> None:
    prepared.happen("approved")

    def connected() -> None:
        # What happens between the answer and the first look is not missed: the stream has begun.
        prepared.happen("now")

    with daemon.client() as client:
        assert next(client.events(on_connect=connected)).kind == "now"
        assert [event.kind for event in islice(client.events(0, kinds=("approved", "rejected")), 1)] == ["approved"]


def test_events_go_on_over_a_restart_of_the_daemon(tmp_path: Path) -> None:
    prepared = PreparedService()
    with running(prepared, tmp_path) as daemon:
        client = Client(daemon.url, daemon.token)
        events = client.events(0)
        prepared.happen("made")
        assert next(events).id == 1
    prepared.happen("made")
    with running(prepared, tmp_path, listen=daemon.address):
        assert next(events).id == 2
        prepared.happen("made")
        assert next(events).id == 3
    client.close()


def test_a_daemon_that_does_not_come_back_is_not_waited_for_without_end(tmp_path: Path) -> None:
    prepared = PreparedService()
    with running(prepared, tmp_path) as daemon:
        client = Client(daemon.url, daemon.token)
        events = client.events(0, patience_s=0.1)
        prepared.happen("made")
        assert next(events).id == 1
    with pytest.raises(DaemonNotRunning):
        next(events)
    with pytest.raises(DaemonNotRunning):
        next(client.events())  # nor is one that never was there
    client.close()


def test_refusals_are_raised_at_once(daemon: Daemon, prepared: PreparedService) -> None:
    with daemon.client() as client, pytest.raises(ServiceProblem, match="no task 'missing'"):
        next(client.events(task="missing"))
    with Client(daemon.url, "x" * 40) as client, pytest.raises(NotAuthorised):
        next(client.events())


def test_one_stream_too_many_is_raised_with_its_remedy(daemon: Daemon, prepared: PreparedService) -> None:
    prepared.happen("made")
    with daemon.client() as client:
        streams = [client.events(0) for _ in range(MAX_STREAMS)]
        for stream in streams:
            next(stream)
        with pytest.raises(ServiceProblem) as refused:
            next(client.events(0))
        assert (refused.value.code, refused.value.retry_after_s) == ("too_many_streams", 10)
        for stream in streams:
            stream.close()


def test_a_log_is_followed_to_its_end_in_both_ways(daemon: Daemon, prepared: PreparedService) -> None:
    run_id = prepared.add_run(prepared.add("it", Running()), stdout=CALL)
    with daemon.client() as client:
        entries = client.follow_log(run_id)
        assert [entry.kind for entry in islice(entries, 2)] == ["message", "tool_call"]
        prepared.write(run_id, b"words\n")
        assert next(entries).text == "words"
        text = client.follow_text(run_id)
        assert next(text) == (CALL + b"words\n").decode()
        prepared.end_run(run_id, SUCCESS)
        assert list(entries) == []
        assert list(text) == []


def test_a_log_goes_on_over_a_restart_in_the_middle_of_what_one_line_says(tmp_path: Path) -> None:
    prepared = PreparedService()
    run_id = prepared.add_run(prepared.add("it", Running()), stdout=CALL)
    with running(prepared, tmp_path) as daemon:
        client = Client(daemon.url, daemon.token)
        entries = client.follow_log(run_id)
        assert next(entries).kind == "message"
    prepared.write(run_id, b"words\n")
    prepared.end_run(run_id, SUCCESS)
    with running(prepared, tmp_path, listen=daemon.address):
        assert [(entry.kind, entry.text) for entry in entries] == [("tool_call", ""), ("text", "words")]
        assert [entry.kind for entry in client.follow_log(run_id)] == ["message", "tool_call", "text"]
    client.close()


def test_what_was_written_by_now_comes_in_pages(daemon: Daemon, prepared: PreparedService) -> None:
    run_id = prepared.add_run(prepared.add("it", Completed()), outcome=SUCCESS, stdout=CALL * 300)
    live = prepared.add_run(prepared.add("live", Running()), stdout=b"one\ntwo\nand")
    with daemon.client() as client:
        assert [entry.kind for entry in client.log_entries(run_id)] == ["message", "tool_call"] * 300
        assert "".join(client.log_text(run_id)) == (CALL * 300).decode()
        assert [entry.text for entry in client.log_entries(live)] == ["one", "two"]
        assert "".join(client.log_text(live)) == "one\ntwo\n"
