"""The entry of the programs that runs start, by names that stay when their modules move: a run that outlives an upgrade
starts its fence with every tool call. Neither this module's path nor a name here may change."""

import importlib
from collections.abc import Callable, Mapping
from typing import Final

PROGRAMS: Final[Mapping[str, str]] = {
    "a2a": "claudomator_py.agents.a2a_client.main",
    "acp": "claudomator_py.agents.acp_client.main",
    "fence": "claudomator_py.agents.fence_hook",
    "hub": "claudomator_py.agents.hub_runner",
    "mcp": "claudomator_py.agents.mcp_server.main",
}
"""The module of each program."""


def start(name: str) -> int:
    """Run the program with the arguments in ``sys.argv``, and return its exit code."""
    main: Callable[[], int] = importlib.import_module(PROGRAMS[name]).main
    return main()
