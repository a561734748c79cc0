"""Do what a page says, as its reader would, and see whether what it shows comes true."""

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.docs.compare import matches
from tests.docs.page import Command, Step, steps_of
from tests.docs.terminal import COMMAND, Terminal, open_terminal
from tests.patience import PATIENCE_S

_LEAST_PAUSE_S, _MAX_PAUSE_S = 0.2, 0.6
"""The longer a look takes, the more is left for what is waited for; but some pages show what lasts two seconds."""
# A reader who does not see it yet looks again.
_LOOKS = re.compile(
    r"(?:\S*/)?claudomator (?:status|show|why|logs|agents|result|report|doctor|schedule list|channel read)\b|cat |ls\b"
)

Differs = Callable[[Command, str], None]
"""Told of a command that did not print what the page shows."""


def follow(
    page: Path,
    root: Path,
    differs: Differs | None = None,
    patience_s: float = PATIENCE_S,
    *,
    command: Sequence[str] = COMMAND,
) -> int:
    """Do all steps in that folder; how many commands there were. Fails at the first that differs, or calls differs.

    command: what ``claudomator`` is in its terminal.
    """
    with open_terminal(root, command) as terminal:
        return follow_in(terminal, page, differs, patience_s)


def follow_in(terminal: Terminal, page: Path, differs: Differs | None = None, patience_s: float = PATIENCE_S) -> int:
    """Do all steps in that terminal; like ``follow``."""
    count = 0
    for step in steps_of(page):
        for command in step.commands:
            count += 1
            printed = _do(terminal, step, command, patience_s)
            if matches(command.expected, printed):
                continue
            if differs is None:
                raise AssertionError(_difference(page, command, printed, terminal))
            differs(command, printed)
        _do_silently(terminal, step)
    return count


def _do(terminal: Terminal, step: Step, command: Command, patience_s: float) -> str:
    """What the command prints; what is not there yet is waited for."""
    daemon = step.kind == "daemon"
    if daemon:
        terminal.start(command.text)
    end = time.monotonic() + (patience_s if daemon or _LOOKS.match(command.text) else 0)
    while True:
        looked = time.monotonic()
        printed = terminal.log() if daemon else terminal.run(command.text)
        if (command.expected and matches(command.expected, printed)) or time.monotonic() >= end:
            return printed
        time.sleep(min(max(_LEAST_PAUSE_S, 3 * (time.monotonic() - looked)), _MAX_PAUSE_S))


def _do_silently(terminal: Terminal, step: Step) -> None:
    match step.kind:
        case "file" | "append":
            terminal.write(step.argument, "\n".join([*step.body, ""]), append=step.kind == "append")
        case "run":
            printed = terminal.run(step.argument)
            assert terminal.run("echo $?") == "0\n", f"line {step.line}: {step.argument} failed: {printed}"
        case "start daemon":
            terminal.start(step.argument)
        case "stop daemon":
            terminal.stop()


def _difference(page: Path, command: Command, printed: str, terminal: Terminal) -> str:
    shown = "\n".join(command.expected)
    return (
        f"{page.name}:{command.line}: `{command.text}` did not print what the page shows\n"
        f"--- the page\n{shown}\n--- printed\n{printed}\n--- the daemon\n{terminal.log()[-3000:]}"
    )
