"""A command that only looks says the same with and without the libraries, and takes them where it has to."""

import json
import subprocess
import sys
from enum import StrEnum
from typing import Annotated, Any, Generic, Literal, TypeVar

import pytest

from claudomator_py.cli import stand_ins
from claudomator_py.cli.plainly import LOOKS
from claudomator_py.cli.stand_ins import After, Before, Beyond, Marker, Model, Wrap, read
from claudomator_py.domain.errors import Problem
from claudomator_py.domain.lifecycle import (
    Cancelled,
    Completed,
    Failed,
    InputKind,
    NeedsInput,
    Phase,
    Running,
    Waiting,
    WaitReason,
)
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason
from claudomator_py.domain.units import HOUR_MS
from tests.cells import cells
from tests.fakes.command import Command
from tests.fakes.prepared import START_MS, PreparedService

_LIBRARIES = {"pydantic", "httpx", "typer", "rich"}
_ENDED = """
import atexit, json, sys
atexit.register(lambda: sys.stderr.write("\\n" + json.dumps([name for name in sys.modules if "." not in name])))
sys.argv[0] = "claudomator"
from claudomator_py.__main__ import main
main()
"""


def _full(prepared: PreparedService) -> None:
    """Has something of all that commands tell apart."""
    done = prepared.add("done", Completed(), tags=("a", "b"))
    prepared.add("gone", Cancelled())
    prepared.add("broken", Failed(Reason.TIMEOUT), agent_name="claude")
    prepared.add("asks", NeedsInput(InputKind.QUESTION))
    prepared.add("works", Running(Phase.CHECKING), agent_name="claude")
    prepared.add("later", Waiting(WaitReason.BACKOFF, START_MS + HOUR_MS))
    prepared.add("next", depends_on=("works",))
    prepared.add_run(done, outcome=Outcome(status=OutcomeStatus.SUCCEEDED, text="Done."))
    prepared.add_agent("claude")
    prepared.add_agent("codex", problem="it is not logged in")
    prepared.limit("claude", until_ms=START_MS + HOUR_MS)
    prepared.refuse_file("tasks/中.yaml", Problem(line=3, message="is wrong"), Problem(line=4, message="is odd"))


def _told(command: Command, *arguments: str, **environ: str) -> tuple[int, str, str, set[str]]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _ENDED, *arguments],
        cwd=command.home,
        env=command.variables(environ),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    text, _, modules = done.stderr.rpartition("\n")
    return done.returncode, done.stdout, text, set(json.loads(modules))


@pytest.mark.parametrize(
    "arguments",
    cells(
        [
            *(("status",), ("status", "-o", "wide"), ("list",), ("list", "--output", "wide"), ("log",)),
            *(("show", "later"), ("why", "next")),
        ],
        [
            *(("show", task) for task in ("done", "next", "works", "broken")),
            *(("why", task) for task in ("done", "later", "works", "broken")),
        ],
    ),
    ids=" ".join,
)
def test_it_says_the_same_without_the_libraries(
    command: Command, prepared: PreparedService, arguments: tuple[str, ...]
) -> None:
    _full(prepared)
    whole = command(*arguments)
    code, out, text, modules = _told(command, *arguments)
    assert (code, out, text) == (whole.returncode, whole.stdout, whole.stderr)
    assert out
    assert modules & _LIBRARIES == set()


@pytest.mark.parametrize(
    "arguments",
    cells(
        [("status", "-o", "json"), ("list", "-n", "1"), ("show", "missing"), ("why", "--help"), ("list", "x")],
        [
            *(("status", "--state", "failed"), ("status", "--output=wide"), ("show",), ("status", "-o", "yaml")),
            ("log", "done"),
        ],
    ),
    ids=" ".join,
)
def test_what_is_not_plain_takes_the_whole_command(
    command: Command, prepared: PreparedService, arguments: tuple[str, ...]
) -> None:
    _full(prepared)
    whole = command(*arguments)
    code, out, text, modules = _told(command, *arguments)
    assert (code, out, text) == (whole.returncode, whole.stdout, whole.stderr)
    assert "typer" in modules


def test_over_tcp_the_whole_command_asks_at_once(command: Command, prepared: PreparedService, daemon_url: str) -> None:
    _full(prepared)
    code, out, _, modules = _told(command, "status", CLAUDOMATOR_URL=daemon_url)
    assert (code, out) == (0, command("status").stdout)
    assert {"typer", "httpx"} <= modules


def test_where_no_daemon_runs_the_whole_command_says_so(offline: Command) -> None:
    code, out, text, _ = _told(offline, "status")
    assert (code, out) == (3, "")
    assert "claudomator serve" in text


def test_a_broken_configuration_is_warned_of_before_the_answer(command: Command, prepared: PreparedService) -> None:
    _full(prepared)
    (command.home / "claudomator.yaml").write_text((command.home / "claudomator.yaml").read_text() + "no_such_key: 1\n")
    whole = command("list")
    assert _told(command, "list")[:3] == (whole.returncode, whole.stdout, whole.stderr)


def test_the_version_takes_next_to_nothing(offline: Command) -> None:
    code, out, _, modules = _told(offline, "--version")
    assert (code, out.partition(" ")[0]) == (0, "claudomator")
    assert modules & {*_LIBRARIES, "yaml", "asyncio", "dataclasses", "inspect", "socket"} == set()


def test_each_of_them_is_a_command_that_needs_nothing_more() -> None:
    from importlib import import_module
    from inspect import Parameter, signature

    for module, function, needed in LOOKS.values():
        taken = signature(getattr(import_module(f"claudomator_py.resources.{module}"), function)).parameters
        assert {name for name, entry in taken.items() if entry.default is Parameter.empty} == set(needed)
        assert {"config", "state_dir", "output"} <= set(taken)


class Colour(StrEnum):
    """Has one that is known."""

    RED = "red"


T = TypeVar("T")


class Part(Model):
    """Has a default, and one that is made."""

    name: str
    size: float = 1.0
    tags: tuple[str, ...] = Marker(default_factory=tuple)  # type: ignore[assignment]

    @property
    def title(self) -> str:
        """Its name, for a heading."""
        return self.name.upper()


class Many(Model, Generic[T]):
    """Holds some."""

    items: tuple[T, ...]
    by_name: dict[str, T] = Marker({})  # type: ignore[assignment]
    inner: Part | None = None


def _known(value: Any, handler: Any) -> Any:
    try:
        return handler(value)
    except ValueError:
        return None


@pytest.mark.parametrize(
    ("hint", "text", "value"),
    [
        (str, "a", "a"),
        (float, 1, 1.0),
        (str | None, None, None),
        (int | None, 3, 3),
        (str | int, 3, 3),
        (Literal["a", "b"], "b", "b"),
        (Colour, "red", Colour.RED),
        (list[Colour], ["red"], [Colour.RED]),
        (dict[Colour, int], {"red": 1}, {Colour.RED: 1}),
        (Annotated[int, Before(lambda entry: int(entry) + 1), After(lambda entry: entry * 2)], "4", 10),
        (Annotated[Colour | None, Wrap(_known)], "blue", None),
        (Annotated[str, Marker(max_length=3)], "abc", "abc"),
        (Any, {"a": 1}, {"a": 1}),
    ],
)
def test_a_hint_is_read_as_it_says(hint: Any, text: Any, value: Any) -> None:
    assert read(hint, text, __name__, {}) == value


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        *((str, 1), (int, True), (int, "1"), (str, None), (Literal["a"], "b"), (tuple[int, ...], "ab"), (Part, [])),
        *((Part | Many, {}), (tuple[int, str], [1, "a"]), (Problem, {}), (dict[str, int], [])),
    ],
)
def test_what_is_not_as_it_says_is_beyond_it(hint: Any, text: Any) -> None:
    with pytest.raises(Beyond):
        read(hint, text, __name__, {})


def test_a_model_is_read_field_by_field() -> None:
    fields = {"items": [{"name": "a", "size": 2}], "by_name": {"b": {"name": "b"}}, "newer": 1, "inner": {"name": "c"}}
    many: Any = Many[Part].model_validate(fields)
    assert (many.items[0].size, many.items[0].title, many.by_name["b"].tags, many.inner.name) == (2.0, "A", (), "c")
    assert many.items[0] == Part.model_validate({"name": "a", "size": 2.0}) != Part(name="a")
    assert len({many.items[0], many.items[0], many.inner}) == 2
    lacking: Any = Part.model_validate({})
    with pytest.raises(Beyond):
        _ = lacking.name
    with pytest.raises(AttributeError):
        _ = lacking.other
    with pytest.raises(Beyond):
        Part(other=1)


def test_only_a_process_without_the_libraries_has_stand_ins() -> None:
    with pytest.raises(Beyond), stand_ins.standing_in():
        pass
    assert sys.modules["pydantic"].__file__


def test_an_answer_that_is_cut_or_in_parts_is_beyond_it() -> None:
    stand_ins.Response(b"HTTP/1.1 200 OK\r\nContent-Length: 2", b"{}")
    for head, content in (
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3", b"{}"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", b"2\r\n{}\r\n0\r\n\r\n"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 2", b"{}"),
    ):
        with pytest.raises(Beyond):
            stand_ins.Response(head, content)
