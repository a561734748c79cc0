"""The MCP server of a run, which the agent's CLI starts, and by which the agent asks the daemon; here its tools: which
request a call of each makes. What the model reads of them is in ``tools.json``.

It is a program of its own on the standard library alone: every run starts it, and it answers within 25 ms of CPU time.
Arguments go to the daemon unchecked; the daemon checks them and says what is wrong.
"""

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

# Some CLIs show the model only the first 250 characters until it looks for a tool.
INSTRUCTIONS: Final = (
    "For this unattended run: ask_operator (a person answers; end your turn after it), hand_off (another specialist "
    "continues), create_subtask, report_progress, read_handoff (what was decided, your limits, the work before you). "
    "Nobody reads along while you work: what a person must know or decide goes through these tools, or into your last "
    "message."
)
_ASK_BY_WORDS: Final = (
    "End your turn with the question instead: begin the last paragraph of your last message with "
    "`CLAUDOMATOR QUESTION:`."
)


class ToolFailed(Exception):
    """The call failed; the message is for the model."""


class DaemonUnreachable(ToolFailed):
    """No daemon answers."""


Ask = Callable[[str, str, Mapping[str, Any] | None], dict[str, Any]]
"""Sends the daemon a request: method, path below the run's, body. See ``daemon.DaemonClient.ask``."""


class Tool(NamedTuple):
    """A tool of the server. A tuple, as dataclasses take longer to import than everything else."""

    described: Mapping[str, Any]
    """As in ``tools/list``. A tool with ``readOnlyHint`` only records words, which have no effect while the run
    lasts."""
    method: str
    """The HTTP method of the request to the daemon."""
    path: str
    """The request's path below the run's."""
    to_text: Callable[[Mapping[str, Any]], str]
    """Turns the daemon's answer into text for the model."""
    otherwise: str | None = None
    """What the model is told to do while no daemon answers."""

    def call(self, ask: Ask, arguments: Mapping[str, Any]) -> str:
        """Send the request and return text for the model. Raises ToolFailed."""
        try:
            answer = ask(self.method, self.path, None if self.method == "GET" else arguments)
        except DaemonUnreachable as error:
            raise ToolFailed(str(error) if self.otherwise is None else f"{error} {self.otherwise}") from error
        return self.to_text(answer)


def _asked(answer: Mapping[str, Any]) -> str:
    del answer
    return "Your question is recorded. End your turn now; the answer comes as your next message in this conversation."


def _handed_off(answer: Mapping[str, Any]) -> str:
    return f"{answer.get('specialist')} continues the task once you are done. End your turn now."


def _created(answer: Mapping[str, Any]) -> str:
    name, number, most = (answer.get(key) for key in ("name", "subtasks", "max_subtasks"))
    return f"Created the task {name} ({number} of {most}). It runs by itself; do not wait for it."


def _reported(answer: Mapping[str, Any]) -> str:
    if answer.get("recorded"):
        return "Recorded."
    return "Not recorded: you reported a moment ago. Report what matters, a few seconds apart at least."


def _read(answer: Mapping[str, Any]) -> str:
    return json.dumps(answer, indent=2, ensure_ascii=False)


# pathlib takes longer to import than everything else.
with open(f"{os.path.dirname(__file__)}/tools.json", "rb") as _file:  # noqa: PTH120, PTH123
    _DESCRIBED: Final[Mapping[str, Mapping[str, Any]]] = {tool["name"]: tool for tool in json.load(_file)}

TOOLS: Final[Mapping[str, Tool]] = {
    "ask_operator": Tool(_DESCRIBED["ask_operator"], "POST", "/questions", _asked, otherwise=_ASK_BY_WORDS),
    "hand_off": Tool(_DESCRIBED["hand_off"], "POST", "/handoff", _handed_off),
    "create_subtask": Tool(_DESCRIBED["create_subtask"], "POST", "/subtasks", _created),
    "report_progress": Tool(_DESCRIBED["report_progress"], "POST", "/progress", _reported),
    "read_handoff": Tool(_DESCRIBED["read_handoff"], "GET", "/handoff", _read),
}
