"""``answer``, ``approve`` and ``reject``: what a person says to a task that needs input."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli.connect import connected
from claudomator_py.cli.output import Format, FormatOption, out, out_json
from claudomator_py.cli.show import TaskArgument
from claudomator_py.cli.status import tasks_table
from claudomator_py.domain.views import AnswerRequest, ApproveRequest, RejectRequest, TaskView
from claudomator_py.schema.validation import validate

if TYPE_CHECKING:
    from claudomator_py.client.http import Client


@connected
def answer(
    client: "Client",
    task: TaskArgument,
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="The answer, in quotes.")] = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Read the answer from there; - is standard input.")
    ] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Answer what a task's agent asks.

    It goes on with that in the conversation in which it asked, and no attempt is used up. An agent that asks to use a
    tool is told to do without.
    """
    if (text is None) == (file is None):
        raise typer.BadParameter("give the answer as TEXT, or name a file with --file")
    request = validate(AnswerRequest, {"text": _read(file) if text is None and file is not None else text}, {})
    if not isinstance(request, AnswerRequest):
        raise typer.BadParameter("; ".join(problem.render() for problem in request))
    _write(client.answer(task, request), output)


@connected
def approve(
    client: "Client",
    task: TaskArgument,
    tool: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE", help="Allow this instead of what was denied, as the agent names it; repeatable."),
    ] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Allow what a task asks for: its first run, or a tool.

    It holds for this content of the task, until that is restarted.
    """
    _write(client.approve(task, ApproveRequest(tools=tuple(tool or ()))), output)


@connected
def reject(
    client: "Client",
    task: TaskArgument,
    reason: Annotated[str | None, typer.Argument(metavar="REASON", help="Why; kept with the task.")] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """End a task that asks: it fails, and what depends on it."""
    _write(client.reject(task, RejectRequest(reason=reason)), output)


def _read(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{file} cannot be read: {error}") from error


def _write(task: TaskView, output: Format) -> None:
    if output is Format.JSON:
        out_json(task)
    else:
        out(tasks_table([task], wide=output is Format.WIDE))
