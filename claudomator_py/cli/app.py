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


def _group(resource: str, summary: str, commands: str = "COMMANDS") -> LazyCommand:
    """Return the group of a resource's commands."""
    return LazyCommand(summary, lambda: group_of(_imported(f"{resource}.cli:{commands}", "resources")))


def group_of(commands: Mapping[str, Callable[..., None]]) -> typer.Typer:
    """Return a group of commands, by name."""
    app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    for name, command in commands.items():
        app.command(name)(command)
    return app


def _command(resource: str, name: str, summary: str, module: str = "cli") -> LazyCommand:
    """Return one command of a resource: the function of that name."""
    return LazyCommand(summary, lambda: _imported(f"{resource}.{module}:{name}", "resources"))


def _imported(path: str, package: str = "cli") -> Any:
    module, _, name = path.partition(":")
    with bulk_import():
        return getattr(importlib.import_module(f"claudomator_py.{package}.{module}"), name)


COMMANDS: Mapping[str, LazyCommand] = {
    "submit": _command("tasks", "submit", "Submit the tasks in files.", "cli_submit"),
    "add": _command("tasks", "add", "Submit a task without a file.", "cli_submit"),
    "wait": _command("tasks", "wait", "Wait for tasks to end; exit with 5 unless all completed.", "cli_submit"),
    "list": _command("tasks", "tasks", "List tasks, newest first, one line each."),
    "status": _command("overview", "status", "Show everything at a glance."),
    "show": _command("tasks", "show", "Show one task and its runs.", "cli_show"),
    "result": _command("tasks", "result", "Print the result of a task. Exits with 1 unless it completed.", "cli_show"),
    "logs": _command("runs", "logs", "Print the output of a run."),
    "log": _command("events", "log", "Show what happened, newest last, and who did it."),
    "inbox": _command("overview", "inbox", "List refused files of the inbox, with all their problems."),
    "report": _command("report", "report", "Show what happened overnight, and what is left."),
    "diff": _command("branches", "diff", "Show what a task's runs changed."),
    "branches": _command("branches", "branches", "List the unmerged branches of tasks."),
    "merge": _command("branches", "merge", "Merge the branches of tasks."),
    "pr": _command("branches", "pr", "Open a pull request from a task's branch, with `gh`."),
    "discard": _command("branches", "discard", "Remove the work tree and the branch of a task."),
    "why": _command("tasks", "why", "Explain why a task is where it is.", "cli_show"),
    "cancel": _command("tasks", "cancel", "Cancel tasks. A running one ends a little later.", "cli_change"),
    "edit": _command("tasks", "edit", "Edit a waiting task.", "cli_change"),
    "restart": _command("tasks", "restart", "Run tasks again.", "cli_change"),
    "answer": _command("tasks", "answer", "Answer the question of a task's agent.", "cli_change"),
    "approve": _command("tasks", "approve", "Allow what a task asks for: its first run, or a tool.", "cli_change"),
    "reject": _command(
        "tasks",
        "reject",
        "Reject a task that needs input. It fails, and so do the tasks that depend on it.",
        "cli_change",
    ),
    "agents": _command("agents", "agents", "List the agents."),
    "hosts": _command("daemon", "hosts", "Show where runs take place."),
    "hold": _command("agents", "hold", "Start no tasks on an agent. Running ones continue."),
    "release": _command(
        "agents", "release", "End the holds of agents, and of their accounts. Tasks start on them again."
    ),
    "search": _command("specialists", "search", "Search specialists, by meaning and by words."),
    "route": _command("routing", "route", "Show who would do a task, and why."),
    "drain": _command("daemon", "drain", "Stop starting tasks; running ones finish."),
    "undrain": _command("daemon", "undrain", "Start tasks again after `drain`."),
    "notifications": _command("notifications", "notifications", "List notifications and their delivery."),
    "backup": _command("daemon", "backup", "Copy the database to a file."),
    "cleanup": _command("daemon", "cleanup", "Remove what ended tasks no longer need."),
    "init": LazyCommand("Write a configuration and a first task, or a service.", lambda: _imported("init:init")),
    "doctor": LazyCommand("Check the set-up, and say what to fix.", lambda: _imported("doctor.command:doctor")),
    "open": _command("access", "open_page", "Print a link that logs a browser in."),
}
"""The commands that need only a daemon or files."""

GROUPS: Mapping[str, LazyCommand] = {
    "schedule": _group("schedules", "Recurring tasks: list, preview, pause, run, delete."),
    "specialists": _group("specialists", "Specialists: list, show, add, edit, grant, import, export."),
    "channel": _group("channels", "Channels: create, list, show, post, read, settings, delete."),
    "decisions": _group("decisions", "Decisions: list, show, export as JSON lines."),
    "routing": _group("routing", "Routing: stats, learned, labels, reset, freeze."),
    "token": _group("access", "API tokens: create, list, revoke.", "TOKEN_COMMANDS"),
    "sessions": _group("access", "Browser sessions: list, end.", "SESSION_COMMANDS"),
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
