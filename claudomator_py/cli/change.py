"""``cancel`` and ``restart``: the two ways to change a task's course."""

from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli.connect import connected
from claudomator_py.cli.output import Format, FormatOption, out, out_json
from claudomator_py.cli.show import TaskArgument
from claudomator_py.cli.status import tasks_table
from claudomator_py.core.agent import Tier
from claudomator_py.core.budget import Budget
from claudomator_py.core.views import RestartRequest, TaskView

if TYPE_CHECKING:
    from claudomator_py.client.http import Client


@connected
def cancel(client: "Client", task: TaskArgument, output: FormatOption = Format.TABLE) -> None:
    """Cancel a task. A running one ends a little later."""
    _write(client.cancel(task), output)


@connected
def restart(
    client: "Client",
    task: TaskArgument,
    agent: Annotated[str | None, typer.Option(help="Run it on this agent.")] = None,
    tier: Annotated[Tier | None, typer.Option(help="How strong a model.")] = None,
    model: Annotated[str | None, typer.Option(help="This model of the agent.")] = None,
    budget_usd: Annotated[float | None, typer.Option(min=0.000001, help="US dollars it may use in all.")] = None,
    budget_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens it may use in all.")] = None,
    budget_runs: Annotated[int | None, typer.Option(min=1, help="Runs it may have in all.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Cancel the run that it has, if any.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on in its last conversation, on the agent that has it.")
    ] = False,
    reason: Annotated[str | None, typer.Option(help="Why; kept with the task, and told with --resume.")] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Run a task again.

    Who, where and how strong are decided anew, except for what the task or an option pins. The conversation is a fresh
    one, unless --resume is given.
    """
    budget = Budget(usd=budget_usd, tokens=budget_tokens, runs=budget_runs)
    request = RestartRequest(
        agent=agent,
        tier=tier,
        model=model,
        budget=budget if budget.units else None,
        force=force,
        resume=resume,
        reason=reason,
    )
    _write(client.restart(task, request), output)


def _write(task: TaskView, output: Format) -> None:
    if output is Format.JSON:
        out_json(task)
    else:
        out(tasks_table([task], wide=output is Format.WIDE))
