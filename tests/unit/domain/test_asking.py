"""What counts as a question, what asks for permission, and what is shown of both."""

from typing import Any

import pytest

from claudomator_py.domain.inputs import (
    MARKER,
    MAX_QUESTION,
    UNSAID,
    ToolGrant,
    asked_by,
    heard,
    named,
    question_in,
)
from claudomator_py.domain.lifecycle import InputKind
from claudomator_py.domain.outcome import Denied, Outcome, OutcomeStatus, Reason
from claudomator_py.domain.task import TaskSpec

PUBLISH = Denied(tool="Bash", input="npm publish", rule="Bash(npm publish)")


def spec(**fields: Any) -> TaskSpec:
    return TaskSpec.model_validate({"name": "t", "instructions": "x", **fields})


def outcome(**fields: Any) -> Outcome:
    return Outcome.model_validate({"status": "succeeded", **fields})


@pytest.mark.parametrize(
    ("text", "question"),
    [
        (f"{MARKER} Red?", "Red?"),
        (f"I looked.\n\n{MARKER} Red\nor blue?\n\nThe old page is blue.\n", "Red\nor blue?\n\nThe old page is blue."),
        (f"{MARKER}\nRed?", "Red?"),
        (f"**{MARKER}** Red?", "Red?"),
        (f"## {MARKER} Red?", "Red?"),
        (f"One: {MARKER} Red?", None),
        (f"`{MARKER}` Red?", None),
        (f"> {MARKER} Red?", None),
        (f"- {MARKER} Red?", None),
        (f"    {MARKER} Red?", None),
        (f"~~~\n{MARKER} Red?\n~~~\nThat is how.", None),
        (f"```\n{MARKER} Red?\n```\n{MARKER} Blue?", "Blue?"),
        (f"````\n```\n{MARKER} Red?\n```\n````", None),
        (f"{MARKER.lower()} Red?", None),
        (f"{MARKER}  \n ", None),
        ("", None),
    ],
)
def test_a_question_begins_a_line_and_goes_to_the_end(text: str, question: str | None) -> None:
    assert question_in(text) == question


def test_a_long_question_is_cut() -> None:
    question = question_in(f"{MARKER} {'why ' * MAX_QUESTION}")
    assert question is not None
    assert len(question) == MAX_QUESTION


def test_only_a_run_that_ended_well_asks() -> None:
    failed = outcome(status="failed", reason="agent_error", text=f"{MARKER} Red?", denied=[PUBLISH])
    assert heard(failed, spec(), converses=True) == failed


def test_a_question_that_a_tool_was_to_ask_is_one_whatever_the_agent_is() -> None:
    asks = heard(outcome(question="Red?"), spec(), converses=False)
    assert (asks.status, asks.question) == (OutcomeStatus.NEEDS_INPUT, "Red?")


def test_an_agent_that_asks_without_words_is_heard_only_by_a_task_that_waits() -> None:
    wordless = outcome(status="needs_input")
    assert heard(wordless, spec(), converses=True).question == UNSAID
    assert heard(wordless, spec(on_input="deny"), converses=True).status is OutcomeStatus.SUCCEEDED


def test_a_question_goes_before_leave() -> None:
    asked = asked_by(heard(outcome(question="Red?", denied=[PUBLISH]), spec(), converses=True), "claude", "r", 1)
    assert (asked.kind, asked.text, asked.tools) == (InputKind.QUESTION, "Red?", ())


def test_a_lack_of_leave_is_no_failure_of_a_task_that_waits() -> None:
    refused = outcome(status="failed", reason="permission_denied", denied=[PUBLISH], detail="1 tool call was denied")
    asks = heard(refused, spec(check=["make test"]), converses=True)
    assert (asks.status, asks.reason, asks.detail) == (OutcomeStatus.NEEDS_INPUT, None, "1 tool call was denied")
    assert heard(refused, spec(on_input="deny"), converses=True).reason is Reason.PERMISSION_DENIED


def test_calls_are_named_once_and_not_too_many() -> None:
    calls = [PUBLISH, PUBLISH, Denied(tool="WebSearch"), *(Denied(tool="Bash", input=f"a{n}") for n in range(5))]
    assert named(calls) == "Bash(npm publish), WebSearch, Bash(a0), Bash(a1), Bash(a2) and 2 more"


def test_leave_adds_to_what_the_task_allows_for_its_kind_only() -> None:
    task = spec(permissions={"allowed_tools": ["Read", "Write"]})
    leave = ToolGrant(kind="claude", tools=("Write", "Bash(npm publish)"))
    assert leave.granted(task, "claude").permissions.allowed_tools == ("Read", "Write", "Bash(npm publish)")
    assert leave.granted(task, "gemini") == task
