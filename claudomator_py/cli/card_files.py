"""Card files named on the command line, and cards as text to edit."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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


def text_of(document: Mapping[str, Any]) -> str:
    """The card as YAML, with texts of several lines as they are."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """With a representer of its own."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Dumper.add_representer(str, text)
    return yaml.dump(dict(document), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100)
