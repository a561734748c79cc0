"""Write into a page what its commands print: ``python -m tests.docs.record PAGE...``. What is right already stays."""

import sys
import tempfile
from pathlib import Path

from tests.docs.follow import follow
from tests.docs.page import Command

SETTLES_S = 4.0


def record(page: Path) -> None:
    """Follow the page, and replace each output that is not what is printed now."""
    seen: list[tuple[Command, list[str]]] = []
    with tempfile.TemporaryDirectory() as folder:
        follow(
            page,
            Path(folder) / "home",
            lambda command, printed: seen.append((command, printed.rstrip("\n").split("\n"))),
            patience_s=SETTLES_S,
        )
    lines = page.read_text().splitlines()
    for command, printed in reversed(seen):
        start = command.line + command.text.count("\n")
        lines[start : start + len(command.expected)] = [line.rstrip() for line in printed] if printed != [""] else []
    page.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        record(Path(name))
