"""Real agent CLIs ask, are denied, and go on with what a person says, in the same conversation."""

import json

import pytest

from claudomator_py.client import ServiceProblem
from claudomator_py.domain.inputs import MARKER
from claudomator_py.resources.tasks import AnswerRequest, ApproveRequest
from tests.e2e.scenarios_support import ended, in_state, last_run, why
from tests.fakes.http_api import Text
from tests.patience import wait_until
from tests.real_clis.clis import CLAUDE, GEMINI, Cli, each
from tests.real_clis.place import END_S, Place

QUESTION = "Shall it be formal?"
DEFAULT = {"mode": "default"}


def heard(place: Place) -> str:
    """All that the last request told the service."""
    return json.dumps(place.api.requests[-1].body)


@each()
def test_it_is_told_how_to_ask_and_goes_on_with_the_answer(place: Place, cli: Cli) -> None:
    place.api.script(Text(f"I looked around.\n\n{MARKER} {QUESTION}"))
    daemon = place.start()
    place.drop("greet")
    task = in_state(daemon, "greet", "NEEDS_INPUT", deadline_s=END_S)
    assert (task.reason, task.reason_text) == ("question", QUESTION)
    assert MARKER in heard(place)
    first = last_run(daemon, "greet")
    place.api.script(Text("Dear all."))

    daemon.client.answer("greet", AnswerRequest(text="Yes, very."))

    task = ended(daemon, "greet", END_S)
    assert (task.state, task.result_text, task.attempts) == ("COMPLETED", "Dear all.", 1), why(daemon, "greet")
    second = last_run(daemon, "greet")
    assert second.resumes == first.id
    assert first.outcome is not None
    assert second.outcome is not None
    assert second.outcome.conversation_id == first.outcome.conversation_id
    assert "Write a greeting." in heard(place), "it remembers the first run"
    assert QUESTION in heard(place)
    assert "Yes, very." in heard(place)


@each(CLAUDE, GEMINI)
def test_a_tool_that_it_was_denied_runs_once_a_person_allows_it(place: Place, cli: Cli) -> None:
    made = place.site.work / "made by hand"
    use = cli.shell(f"touch '{made}'")
    place.api.script(use, Text("I may not."))
    daemon = place.start()
    place.drop("greet", permissions=DEFAULT)
    task = in_state(daemon, "greet", "NEEDS_INPUT", deadline_s=END_S)
    assert task.reason == "approval"
    assert (task.reason_text or "").startswith(f"{cli.kind} asks to use {use.name}(touch ")
    assert not made.exists()
    place.api.script(use, Text("Done."))

    if cli is GEMINI:
        with pytest.raises(ServiceProblem, match="comma"):
            daemon.client.approve("greet", ApproveRequest(tools=("run_shell_command(a,b)",)))
    daemon.client.approve("greet")

    task = ended(daemon, "greet", END_S)
    assert task.state == "COMPLETED", why(daemon, "greet")
    assert made.exists()
    assert "Write a greeting." in heard(place), "it is the same conversation"


@each(CLAUDE)
def test_leave_for_one_file_is_for_no_other(place: Place, cli: Cli) -> None:
    other = place.site.work / "other.txt"
    place.api.script(place.writes(), Text("I may not."))
    daemon = place.start()
    place.drop("greet", permissions=DEFAULT)
    in_state(daemon, "greet", "NEEDS_INPUT", deadline_s=END_S)
    first = last_run(daemon, "greet")
    place.api.script(place.writes(), cli.writes(other), Text("One of two."))
    daemon.client.approve("greet")
    wait_until(lambda: last_run(daemon, "greet").id != first.id, "the next run", END_S)
    task = in_state(daemon, "greet", "NEEDS_INPUT", deadline_s=END_S)
    assert place.greeting.exists()
    assert not other.exists()
    assert task.reason_text == f"claude asks to use Write({other})"
