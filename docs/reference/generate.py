"""Write the reference pages that are made from the code: ``python -m docs.reference.generate``, or ``make reference``.

A page is a function in a module of its own; a test says when one is out of date.
"""

from collections.abc import Callable
from pathlib import Path

from docs.reference.api import api
from docs.reference.command_line import command_line
from docs.reference.configuration import configuration
from docs.reference.decisions import decisions
from docs.reference.handoff import handoff
from docs.reference.metrics import metrics
from docs.reference.obstacles import obstacles
from docs.reference.reasons import reason_codes
from docs.reference.states import states
from docs.reference.task_file import task_file
from docs.reference.which_agents import which_agents

HERE = Path(__file__).parent
PAGES: dict[str, Callable[[], str]] = {
    "task-file.md": task_file,
    "configuration.md": configuration,
    "command-line.md": command_line,
    "api.md": api,
    "states.md": states,
    "reason-codes.md": reason_codes,
    "obstacles.md": obstacles,
    "decisions.md": decisions,
    "handoff.md": handoff,
    "metrics.md": metrics,
    "which-agents.md": which_agents,
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (HERE / name).write_text(page())
