"""Pieces of Markdown that the generated pages are made of."""

import re
from collections.abc import Iterable, Sequence

MADE = "<!-- Made from the code by `make reference`; change it there. -->"


def page(title: str, *parts: str) -> str:
    """A page: a title, then its parts with a blank line between them."""
    return "\n\n".join([f"# {title}", MADE, *(part.strip("\n") for part in parts if part.strip())]) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table. Cells are Markdown on one line."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)


def code(text: str) -> str:
    """The text as code in a sentence."""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}"


def first_sentence(docstring: str | None) -> str:
    """What a docstring says first, on one line, in Markdown."""
    paragraph = " ".join((docstring or "").strip().split("\n\n")[0].split())
    return re.split(r"(?<=\.) ", paragraph, maxsplit=1)[0].replace("``", "`")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")
