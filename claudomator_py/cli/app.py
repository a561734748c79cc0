"""The whole command line: its commands, and the messages and exit codes of errors."""

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from functools import partial
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from claudomator_py import __version__
from claudomator_py.cli import ExitCode
from claudomator_py.client import ClientError, DaemonNotRunning, NotAuthorised, ServiceProblem
from claudomator_py.imports import bulk_import
from claudomator_py.values import dataclass, toml_data


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """A command or a group of commands, of which only name and summary are known until it is used."""

    summary: str
    load: Callable[[], Callable[..., None] | typer.Typer]
    """Returns the command's function, or the group's application."""


def _function(path: str) -> Callable[[], Callable[..., None]]:
    """Return a loader of the function ``module:name`` below ``cli``."""
    return lambda: _imported(path)


def _resource(name: str, commands: str = "COMMANDS") -> Callable[[], typer.Typer]:
    """Return a loader of the group of a resource's commands."""
    return lambda: group_of(_imported(f"{name}.cli:{commands}", "resources"))


def group_of(commands: Mapping[str, Callable[..., None]]) -> typer.Typer:
    """Return a group of commands, by name."""
    app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    for name, command in commands.items():
        app.command(name)(command)
    return app


def _command(resource: str, name: str, module: str = "cli") -> Callable[[], Callable[..., None]]:
    """Return a loader of one command of a resource."""
    return lambda: _imported(f"{resource}.{module}:{name}", "resources")


def _imported(path: str, package: str = "cli") -> Any:
    module, _, name = path.partition(":")
    with bulk_import():
        return getattr(importlib.import_module(f"claudomator_py.{package}.{module}"), name)


COMMANDS: Mapping[str, LazyCommand] = {
    "submit": LazyCommand("Submit the tasks in files.", _command("tasks", "submit", "cli_submit")),
    "add": LazyCommand("Submit a task without a file.", _command("tasks", "add", "cli_submit")),
    "wait": LazyCommand(
        "Wait for tasks to end; exit with 5 unless all completed.", _command("tasks", "wait", "cli_submit")
    ),
    "list": LazyCommand("List tasks, newest first, one line each.", _command("tasks", "tasks")),
    "status": LazyCommand("Show everything at a glance.", _command("overview", "status")),
    "show": LazyCommand("Show one task and its runs.", _command("tasks", "show", "cli_show")),
    "result": LazyCommand(
        "Print the result of a task. Exits with 1 unless it completed.", _command("tasks", "result", "cli_show")
    ),
    "logs": LazyCommand("Print the output of a run.", _command("runs", "logs")),
    "log": LazyCommand("Show what happened, newest last, and who did it.", _command("events", "log")),
    "inbox": LazyCommand("List refused files of the inbox, with all their problems.", _command("overview", "inbox")),
    "report": LazyCommand("Show what happened overnight, and what is left.", _command("report", "report")),
    "diff": LazyCommand(
        "Show what a task's runs changed.",
        _command("branches", "diff"),
    ),
    "branches": LazyCommand("List the unmerged branches of tasks.", _command("branches", "branches")),
    "merge": LazyCommand("Merge the branches of tasks.", _command("branches", "merge")),
    "pr": LazyCommand("Open a pull request from a task's branch, with `gh`.", _command("branches", "pr")),
    "discard": LazyCommand("Remove the work tree and the branch of a task.", _command("branches", "discard")),
    "why": LazyCommand("Explain why a task is where it is.", _command("tasks", "why", "cli_show")),
    "cancel": LazyCommand(
        "Cancel tasks. A running one ends a little later.", _command("tasks", "cancel", "cli_change")
    ),
    "edit": LazyCommand("Edit a waiting task.", _command("tasks", "edit", "cli_change")),
    "restart": LazyCommand("Run tasks again.", _command("tasks", "restart", "cli_change")),
    "answer": LazyCommand("Answer the question of a task's agent.", _command("tasks", "answer", "cli_change")),
    "approve": LazyCommand(
        "Allow what a task asks for: its first run, or a tool.", _command("tasks", "approve", "cli_change")
    ),
    "reject": LazyCommand(
        "Reject a task that needs input. It fails, and so do the tasks that depend on it.",
        _command("tasks", "reject", "cli_change"),
    ),
    "agents": LazyCommand("List the agents.", _command("agents", "agents")),
    "hosts": LazyCommand("Show where runs take place.", _command("daemon", "hosts")),
    "hold": LazyCommand("Start no tasks on an agent. Running ones continue.", _command("agents", "hold")),
    "release": LazyCommand(
        "End the holds of agents, and of their accounts. Tasks start on them again.", _command("agents", "release")
    ),
    "search": LazyCommand("Search specialists, by meaning and by words.", _command("specialists", "search")),
    "route": LazyCommand("Show who would do a task, and why.", _command("routing", "route")),
    "drain": LazyCommand("Stop starting tasks; running ones finish.", _command("daemon", "drain")),
    "undrain": LazyCommand("Start tasks again after `drain`.", _command("daemon", "undrain")),
    "notifications": LazyCommand("List notifications and their delivery.", _command("notifications", "notifications")),
    "backup": LazyCommand("Copy the database to a file.", _command("daemon", "backup")),
    "cleanup": LazyCommand("Remove what ended tasks no longer need.", _command("daemon", "cleanup")),
    "init": LazyCommand("Write a configuration and a first task, or a service.", _function("init:init")),
    "doctor": LazyCommand("Check the set-up, and say what to fix.", _function("doctor.command:doctor")),
    "open": LazyCommand("Print a link that logs a browser in.", _command("access", "open_page")),
}
"""The commands that need only a daemon or files."""

GROUPS: Mapping[str, LazyCommand] = {
    "schedule": LazyCommand("Recurring tasks: list, preview, pause, run, delete.", _resource("schedules")),
    "specialists": LazyCommand("Specialists: list, show, add, edit, grant, import, export.", _resource("specialists")),
    "channel": LazyCommand("Channels: create, list, show, post, read, settings, delete.", _resource("channels")),
    "decisions": LazyCommand("Decisions: list, show, export as JSON lines.", _resource("decisions")),
    "routing": LazyCommand("Routing: stats, learned, labels, reset, freeze.", _resource("routing")),
    "token": LazyCommand("API tokens: create, list, revoke.", _resource("access", "TOKEN_COMMANDS")),
    "sessions": LazyCommand("Browser sessions: list, end.", _resource("access", "SESSION_COMMANDS")),
}


SECTIONS: Mapping[str, Sequence[str]] = {
    "Hand over": ("add", "submit", "wait", "validate", "schedule"),
    "Look": ("status", "list", "show", "why", "result", "logs", "log", "inbox", "report"),
    "Judge": ("diff", "branches", "merge", "pr", "discard"),
    "Decide": ("answer", "approve", "reject", "edit", "cancel", "restart"),
    "Agents and limits": ("agents", "hosts", "hold", "release", "drain", "undrain"),
    "Who does what": ("route", "search", "specialists", "routing", "channel", "policy", "decisions"),
    "Set up and look after": (
        *("init", "serve", "doctor", "open", "token", "sessions", "notifications", "backup", "cleanup", "mcp"),
    ),
    "Measure": ("replay", "eval", "calibrate", "diagnose"),
}
"""The commands in the sections of ``--help``."""


class _Commands(MutableMapping[str, Any]):
    """The commands for Typer, each created on first use, so that only its own modules are imported."""

    def __init__(self, commands: Mapping[str, LazyCommand]) -> None:
        self._commands = commands
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _made(name, self._commands[name])
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._commands

    def __iter__(self) -> Iterator[str]:
        return iter(self._commands)

    def __len__(self) -> int:
        return len(self._commands)

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        raise TypeError("commands stay")


def _made(name: str, command: LazyCommand) -> Any:
    loaded = command.load()
    app = _typer()
    app.callback()(lambda: None)  # with a callback, Typer makes even a single command a group, to take it from
    if isinstance(loaded, typer.Typer):
        app.add_typer(loaded, name=name, help=command.summary)
    else:
        app.command(name)(loaded)
    made: Any = typer.main.get_group(app).commands[name]
    _speak_plainly(made)
    return made


_VALUES = {"str": "TEXT", "int": "N", "int range": "N", "float": "N", "float range": "N", "Path": "FILE"}
"""What the help calls a value, by the name of its type in Python."""


def _speak_plainly(command: Any) -> None:
    """Have the help of the command name values as people do, and its numbers refuse other input in plain words."""
    for below in getattr(command, "commands", {}).values():
        _speak_plainly(below)
    for parameter in command.params:
        if hasattr(parameter, "display_type"):  # Typer versions based on click have such names
            parameter.display_type = partial(_value_name, parameter, parameter.display_type)
        if (whole := _takes_whole_number(parameter)) is not None:
            parameter.process_value = partial(_number, parameter, parameter.process_value, whole)


def _value_name(parameter: Any, display: Callable[[Any], str], ctx: Any) -> str:
    """Return what the help calls the value. An argument has a name of its own, and only choices add to it."""
    kind = display(ctx).strip("<>").removeprefix("list[").removesuffix("]")
    if "|" not in kind and parameter.param_type_name == "argument":
        return ""
    return _VALUES.get(kind, f"<{kind}>")


def _takes_whole_number(parameter: Any) -> bool | None:
    """Return None for a parameter that is not a number, or that has its own parser."""
    if (described := getattr(parameter, "type_descriptor", None)) is None:  # Typer versions based on click
        kind = parameter.type.name.partition(" ")[0]
        return {"integer": True, "float": False}.get(kind)
    own = described.parameter_info.parser is not None
    return None if own else {int: True, float: False}.get(described.annotation)


def _number(parameter: Any, process: Callable[[Any, Any], Any], whole: bool, ctx: Any, value: Any) -> Any:
    from claudomator_py.domain.units import number_fault  # late, as it imports pydantic, which `--help` does not need

    fault = number_fault(value, whole=whole) if isinstance(value, str) else None
    if fault is not None:
        message, remedy = fault
        raise typer.BadParameter(f"it {message}; {remedy}", ctx=ctx, param=parameter)
    return process(ctx, value)


def _typer(**options: Any) -> typer.Typer:
    return typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, **options)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"claudomator {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Dispatch tasks to coding agents, unattended; ask why, and get an answer.

    Exit codes: 0 ok, 1 failure, 2 usage, 3 daemon not running, 4 not authorised, 5 an awaited task failed,
    6 one needs a person, 124 timed out.
    """
    del version


_BESIDE = 6
"""Columns of the help besides names and summaries."""


def other_words() -> Mapping[str, str]:
    """Return a clause that says what to type instead, by words for commands that have another name here."""
    entries = toml_data("claudomator_py.cli", "other_words.toml")["words"]
    return {word: entry["instead"] for entry in entries for word in entry["typed"]}


def build(others: Mapping[str, LazyCommand]) -> typer.Typer:
    """Return the application with all commands. others: those that need more than a daemon or files."""
    commands = {**COMMANDS, **others, **GROUPS}

    class LazyGroup(TyperGroup):
        """The commands, listed by name and summary without loading them."""

        def __init__(self, **options: Any) -> None:
            super().__init__(**{**options, "commands": None})
            self.commands = _Commands(commands)

        def list_commands(self, ctx: Any) -> list[str]:
            del ctx
            return list(self.commands)

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            if args and args[0] not in self.commands and args[0].lower() in (instead := other_words()):
                ctx.fail(f"No such command {args[0]!r}: {instead[args[0].lower()]}.")
            return super().resolve_command(ctx, args)

        def invoke(self, ctx: Any) -> Any:
            try:
                return super().invoke(ctx)
            except typer.BadParameter as error:
                _reword(error)
                raise

        def format_commands(self, ctx: Any, formatter: Any) -> None:
            del ctx
            left = formatter.width - max(map(len, commands)) - _BESIDE
            for title, names in SECTIONS.items():
                rows = [
                    (name, TyperCommand(name, help=commands[name].summary).get_short_help_str(left))
                    for name in names
                    if name in commands
                ]
                with formatter.section(title):
                    formatter.write_dl(rows)

    return _typer(
        name="claudomator",
        cls=LazyGroup,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        callback=_root,
    )


def _reword(error: typer.BadParameter) -> None:
    """Replace pydantic's message for programmers by one for people."""
    details = getattr(error.__cause__, "errors", None)
    if details is None:
        return
    from claudomator_py.schema.validation import wording

    message, remedy = wording(details()[0])
    problem_text = f"it {message}" if message.startswith(("is ", "has ")) else message
    error.message = f"{problem_text}; {remedy}" if remedy else problem_text


def run(app: typer.Typer) -> None:
    """Run the command that the arguments name, and exit with its code."""
    try:
        app()
    except ClientError as error:
        _print_error(error)
        sys.exit(_code(error))
    except OSError as failure:
        # A file or folder that the command was pointed at; anything else is a fault of ours, and keeps its traceback.
        if failure.filename is None:
            raise
        from claudomator_py.cli import output

        output.error(f"{failure.filename}: {failure.strerror}.", "Name another place, or fix its permissions.")
        sys.exit(ExitCode.FAILURE)


def _print_error(error: ClientError) -> None:
    """Print why it failed, and the remedy. Several problems with a request are printed one a line."""
    from claudomator_py.cli import output

    match getattr(getattr(error, "details", None), "problems", ()):
        case [one] if one.remedy and error.detail == str(one):
            from claudomator_py.domain.errors import sentence

            output.error(f"{one.model_copy(update={'remedy': None})}.", sentence(one.remedy))
        case [_, _, *_] as several if error.detail.startswith(str(several[0])):
            for problem in several:
                output.note(str(problem))
            output.error("The request is not valid.", error.remedy)
        case _:
            output.error(error.detail, error.remedy)


def _code(error: ClientError) -> int:
    match error:
        case DaemonNotRunning():
            return ExitCode.NOT_RUNNING
        case NotAuthorised() | ServiceProblem(code="not_permitted"):
            return ExitCode.NOT_AUTHORISED
        case _:
            return ExitCode.FAILURE
