"""``cancel`` and ``restart``: the two ways to change a task's course, or that of several."""

from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli.bulk import (
    DryRunOption,
    OnOption,
    StateOption,
    TagOption,
    TasksArgument,
    YesOption,
    agreed,
    chosen,
    do_to_each,
)
from claudomator_py.cli.connect import connected
from claudomator_py.cli.output import Format, FormatOption, out, out_json
from claudomator_py.cli.status import tasks_table
from claudomator_py.domain.agent import Tier
from claudomator_py.domain.budget import LEAST_USD, Budget
from claudomator_py.domain.views import RestartRequest, TaskFilter, TaskView

if TYPE_CHECKING:
    from claudomator_py.client.http import Client


@connected
def cancel(
    client: "Client",
    tasks: TasksArgument = None,
    state: StateOption = None,
    tag: TagOption = None,
    on: OnOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Cancel tasks. A running one ends a little later.

    With --state, --tag or --on, all are cancelled that match and have not ended.
    """
    wanted = TaskFilter(state=state, tag=tag, agent=on)
    if tasks is not None and len(tasks) == 1 and wanted == TaskFilter() and not dry_run:
        _write(client.cancel(tasks[0]), output)
        return
    found = chosen(client, tasks or (), wanted, ("cancel",))
    if agreed(found, "cancel", dry_run=dry_run, yes=yes, output=output):
        do_to_each(
            client,
            found,
            lambda seen, key: client.cancel(seen.id, if_version=seen.version, idempotency_key=key),
            output,
        )


@connected
def restart(
    client: "Client",
    tasks: TasksArgument = None,
    state: StateOption = None,
    tag: TagOption = None,
    on: OnOption = None,
    agent: Annotated[str | None, typer.Option(help="Run it on this agent.")] = None,
    tier: Annotated[Tier | None, typer.Option(help="How strong a model.")] = None,
    model: Annotated[str | None, typer.Option(help="This model of the agent.")] = None,
    budget_usd: Annotated[float | None, typer.Option(min=LEAST_USD, help="US dollars it may use in all.")] = None,
    budget_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens it may use in all.")] = None,
    budget_runs: Annotated[int | None, typer.Option(min=1, help="Runs it may have in all.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Cancel the run that it has, if any.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on in its last conversation, on the agent that has it.")
    ] = False,
    reason: Annotated[str | None, typer.Option(help="Why; kept with the task, and told with --resume.")] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Run tasks again.

    Who, where and how strong are decided anew, except for what the task or an option pins. The conversation is a fresh
    one, unless --resume is given. With --state, --tag or --on, all are restarted that match and can be.
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
    wanted = TaskFilter(state=state, tag=tag, agent=on)
    if tasks is not None and len(tasks) == 1 and wanted == TaskFilter() and not dry_run:
        _write(client.restart(tasks[0], request), output)
        return
    found = chosen(client, tasks or (), wanted, ("restart", "restart_force") if force else ("restart",))
    if agreed(found, "restart", dry_run=dry_run, yes=yes, output=output):
        do_to_each(
            client,
            found,
            lambda seen, key: client.restart(seen.id, request, if_version=seen.version, idempotency_key=key),
            output,
        )


def _write(task: TaskView, output: Format) -> None:
    if output is Format.JSON:
        out_json(task)
    else:
        out(tasks_table([task], wide=output is Format.WIDE))
