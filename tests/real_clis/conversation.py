"""A conversation that an agent remembers: how it begins, and what of it a model is told again."""

import json

from claudomator_py.resources.runs import RunView
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import ended, last_run
from tests.fakes.http_api import Text
from tests.real_clis.clis import CLAUDE, CODEX, GEMINI, OPENCODE
from tests.real_clis.place import END_S, Place

TOLD = "Write a greeting."
MEMORY = {CLAUDE: ".claude/projects", GEMINI: ".gemini/tmp", CODEX: ".codex", OPENCODE: ".local/share/opencode"}


def begun(place: Place) -> tuple[Daemon, RunView]:
    """A daemon, and the task's first run, which has succeeded."""
    place.api.script(Text("I have."))
    daemon = place.start()
    place.drop("greet", working_dir=None)
    task = ended(daemon, "greet", END_S)
    assert task.state == "COMPLETED", task
    return daemon, last_run(daemon, "greet")


def heard(place: Place) -> str:
    """All that the last request told the service."""
    return json.dumps(place.api.requests[-1].body)
