"""Numbers on the command line are digits as people write them; whatever else a library would take is refused."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from claudomator_py.__main__ import application
from tests.fakes.command import Command

NO_NUMBERS = (
    "1_0",
    " 10",
    "10 ",
    "+10",
    "1e1",
    "0x10",
    "010_0",
    "٣",
    "\N{FULLWIDTH DIGIT ONE}0",
    "x",
    "",
    "nan",
    "inf",
    "-inf",
    "1,5",
    "--1",
)
NOT_WHOLE = (*NO_NUMBERS, "10.0", "1.5", ".5")


def numbers(command: Any, *path: str) -> Iterator[tuple[tuple[str, ...], str, bool]]:
    """Each option and argument that takes a number, of the command and of those below it; and whether it is whole."""
    for name in command.list_commands(None) if hasattr(command, "commands") else ():
        yield from numbers(command.commands[name], *path, name)
    for parameter in command.params:
        kind = parameter.type_descriptor.annotation
        if kind in (int, float) and parameter.type_descriptor.parameter_info.parser is None:
            yield path, parameter.opts[0] if parameter.opts[0].startswith("-") else parameter.metavar, kind is int


with pytest.MonkeyPatch.context() as patch:
    # Commands that compute set how many threads they take when they are loaded, which this process is not to keep.
    patch.setattr(os, "environ", os.environ.copy())
    OPTIONS = list(numbers(typer.main.get_command(application())))


def test_there_are_options_of_both_kinds() -> None:
    assert {whole for _, _, whole in OPTIONS} == {True, False}
    assert {path[0] for path, _, _ in OPTIONS} >= {"log", "channel", "routing", "decisions", "schedule", "restart"}


@pytest.mark.parametrize(("path", "option", "whole"), OPTIONS)
def test_what_is_no_plain_number_is_refused_with_the_option_and_a_remedy(
    offline: Command, path: tuple[str, ...], option: str, whole: bool
) -> None:
    for text in NOT_WHOLE if whole else NO_NUMBERS:
        words = (option, text) if option.startswith("-") else ("--", "general", text)
        done = offline(*path, *words)
        assert done.returncode == 2, (text, done.stderr)
        assert f"Invalid value for '{option}'" in done.stderr
        assert f"it is the text `{text}`, but must be a" in done.stderr
        assert "write digits" in done.stderr


def test_plain_numbers_are_taken(offline: Command) -> None:
    assert offline("log", "-n", "7").returncode == 3
    assert offline("routing", "stats", "--days", "007").returncode == 3
    assert offline("restart", "it", "--budget-usd", "0.50").returncode == 3
    assert offline("restart", "it", "--budget-usd", "2").returncode == 3
    assert "at least 1" in offline("routing", "stats", "--days", "-5").stderr


def _parameters(command: Any) -> Iterator[tuple[str, str]]:
    """Each option and argument of the command and those below it, as the help names it."""
    for below in getattr(command, "commands", {}).values():
        yield from _parameters(below)
    context = typer.Context(command)
    for parameter in command.params:
        if (record := parameter.get_help_record(context)) is not None:
            yield command.name, record[0]


def test_the_help_names_no_type_of_python() -> None:
    names = list(_parameters(typer.main.get_command(application())))
    assert ("add", "--name TEXT") in names
    assert ("cancel", "TASK") in names
    assert [
        name for name in names if any(kind in name[1] for kind in ("<str", "<int", "<float", "<list", "<Path"))
    ] == []
