"""Command lines of everyday work: what acts on others is told, and what stays within is not disturbed."""

import json
from pathlib import Path
from typing import Any

import pytest

from claudomator_py.acts import Reach
from claudomator_py.acts.pattern import Place
from claudomator_py.acts.tool_calls import BeyondReach, exceeding

DATA = Path(__file__).parents[2] / "data" / "acts"
HEAD = {"/code/shop/.git/HEAD": "ref: refs/heads/fix-login\n"}


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of that file."""
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text().splitlines()]


def judged(row: dict[str, Any]) -> BeyondReach | None:
    """How its command goes beyond the default reach, in a project with its files."""
    files = HEAD | {f"/code/shop/{name}": text for name, text in row.get("files", {}).items()}
    place = Place("/code/shop", ("/code/shop",), "/home/ada", {"PATH": "/usr/bin"}, files.get)
    return exceeding("Bash", {"command": row["command"]}, Reach.NETWORK, place)


@pytest.mark.parametrize("name", ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"])
def test_nearly_all_that_acts_on_others_is_stopped(name: str) -> None:
    results = [row for row in rows("beyond") if row["set"] == name]
    missed = [row["command"] for row in results if judged(row) is None]
    assert len(missed) <= 0.02 * len(results), missed


def test_nothing_that_stays_within_is_disturbed() -> None:
    assert not {row["command"]: far.does for row in rows("within") if (far := judged(row)) is not None}


def test_each_can_be_told_to_people() -> None:
    for row in rows("beyond"):
        far = judged(row)
        assert far is None or (far.does.isprintable() and "`" in far.does), row
