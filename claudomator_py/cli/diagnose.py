"""``diagnose``: the outcome that the daemon would read from the saved output of a run. Needs no daemon."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from claudomator_py.cli import ExitCode
from claudomator_py.cli.output import fail, fields, formatted, write
from claudomator_py.cli.times import moment
from claudomator_py.domain.errors import sentence
from claudomator_py.texts import plain

if TYPE_CHECKING:
    from claudomator_py.domain.outcome import Outcome
    from claudomator_py.domain.run import ExitRecord, Stream
    from claudomator_py.resources.runs import OutcomeView

_PIECE = 1 << 18


class Reader(Protocol):
    """Reads the output of one run."""

    def feed(self, stream: "Stream", data: bytes) -> None:
        """Take the next bytes of a stream."""

    def outcome(self, exit_record: "ExitRecord | None", now_ms: int) -> "Outcome":
        """Return the outcome; without an exit record only a complete terminal event counts."""


Readers = Callable[[], Mapping[str, Callable[[], Reader]]]
"""Returns the readers by kind of agent; called only when they are needed."""


def command(readers: Readers) -> Callable[..., None]:
    """Return the command, with this program's readers."""

    @formatted
    def diagnose(
        agent: Annotated[str, typer.Option(metavar="KIND", help="Kind of the agent that wrote the output.")],
        stdout: Annotated[Path | None, typer.Option(metavar="FILE", help="File with the agent's stdout.")] = None,
        stderr: Annotated[Path | None, typer.Option(metavar="FILE", help="File with the agent's stderr.")] = None,
        exit_code: Annotated[
            int | None, typer.Option(metavar="N", help="Exit code, negative for a signal. Default: the run was lost.")
        ] = None,
    ) -> None:
        """Print the outcome of an agent run that was saved to files."""
        from claudomator_py.domain.errors import suggestion
        from claudomator_py.domain.run import ExitRecord
        from claudomator_py.resources.runs import OutcomeView

        known = readers()
        if agent not in known:
            fail(f"Unknown kind of agent: {agent!r}.", sentence(suggestion(agent, known)), ExitCode.USAGE)
        reader = known[agent]()
        _feed(reader, "stdout", stdout)
        _feed(reader, "stderr", stderr)
        ended_ms = _last_written_ms(stdout, stderr)
        record = None
        if exit_code is not None:
            record = ExitRecord(exit_code=exit_code, ended_by=None, started_ms=ended_ms, ended_ms=ended_ms)
        view = OutcomeView.of(reader.outcome(record, ended_ms))
        write(view, lambda: _table(view))

    return diagnose


def _feed(reader: Reader, stream: "Stream", path: Path | None) -> None:
    if path is None:
        return
    try:
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                reader.feed(stream, piece)
    except OSError as error:
        fail(f"{path} cannot be read ({error.strerror}).", "Name a file that you can read.", ExitCode.USAGE)


def _last_written_ms(*paths: Path | None) -> int:
    """Return when the run ended, by its files: clock times in the output are relative to that."""
    written = [path.stat().st_mtime_ns for path in paths if path is not None and path.is_file()]
    return max(written, default=time.time_ns()) // 1_000_000


def _table(view: "OutcomeView") -> str:
    from claudomator_py.domain.outcome import REASON_POLICIES

    tokens = f"{view.tokens.input or 0} in, {view.tokens.output or 0} out" if view.tokens.output is not None else None
    rows = [
        ("status", view.status.value),
        ("reason", f"{view.reason}: {REASON_POLICIES[view.reason].meaning}" if view.reason else None),
        ("limit", view.limit),
        ("models", view.family),
        ("reset", f"{moment(view.reset_at)} ({view.provenance})" if view.reset_at else None),
        ("conversation", view.conversation_id),
        ("tokens", tokens),
        ("cost", f"${view.cost_usd:.4f}" if view.cost_usd is not None else None),
        ("detail", view.detail),
        ("text", view.text),
    ]
    return fields([(name, plain(value)) for name, value in rows if value])
