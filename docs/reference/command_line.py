"""The page of the command line, from the application itself."""

import re
from collections.abc import Iterator
from typing import Any

import typer.main

from claudomator_py.__main__ import application
from docs.reference.markdown import code, page, table

_INTRODUCTION = """
Data goes to stdout, messages to stderr. Commands that talk to the daemon find it by `--config` or `--state-dir`, else
by `CLAUDOMATOR_URL` and `CLAUDOMATOR_TOKEN`, else by the [configuration](configuration.md) that they find. TASK is a
task's id, the beginning of its id, or its name.
"""
_EXIT_CODES = re.compile(r"Exit codes: (.*)", re.DOTALL)
_REQUIRED = "[required]"


def command_line() -> str:
    """Every command with its arguments and options."""
    group = typer.main.get_command(application())
    commands = dict(_commands(group))
    overview = [(f"[{code(name)}](#{name.replace(' ', '-')})", _summary(commands[name])) for name in sorted(commands)]
    parts = ["## Exit codes", _exit_codes(group.help or "")]
    parts += ["## Commands", table(("command", "what it does"), overview)]
    for name in sorted(commands):
        parts += [f"### {name}", *_command(name, commands[name])]
    return page("Command line", _INTRODUCTION, *parts)


def _commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Every command by its name, that of its group included."""
    for name, command in getattr(group, "commands", {}).items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


def _exit_codes(text: str) -> str:
    found = _EXIT_CODES.search(text)
    listed = " ".join(found[1].split()).rstrip(".") if found is not None else ""
    rows = [item.strip().partition(" ") for item in listed.split(",")]
    return table(("code", "meaning"), [(code(number), meaning) for number, _, meaning in rows])


def _paragraphs(command: Any) -> list[str]:
    return [" ".join(paragraph.split()) for paragraph in (command.help or "").strip().split("\n\n")]


def _summary(command: Any) -> str:
    return _paragraphs(command)[0]


def _command(name: str, command: Any) -> list[str]:
    """As ``--help`` tells it."""
    context = command.make_context(name, [], resilient_parsing=True)
    words = [word.replace("{", "").replace("}", "").replace("[[", "[").replace("]]", "]") for word in _usage(command)]
    rows = [
        (code(names), text.replace(_REQUIRED, "").replace("  [", " [").strip())
        for names, text in (one.get_help_record(context) for one in command.get_params(context) if not one.hidden)
        if not names.endswith("--help")
    ]
    usage = " ".join(["claudomator", name, *words])
    parts = [f"```text\n{usage}\n```", *_paragraphs(command)]
    return [*parts, table(("argument or option", "meaning"), rows)] if rows else parts


def _usage(command: Any) -> list[str]:
    pieces: list[str] = command.collect_usage_pieces(command.make_context("", [], resilient_parsing=True))
    return pieces
