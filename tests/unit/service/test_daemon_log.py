"""The daemon's log: for people, for programs and for the journal, whoever logs."""

import io
import json
import logging
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.domain.redaction import Redactor
from claudomator_py.domain.units import format_instant
from claudomator_py.log import clean_with, get_logger, is_journal, set_up
from claudomator_py.schema.settings import Log, LogFormat, LogLevel

TEXT = Log(format=LogFormat.TEXT)
JSON = Log(format=LogFormat.JSON, level=LogLevel.DEBUG)


@pytest.fixture(autouse=True)
def _root_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


def test_text_for_people(stream: io.StringIO) -> None:
    set_up(TEXT, stream=stream, environ={})
    get_logger("claudomator.start").bind(task="fix-login").info(
        "run_started", attempt=1, model=None, note="all is well"
    )
    logging.getLogger("some.library").warning("it said %s", "so")
    name, other = stream.getvalue().splitlines()
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO    claudomator\.start: "
        r'run_started task=fix-login attempt=1 note="all is well"',
        name,
    )
    assert other.endswith("Z WARNING some.library: it said so")


@pytest.mark.parametrize("form", LogFormat)
def test_an_exception_that_is_expected_leaves_its_message(form: LogFormat, stream: io.StringIO) -> None:
    """As ``exc_info=failures == 0`` says from the second time on."""
    set_up(Log(format=form), stream=stream, environ={})
    logging.getLogger("claudomator.inbox").warning("again in %d s", 4, exc_info=False)
    get_logger("claudomator.inbox").warning("failed_again", exc_info=False)
    first, second = stream.getvalue().splitlines()
    assert ("again in 4 s" in first, "failed_again" in second) == (True, True)


def test_json_for_programs(stream: io.StringIO) -> None:
    set_up(JSON, stream=stream, environ={})
    get_logger("claudomator.start").debug("run_started", task="x", task_id="1", run_id="2", agent="a", reason=None)
    logging.getLogger("some.library").error("it said\n%s", "so")
    entry, other = (json.loads(line) for line in stream.getvalue().splitlines())
    assert list(entry) == ["ts", "level", "logger", "event", "task", "task_id", "run_id", "agent", "reason"]
    assert (entry["level"], entry["logger"], entry["event"], entry["task"]) == (
        "debug",
        "claudomator.start",
        "run_started",
        "x",
    )
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry["ts"])
    assert (other["level"], other["logger"], other["event"]) == ("error", "some.library", "it said\nso")


def test_times_of_lines_take_no_place_in_a_cache(stream: io.StringIO) -> None:
    """No time comes again: they would drive out those that pages and lists show."""
    set_up(TEXT, stream=stream, environ={})
    kept = format_instant.cache_info().currsize
    for _ in range(20):
        get_logger("claudomator.start").info("run_started")
        time.sleep(0.001)
    assert format_instant.cache_info().currsize == kept


def test_a_message_has_its_arguments_and_its_fields(stream: io.StringIO) -> None:
    set_up(TEXT, stream=stream, environ={})
    get_logger("claudomator.reload").bind(task="a").warning("no record: %s", "the disk is full", task_id="1")
    assert stream.getvalue().endswith("no record: the disk is full task=a task_id=1\n")


@pytest.mark.parametrize("form", list(LogFormat))
def test_a_traceback_is_told(stream: io.StringIO, form: LogFormat) -> None:
    set_up(Log(format=form), stream=stream, environ={})
    try:
        raise OSError("no such thing")
    except OSError:
        get_logger("claudomator.tick").exception("tick_failed", task_id="1")
        logging.getLogger("some.library").exception("that, too")
    assert stream.getvalue().count("OSError: no such thing") == 2
    assert stream.getvalue().count("Traceback") == 2
    if form is LogFormat.JSON:
        assert all("Traceback" in json.loads(line)["exception"] for line in stream.getvalue().splitlines())


def test_what_agents_say_cannot_forge_lines_or_reach_the_terminal(stream: io.StringIO) -> None:
    set_up(TEXT, stream=stream, environ={})
    get_logger("claudomator.collect").info("run_ended", detail='x"\nERROR forged\x1b[2J\x9b1m')
    logging.getLogger("claudomator.inbox").info("a file\nERROR forged\x1b]0;title\x07")
    assert len(stream.getvalue().splitlines()) == 2
    assert not re.search("[\x1b\x9b\x07]", stream.getvalue())


def test_the_level_is_the_configured_one(stream: io.StringIO) -> None:
    set_up(Log(level=LogLevel.WARNING), stream=stream, environ={})
    get_logger("claudomator.start").info("run_started")
    logging.getLogger("httpx").warning("heard")
    set_up(Log(level=LogLevel.DEBUG), stream=stream, environ={})
    logging.getLogger("httpx").info("not heard")
    get_logger("claudomator.start").debug("heard_once")
    assert [line.split(": ")[1] for line in stream.getvalue().splitlines()] == ["heard", "heard_once"]


def test_what_must_not_be_said_is_taken_out_of_everything(stream: io.StringIO) -> None:
    set_up(JSON, stream=stream, environ={})
    key = "sk-" + "a1B2" * 8
    get_logger("claudomator").info("failed", detail=f"key {key}")
    clean_with(Redactor(["hunter2hunter2"]).redact)
    get_logger("claudomator").info("failed", detail=key, other={"nested": "hunter2hunter2"})
    logging.getLogger("some.library").info("it said %s", "hunter2hunter2")
    assert "hunter2" not in stream.getvalue()
    assert key not in stream.getvalue()


def journal_variable(path: Path) -> dict[str, str]:
    stat = path.stat()
    return {"JOURNAL_STREAM": f"{stat.st_dev}:{stat.st_ino}"}


def test_the_journal_gets_priorities_and_keeps_the_time_itself(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with path.open("w") as stream:
        set_up(TEXT, stream=stream, environ=journal_variable(path))
        get_logger("claudomator").info("listening", url="http://127.0.0.1:1")
        get_logger("claudomator").warning("agent_held")
        try:
            raise ValueError
        except ValueError:
            get_logger("claudomator").exception("tick_failed")
    lines = path.read_text().splitlines()
    assert lines[0] == "<6>INFO    claudomator: listening url=http://127.0.0.1:1"
    assert lines[1] == "<4>WARNING claudomator: agent_held"
    assert all(line.startswith("<3>") for line in lines[2:])
    assert lines[-1] == "<3>ValueError"


def test_a_stream_is_the_journal_only_if_it_is_that_very_one(tmp_path: Path) -> None:
    path, other = tmp_path / "one", tmp_path / "other"
    other.touch()
    with path.open("w") as stream:
        assert is_journal(stream, journal_variable(path))
        assert not is_journal(stream, journal_variable(other))
        assert not is_journal(stream, {})
        assert not is_journal(stream, {"JOURNAL_STREAM": "nonsense"})
    assert not is_journal(io.StringIO(), dict(os.environ))
