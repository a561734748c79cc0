"""The stream of events: its form, where it begins and goes on, how many there are, and its end."""

import asyncio
import json
import socket
import threading
from itertools import islice
from pathlib import Path

import pytest
from pydantic import BaseModel

from claudomator_py.api.guard.protocol import Connection
from claudomator_py.api.problem import Refused
from claudomator_py.api.streams import MAX_STREAMS, Streams, message
from claudomator_py.domain.lifecycle import Completed, Running
from claudomator_py.domain.outcome import Outcome, OutcomeStatus
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from tests.fakes.daemon import Daemon, running
from tests.fakes.prepared import PreparedService
from tests.fakes.sse import EventSource
from tests.patience import PATIENCE_S, wait_until

GRACE_IS_OVER = "graceful shutdown exceeded"
SUCCESS = Outcome(status=OutcomeStatus.SUCCEEDED)


def test_an_event_has_its_id_its_kind_and_itself_as_json(daemon: Daemon, prepared: PreparedService) -> None:
    with EventSource(daemon, "/v1/events") as source:
        assert source.response.headers["content-type"].startswith("text/event-stream")
        assert source.response.headers["cache-control"] == "no-store"
        assert source.opened().retry_ms == 2_000
        task_id = prepared.add("it")
        message = next(source.messages())
    assert (message.id, message.kind) == ("1", "accepted")
    assert list(message.data) == ["id", "at", "task_id", "run_id", "kind", "data", "by", "task_name"]
    assert (message.data["id"], message.data["task_id"], message.data["data"]) == (
        1,
        task_id,
        {"name": "it", "source": "api"},
    )
    assert message.data["at"].endswith("Z")


def test_an_event_is_read_by_clients_that_end_a_line_at_every_separator() -> None:
    """As ``iter_lines()`` of httpx and the A2A client for Python do: a log may contain each of them."""

    class Output(BaseModel):
        text: str

    text = "1\u20282\u20293\x854\x0b5\x0c6\x1c7\x1d8\x1e9 ü"
    lines = message("output", Output(text=text), 7).decode().splitlines()
    assert (lines[:2], lines[3:]) == (["id: 7", "event: output"], [""])
    assert json.loads(lines[2].removeprefix("data: ")) == {"text": text}


def test_a_stream_begins_now_unless_it_is_told_where(daemon: Daemon, prepared: PreparedService) -> None:
    prepared.happen("made", times=5)
    with EventSource(daemon, "/v1/events") as source:
        assert source.opened().last_id == "5"
        prepared.happen("made")
        assert next(source.messages()).id == "6"
    for path, headers, expected in (
        ("/v1/events?after=0", {}, "1"),
        ("/v1/events?after=3", {}, "4"),
        ("/v1/events", {"Last-Event-ID": "4"}, "5"),
        ("/v1/events?after=0", {"Last-Event-ID": "5"}, "6"),  # as a browser comes again, to the same URL
    ):
        with EventSource(daemon, path, headers) as source:
            assert next(source.messages()).id == expected, (path, headers)


@pytest.mark.parametrize("last_id", ["99", "-1", "abc", "1e3", "9" * 30, ""])
def test_a_place_that_is_not_known_is_said_and_the_stream_begins_now(
    daemon: Daemon, prepared: PreparedService, last_id: str
) -> None:
    prepared.happen("made")
    with EventSource(daemon, "/v1/events", {"Last-Event-ID": last_id}) as source:
        messages = source.messages()
        reset = next(messages)
        assert (reset.kind, reset.id, reset.data["kind"], reset.data["id"]) == ("reset", "1", "reset", 1)
        prepared.happen("made")
        assert next(messages).id == "2"


def test_filters(daemon: Daemon, prepared: PreparedService) -> None:
    name, _other = prepared.add("one"), prepared.add("other")
    prepared.happen("hold", name)
    prepared.happen("decided", name)
    with EventSource(daemon, "/v1/events?after=0&task=one&kind=hold&kind=state") as source:
        assert [message.kind for message in islice(source.messages(), 2)] == ["state", "hold"]
        prepared.move(name, Running())
        assert next(source.messages()).data["data"] == {"generation": 1, "state": "RUNNING", "phase": "starting"}


@pytest.mark.parametrize("accept", [None, "text/event-stream"])
def test_what_cannot_be_is_refused_before_a_stream_begins(
    daemon: Daemon, prepared: PreparedService, accept: str | None
) -> None:
    for path, status in (("task=missing", 404), ("after=-1", 422), ("after=x", 422), ("limit=0", 422)):
        answer = daemon.ask("GET", f"/v1/events?{path}", headers={"Accept": accept})
        assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
        assert answer.json()["remedy"]


def test_without_a_stream_events_come_in_pages(daemon: Daemon, prepared: PreparedService) -> None:
    prepared.happen("made", times=7)
    seen: list[int] = []
    cursor = ""
    while True:
        page = daemon.ask("GET", f"/v1/events?limit=3{cursor}").json()
        seen += [event["id"] for event in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert seen == [1, 2, 3, 4, 5, 6, 7]
    assert [event["id"] for event in daemon.ask("GET", "/v1/events?after=5").json()["items"]] == [6, 7]
    given = daemon.ask("GET", "/v1/events?limit=3").json()["next_cursor"]
    for bad in ("cursor=abc", "cursor=3", f"cursor={given}&kind=state"):
        refused = daemon.ask("GET", f"/v1/events?{bad}")
        assert (refused.status, refused.json()["code"]) == (400, "bad_cursor"), "a cursor is of one list only"


def test_a_place_before_what_is_kept_is_said(daemon: Daemon, prepared: PreparedService) -> None:
    prepared.happen("made", times=5)
    cursor = daemon.ask("GET", "/v1/events?limit=2").json()["next_cursor"]
    prepared.forget_events(3)

    for place in ("after=2", f"cursor={cursor}"):
        refused = daemon.ask("GET", f"/v1/events?{place}")
        assert (refused.status, refused.json()["code"]) == (410, "gone")
        assert "after=0" in refused.json()["remedy"]
    with EventSource(daemon, "/v1/events", {"Last-Event-ID": "2"}) as source:
        messages = source.messages()
        reset = next(messages)
        assert (reset.kind, reset.id) == ("reset", "5")
        prepared.happen("made")
        assert next(messages).kind == "made"

    for place in ("after=0", "after=3", ""):
        kept = daemon.ask("GET", f"/v1/events?{place}").json()["items"]
        assert [event["id"] for event in kept[:2]] == [4, 5], place
    with EventSource(daemon, "/v1/events?after=0") as source:
        assert next(source.messages()).id == "4"


def test_only_so_many_streams_and_then_a_refusal(daemon: Daemon, prepared: PreparedService) -> None:
    sources = [EventSource(daemon, "/v1/events").opened() for _ in range(MAX_STREAMS)]
    refused = daemon.ask("GET", "/v1/events", headers={"Accept": "text/event-stream"})
    assert (refused.status, refused.json()["code"], refused.headers["retry-after"]) == (503, "too_many_streams", "10")
    assert daemon.ask("GET", "/v1/status").status == 200
    prepared.happen("made")
    assert [next(source.messages()).id for source in sources] == ["1"] * MAX_STREAMS
    for source in sources:
        source.close()
    wait_until(lambda: _status(daemon, "/v1/events") == 200, "the places of streams that were left")


def test_the_last_quarter_of_the_places_is_the_operators() -> None:
    guests = [Principal(name, Role.ADMIN) for name in ("ann", "ben", "cid", "dot")]

    async def take() -> None:
        streams = Streams(4)
        with streams.place(guests[0]), streams.place(guests[1]), streams.place(guests[2]):
            with pytest.raises(Refused, match="There are 3 event streams"), streams.place(guests[3]):
                pass
            with streams.place(OPERATOR):
                assert streams.open == 4

    asyncio.run(take())


@pytest.fixture
def _long_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for its end waits long, however busy the machine is."""
    monkeypatch.setattr("claudomator_py.api.server._GRACE_SECONDS", PATIENCE_S)


@pytest.mark.usefixtures("_long_grace")
def test_a_stop_ends_every_stream_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    prepared = PreparedService()
    run_id = prepared.add_run(prepared.add("it", Running()), stdout=b"one\n")
    ended: list[str] = []

    def read(path: str) -> None:
        with EventSource(daemon, path) as source:
            opened.release()
            for _ in source.messages():
                pass
            ended.append(path)

    paths = ["/v1/events", f"/v1/runs/{run_id}/log", f"/v1/runs/{run_id}/log?view=structured"]
    opened = threading.Semaphore(0)
    with running(prepared, tmp_path / "state") as daemon:
        readers = [threading.Thread(target=read, args=(path,)) for path in paths]
        for reader in readers:
            reader.start()
        for _ in paths:
            assert opened.acquire(timeout=PATIENCE_S)
    assert GRACE_IS_OVER not in caplog.text
    for reader in readers:
        reader.join(PATIENCE_S)
    assert sorted(ended) == sorted(paths)


def test_a_client_that_takes_nothing_is_dropped_and_one_that_is_slow_is_not(tmp_path: Path) -> None:
    dropped = threading.Event()

    class Impatient(Connection):
        patience_s = 1.5

        def connection_lost(self, exc: Exception | None) -> None:
            dropped.set()
            super().connection_lost(exc)

    prepared = PreparedService()
    prepared.happen("made", times=3_000, text="x" * 4_000)
    with running(prepared, tmp_path / "state", protocol=Impatient) as daemon:
        stuck, slow = (_raw(daemon, "/v1/events?after=0") for _ in range(2))
        with stuck, slow:
            taken = b""
            while not dropped.wait(0.02):
                taken += slow.recv(50_000)
            assert b'"id":3000,' not in taken, "both had everything before one could be dropped"
            while b'"id":3000,' not in taken:
                part = slow.recv(1 << 20)
                assert part, "who takes little was dropped"
                taken = taken[-20:] + part
            left = b""
            while part := stuck.recv(1 << 20):
                left += part
            assert b'"id":3000,' not in left


@pytest.mark.usefixtures("_long_grace")
def test_a_stop_does_not_wait_for_a_client_that_takes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    prepared = PreparedService()
    prepared.happen("made", times=3_000, text="x" * 4_000)
    with running(prepared, tmp_path / "state") as daemon:
        stuck = _raw(daemon, "/v1/events?after=0")
        assert stuck.recv(10)
        with EventSource(daemon, "/v1/events?after=0") as other:
            assert sum(1 for _ in islice(other.messages(), 3_000)) == 3_000
    assert GRACE_IS_OVER not in caplog.text
    stuck.close()


def _raw(daemon: Daemon, path: str) -> socket.socket:
    """A connection that has asked, and reads nothing."""
    host, port = daemon.address.split(":")
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    raw.settimeout(PATIENCE_S)
    raw.connect((host, int(port)))
    lines = (
        f"GET {path} HTTP/1.1",
        f"Host: {daemon.address}",
        f"Authorization: Bearer {daemon.token}",
        "Accept: text/event-stream",
    )
    raw.sendall("\r\n".join((*lines, "", "")).encode())
    return raw


def _status(daemon: Daemon, path: str) -> int:
    with EventSource(daemon, path) as source:
        return int(source.response.status)


def test_a_log_comes_as_text_and_ends_with_its_run(daemon: Daemon, prepared: PreparedService) -> None:
    run_id = prepared.add_run(prepared.add("it", Running()), stdout=b"\x1b[1mone\x1b[0m\n")
    with EventSource(daemon, f"/v1/runs/{run_id}/log") as source:
        messages = source.messages()
        first = next(messages)
        assert (first.id, first.kind) == ("12", "output")
        assert first.data == {"offset": 0, "next_offset": 12, "text": "one\n"}
        prepared.write(run_id, "zwö\n".encode())
        assert next(messages).data == {"offset": 12, "next_offset": 17, "text": "zwö\n"}
        prepared.end_run(run_id, SUCCESS)
        assert [(message.kind, message.data) for message in messages] == [
            ("end", {"next_offset": 17, "state": "ended", "status": "succeeded"})
        ]
    with EventSource(daemon, f"/v1/runs/{run_id}/log", {"Last-Event-ID": "12"}) as source:
        assert [message.kind for message in source.messages()] == ["output", "end"]
    done = daemon.ask(
        "GET", f"/v1/runs/{run_id}/log", headers={"Accept": "text/event-stream", "Last-Event-ID": source.last_id}
    )
    assert (done.status, done.body) == (204, b"")


def test_a_log_comes_as_entries(daemon: Daemon, prepared: PreparedService) -> None:
    line = b'{"type":"assistant","message":{"content":[{"type":"text","text":"hi"},{"type":"tool_use","name":"T"}]}}\n'
    run_id = prepared.add_run(prepared.add("it", Completed()), outcome=SUCCESS, stdout=line + b"words\n")
    path = f"/v1/runs/{run_id}/log?view=structured"
    with EventSource(daemon, path) as source:
        messages = list(source.messages())
    assert [(message.kind, message.data.get("kind"), message.data.get("text")) for message in messages] == [
        ("entry", "message", "hi"),
        ("entry", "tool_call", ""),
        ("entry", "text", "words"),
        ("end", None, None),
    ]
    with EventSource(daemon, path, {"Last-Event-ID": messages[0].id}) as source:
        assert list(source.messages()) == messages[1:]
    whole = daemon.ask("GET", path).json()
    assert (whole["items"], whole["ended"]) == ([message.data for message in messages[:3]], True)
    part = daemon.ask("GET", f"{path}&limit=1").json()
    rest = daemon.ask("GET", f"{path}&cursor={part['next_cursor']}").json()
    assert part["items"] + rest["items"] == whole["items"]


def test_a_log_as_text_in_pages(daemon: Daemon, prepared: PreparedService) -> None:
    prepared.world.secrets.add(("hunter22",))
    run_id = prepared.add_run(prepared.add("it", Running()), stdout=b"one hunter22\nand no e")
    page = daemon.ask("GET", f"/v1/runs/{run_id}/log?view=text").json()
    assert page == {
        "items": [{"offset": 0, "next_offset": 20, "text": "one [redacted]\nand no "}],
        "next_cursor": "20",
        "ended": False,
    }
    prepared.end_run(run_id, SUCCESS)
    rest = daemon.ask("GET", f"/v1/runs/{run_id}/log?view=text&cursor=20").json()
    assert (rest["items"][0]["text"], rest["ended"]) == ("e", True)
    assert b"hunter22" in daemon.ask("GET", f"/v1/runs/{run_id}/log").body  # the bytes are what they are


@pytest.mark.parametrize(
    ("query", "headers", "status"),
    [
        ("view=raw", {"Accept": "text/event-stream"}, 422),
        ("view=other", {}, 422),
        ("view=text&cursor=x", {}, 400),
        ("", {"Accept": "text/event-stream", "Last-Event-ID": "1.2.3"}, 400),
    ],
)
def test_odd_requests_for_a_log_are_refused(
    daemon: Daemon, prepared: PreparedService, query: str, headers: dict[str, str | None], status: int
) -> None:
    run_id = prepared.add_run(prepared.add("it", Running()), stdout=b"one\n")
    answer = daemon.ask("GET", f"/v1/runs/{run_id}/log?{query}", headers=headers)
    assert (answer.status, bool(answer.json()["remedy"])) == (status, True)
    missing = daemon.ask("GET", f"/v1/runs/missing/log?{query}", headers=headers)
    assert missing.status in (404, status)


def test_a_silent_stream_is_kept_alive(
    daemon: Daemon, prepared: PreparedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("resources.events.http", "resources.runs.http"):
        monkeypatch.setattr(f"claudomator_py.{module}.HEARTBEAT_S", 0.05)
    run_id = prepared.add_run(prepared.add("it", Running()))
    for path in ("/v1/events", f"/v1/runs/{run_id}/log"):
        with EventSource(daemon, path) as source:
            blocks = source.opened().blocks()
            assert [next(blocks), next(blocks)] == [[":"], [":"]]
