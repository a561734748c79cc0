"""The pages on agents and on reach say of each kind whether its runs are kept within one, and by whom."""

import re
from pathlib import Path

import pytest

from claudomator_py.agents.kinds import KINDS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("page", "heading"), [("how-to/reach.md", "## Where it is enforced"), ("agents.md", "Who enforces a reach")]
)
def test_each_kind_is_said_to_be_held_by_something_or_by_nothing(page: str, heading: str) -> None:
    table = (DOCS / page).read_text("utf-8").partition(heading)[2].partition("|---")[2].partition("\n\n")[0]
    payload: dict[str, str] = {}
    for names, by in re.findall(r"^\| (`.+?) \| (.+?) \|", table, re.MULTILINE):
        payload |= dict.fromkeys(re.findall(r"`(\w+)`", names), by)
    assert set(payload) == set(KINDS)
    held = {name for name, by in payload.items() if not by.startswith(("nothing", "nobody"))}
    # A simulated agent does what its script says; an agent that speaks ACP may be held, by its profile.
    assert held == {name for name, info in KINDS.items() if info.fences} - {"simulated"} | {"acp"}
