"""Secrets are taken out of whatever holds texts, and what programs act on stays readable."""

import pytest

from claudomator_py.domain.budget import WindowUse
from claudomator_py.domain.inputs import InputRequest
from claudomator_py.domain.lifecycle import InputKind
from claudomator_py.domain.outcome import Denied, Outcome, OutcomeStatus, Reason
from claudomator_py.domain.redaction import MARK, Redactor, clean, without_secrets

SECRET = "geheim-9f2c-77aa"
REDACTOR = Redactor([SECRET])
PUBLISH = Denied(tool="Bash", input="npm publish", rule="Bash(npm publish)")


def test_texts_are_cleaned_wherever_they_stand_and_keys_are_not() -> None:
    asked = InputRequest(kind=InputKind.APPROVAL, text=f"may I {SECRET}", since_ms=1, tools=(Denied(tool=SECRET),))
    results = clean({"a": [f"x {SECRET}", 1, None], "b": {"c": (asked,)}, SECRET: True}, REDACTOR)
    assert results == {
        "a": [f"x {MARK}", 1, None],
        "b": {"c": (asked.model_copy(update={"text": f"may I {MARK}", "tools": (Denied(tool=MARK),)}),)},
        SECRET: True,
    }


def test_what_holds_no_secret_is_returned_as_it_is() -> None:
    value = {"a": ["x", 1], "b": Outcome(status=OutcomeStatus.SUCCEEDED, text="done")}
    assert clean(value, REDACTOR) is value


@pytest.mark.parametrize("code", ["succeeded", "rate_limited", "NEEDS_INPUT", "powerful"])
def test_a_variable_that_is_a_code_makes_nothing_unreadable(code: str) -> None:
    outcome = {"status": code, "detail": f"{code}: {code}"}
    assert clean(outcome, Redactor([code])) == {"status": code, "detail": f"{MARK}: {MARK}"}


def test_an_outcome_is_cleaned_in_every_field_and_what_is_acted_on_is_dropped() -> None:
    call = Denied(tool=f"mcp__{SECRET}", input=f"login {SECRET}", rule=f"Bash(login {SECRET})")
    outcome = Outcome(
        status=OutcomeStatus.LIMITED,
        reason=Reason.RATE_LIMITED,
        text=f"I saw {SECRET}.",
        detail=f"error at {SECRET}",
        question=f"Is it {SECRET}?",
        limit=SECRET,
        family=SECRET,
        near_limit=SECRET,
        conversation_id=SECRET,
        denied=(call, PUBLISH),
        windows={SECRET: WindowUse(used=0.5, resets_at=1, family=SECRET)},
    )
    result = without_secrets(outcome, REDACTOR)
    assert SECRET not in result.model_dump_json()
    assert result.text == f"I saw {MARK}."
    assert result.denied == (Denied(tool=f"mcp__{MARK}", input=f"login {MARK}"), PUBLISH)
    assert (result.conversation_id, result.status, result.reason) == (None, outcome.status, outcome.reason)


@pytest.mark.parametrize("text", [f"it is {SECRET[:-3]}...", f"{SECRET[4:]} was it", f"and {SECRET[:9]}"])
def test_what_is_left_of_a_secret_where_words_were_cut_is_taken_out(text: str) -> None:
    result = without_secrets(Outcome(status=OutcomeStatus.SUCCEEDED, text=text), REDACTOR).text
    assert result == text.replace(SECRET[:-3], MARK).replace(SECRET[4:], MARK).replace(SECRET[:9], MARK)


def test_a_value_that_a_message_quotes_in_short_is_found() -> None:
    assert clean(f"`{SECRET[:12]}...` is not a duration", REDACTOR) == f"`{MARK}...` is not a duration"
