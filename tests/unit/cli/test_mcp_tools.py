"""What the tools of ``claudomator mcp`` say of themselves agrees with what they do."""

from typing import Any, get_args

import pytest

from claudomator_py.cli.mcp_tools import DESCRIPTIONS, MAX_LISTED, MAX_WAIT_S
from claudomator_py.domain.kind import TIERS
from claudomator_py.domain.lifecycle import StateName
from claudomator_py.domain.task import Priority


@pytest.mark.parametrize(
    ("tool", "place", "text"),
    [
        ("submit_task", ("agent", "properties", "tier", "enum"), list(TIERS)),
        ("submit_task", ("priority", "enum"), [priority.label for priority in Priority]),
        ("task_status", ("wait_s", "maximum"), MAX_WAIT_S),
        ("list_tasks", ("state", "enum"), list(get_args(StateName))),
        ("list_tasks", ("limit", "maximum"), MAX_LISTED),
    ],
)
def test_a_description_names_the_values_that_are_taken(tool: str, place: tuple[str, ...], text: object) -> None:
    result: Any = DESCRIPTIONS[tool]["inputSchema"]["properties"]
    for key in place:
        result = result[key]
    assert result == text
