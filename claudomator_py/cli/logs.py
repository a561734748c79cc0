"""``logs``: what a run wrote, and what it goes on to write."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli.connect import connected
from claudomator_py.cli.output import fail, note, out_bytes, out_part
from claudomator_py.cli.plain import PlainText
from claudomator_py.client.errors import ServiceProblem
from claudomator_py.core.run import Stream
from claudomator_py.core.views import RunView

if TYPE_CHECKING:
    from claudomator_py.client.http import Client

_PAUSE_S = 0.3


@connected
def logs(
    client: "Client",
    task: Annotated[str, typer.Argument(metavar="TASK|RUN", help="A task, which means its last run; or a run's id.")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run ends.")] = False,
    stderr: Annotated[bool, typer.Option("--stderr", help="What it wrote to stderr.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="Every byte as it is, terminal codes included.")] = False,
) -> None:
    """Print what a run wrote."""
    run = _find_run(client, task, follow=follow)
    stream: Stream = "stderr" if stderr else "stdout"
    cleaner = PlainText()
    offset = 0
    while True:
        chunk = client.log(run.id, stream, offset)
        offset = chunk.next_offset
        done = chunk.ended or (not follow and not chunk.data)
        if raw:
            out_bytes(chunk.data)
        else:
            out_part(cleaner.feed(chunk.data, final=done))
        if done:
            return
        if not chunk.data:
            time.sleep(_PAUSE_S)


def _find_run(client: "Client", ref: str, *, follow: bool) -> RunView:
    """The run of that id, else the task's last; waits for its first one when following."""
    try:
        task = client.task(ref)
    except ServiceProblem as problem:
        if problem.code != "not_found":
            raise
        try:
            return client.run(ref)
        except ServiceProblem:
            raise problem from None
    told = False
    while not (runs := client.runs(task.id)):
        if not follow or not {"cancel"} & set(client.task(task.id).available_actions):
            fail(f"{task.name} has not run.", f"See `claudomator why {task.name}`.")
        if not told:
            note(f"{task.name} has not run yet; waiting for its start.")
            told = True
        time.sleep(_PAUSE_S)
    return runs[-1]
