"""Card files named on the command line."""

import os
import sys
from pathlib import Path

import typer

from claudomator_py.cli.output import error, note
from claudomator_py.domain.card import Card
from claudomator_py.domain.errors import shown

STDIN = Path("-")


def read(path: Path) -> list[Card]:
    """The cards in that file; ``-`` is stdin. Raises Exit where it has a problem, and says which."""
    from claudomator_py.schema.cardfile import parse_card_file

    name = "stdin" if path == STDIN else str(path)
    try:
        data = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
    except OSError as failure:
        raise typer.BadParameter(f"{shown(name)} cannot be read: {failure.strerror or failure}") from None
    found = parse_card_file(data, "stdin.yaml" if path == STDIN else path.name)
    if found.problems:
        for problem in found.problems:
            note(problem.render(os.fsencode(name).decode(errors="backslashreplace")))
        error("No specialist was registered.", "Fix the listed problems and retry.")
        raise typer.Exit(1)
    return list(found.cards)
