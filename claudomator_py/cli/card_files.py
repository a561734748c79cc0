"""Card files named on the command line, and cards as text to edit."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from claudomator_py.cli.output import error, note
from claudomator_py.domain.card import Card
from claudomator_py.domain.errors import Problem, shown

STDIN = Path("-")


def read(path: Path) -> list[Card]:
    """The cards in that file; ``-`` is stdin. Raises Exit where it has a problem, and says which."""
    name = "stdin" if path == STDIN else str(path)
    try:
        data = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
    except OSError as failure:
        raise typer.BadParameter(f"{shown(name)} cannot be read: {failure.strerror or failure}") from None
    found = parse(data)
    if problems := [one for one in found if isinstance(one, Problem)]:
        for problem in problems:
            note(problem.render(os.fsencode(name).decode(errors="backslashreplace")))
        error("No specialist was registered.", "Fix the listed problems and retry.")
        raise typer.Exit(1)
    return [one for one in found if isinstance(one, Card)]


def parse(data: bytes) -> list[Card | Problem]:
    """The cards of a text in YAML, which JSON is too, and what is wrong with it."""
    from claudomator_py.schema.validation import described, odd_values, validate
    from claudomator_py.schema.yamltext import BadText, decode, read_documents

    try:
        documents = read_documents(decode(data))
    except BadText as bad:
        return [bad.problem]
    found: list[Card | Problem] = []
    for document in documents:
        if not isinstance(document.value, dict):
            message = f"{described(document.value)}, but a card is a mapping"
            found.append(Problem(line=document.lines.get(()), message=message, remedy="write `key: value` lines"))
            continue
        odd = odd_values(document.value, document.lines)
        card = odd or validate(Card, document.value, document.lines)
        found += card if isinstance(card, list) else [card]
    return found or [Problem(message="there is no card in the file", remedy="write `id: ...` and `description: ...`")]


def text_of(document: Mapping[str, Any]) -> str:
    """The card as YAML, with texts of several lines as they are."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """With a representer of its own."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Dumper.add_representer(str, text)
    return yaml.dump(dict(document), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100)
