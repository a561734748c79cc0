"""The command line as a whole: its commands, and what becomes of errors."""

import sys
from typing import Annotated

import typer

from claudomator_py import __version__
from claudomator_py.cli import (
    agents,
    browser,
    changing,
    exits,
    init,
    logs,
    operate,
    output,
    schedule,
    show,
    status,
    submit,
    token,
)
from claudomator_py.cli.doctor.command import doctor
from claudomator_py.client.errors import ClientError, DaemonNotRunning, NotAuthorised


def _version(wanted: bool) -> None:
    if wanted:
        output.out(f"claudomator {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Dispatch tasks to coding agents, unattended; ask why, and get an answer.

    Exit codes: 0 ok, 1 failure, 2 usage, 3 daemon not running, 4 not authorised, 5 the awaited task failed,
    124 timed out.
    """
    del version


def build() -> typer.Typer:
    """The application with every command that talks to a daemon or to files."""
    app = typer.Typer(
        name="claudomator",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        callback=_root,
    )
    commands = (
        submit.submit,
        status.status,
        show.show,
        show.result,
        logs.logs,
        logs.log,
        show.why,
        changing.cancel,
        changing.restart,
        changing.answer,
        changing.approve,
        changing.reject,
        agents.agents,
        agents.hold,
        agents.release,
        operate.drain,
        operate.undrain,
        operate.notifications,
        operate.backup,
        operate.cleanup,
        init.init,
        doctor,
    )
    for command in commands:
        app.command()(command)
    app.command("open")(browser.open_page)
    app.add_typer(schedule.group(), name="schedule", help="Recurring tasks: list, preview, pause, run, end.")
    app.add_typer(token.group(), name="token", help="API tokens: create, list, revoke.")
    app.add_typer(browser.sessions_group(), name="sessions", help="Browser sessions: list, log out.")
    return app


def run(app: typer.Typer) -> None:
    """Run the command that the arguments name, and exit with its code."""
    try:
        app()
    except ClientError as error:
        output.error(error.detail, error.remedy)
        for problem in getattr(getattr(error, "details", None), "problems", ()):
            output.note(f"  {problem}")
        sys.exit(_code(error))


def _code(error: ClientError) -> int:
    match error:
        case DaemonNotRunning():
            return exits.NOT_RUNNING
        case NotAuthorised():
            return exits.NOT_AUTHORISED
        case _:
            return exits.FAILURE
