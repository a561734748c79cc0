"""Why something was decided: codes with parameters, their words, and what earlier versions have stored in words."""

from typing import Any

import pytest
from pydantic import TypeAdapter

from claudomator_py.domain.decision import Fallback, StandIn, StoredFallback
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.rationale import (
    Rationale,
    RationaleCode,
    RationaleParams,
    StoredRationale,
    rationale,
)
from claudomator_py.domain.routing import Risk
from claudomator_py.domain.wording import ConversationRef, Known

EXAMPLES: dict[RationaleCode, tuple[dict[str, Any], str]] = {
    RationaleCode.LEAST_ACTIVE: ({}, "least active"),
    RationaleCode.REQUIRED: ({"agent": "codex"}, "the task insists on codex"),
    RationaleCode.PREFERRED: ({"agent": "codex"}, "the task prefers codex"),
    RationaleCode.RESUMED: (
        {"conversation": ConversationRef(run="41c98f14aa", agent="claude", task="build")},
        "resumes the conversation of run 41c98f14 of build on claude",
    ),
    RationaleCode.WOULD_WAIT: ({}, "no agent would have started it in that tick"),
    RationaleCode.NOBODY: ({}, "no specialist is to do it"),
    RationaleCode.ANSWERED: ({"text": "a recipe"}, "a recipe"),
    RationaleCode.UNANSWERED: ({}, "no reason was given"),
    RationaleCode.NAMED: ({"specialist": "writer"}, "the task names writer"),
    RationaleCode.MENTIONED: ({"specialist": "writer"}, "the task addresses writer"),
    RationaleCode.CONTINUED: ({"specialist": "writer"}, "writer did the task that it continues"),
    RationaleCode.BY_HAND: ({"specialist": "writer"}, "an operator assigned it to writer"),
    RationaleCode.AS_APPROVED: ({"specialist": "writer"}, "its first run was approved with writer"),
    RationaleCode.BEST_MATCH: ({"specialist": "writer"}, "it matches writer best"),
    RationaleCode.CORRECTED: ({"specialist": "writer"}, "operators have given tasks like it to writer"),
    RationaleCode.GONE_WELL: ({"specialist": "writer"}, "tasks like it have gone well with writer"),
    RationaleCode.TIE_BREAK: (
        {"specialist": "writer", "chosen": "editor"},
        "writer is as good a match as editor, and other signals speak for it",
    ),
    RationaleCode.NO_MATCH: ({"specialist": "writer"}, "it matches no specialist well; the closest is writer"),
    RationaleCode.NONE_MAY: ({}, "no specialist may take it"),
    RationaleCode.HANDED_ON: ({"by": "editor", "specialist": "writer"}, "editor handed it on to writer"),
    RationaleCode.FAILED_TWICE: (
        {"by": "editor", "specialist": "writer"},
        "editor failed twice, and writer is the fallback",
    ),
    RationaleCode.HANDOFF_LIMIT: ({"most": 2}, "the task may be handed on at most 2 times"),
    RationaleCode.HANDOFF_LOOP: ({"specialist": "writer"}, "writer already had it"),
    RationaleCode.NO_SPECIALIST: ({"specialist": "writer"}, "there is no specialist writer"),
    RationaleCode.NOT_ADMITTED: (
        {"specialist": "writer"},
        "no administrator has admitted writer for the work of others; `claudomator specialists admit` does that",
    ),
    RationaleCode.AWAY: ({}, "its agent is not connected, and its card has no address to wake it"),
    RationaleCode.EXCLUDED: ({"specialist": "writer"}, "writer is excluded by a rule of the policy"),
    RationaleCode.PRIMARY_NOT_NEEDED: (
        {"specialist": "writer"},
        "it addresses nobody, and the classifier says that writer need not answer",
    ),
    RationaleCode.PRIMARY_NOT_JUDGED: (
        {"specialist": "writer", "text": "timeout"},
        "it addresses nobody, and the classifier did not say whether writer should answer (timeout)",
    ),
    RationaleCode.GIVEN_BY_RULE: (
        {"rule": "secrets", "specialist": "auditor"},
        "rule secrets of the policy gives it to auditor",
    ),
    RationaleCode.PERMITTED: ({"rule": "docs"}, "the policy allows it by rule docs"),
    RationaleCode.REFUSED: (
        {"rule": "prod", "text": "not at night"},
        "rule prod of the policy refuses it: not at night",
    ),
    RationaleCode.NEEDS_APPROVAL: ({"rules": ("infra", "nights")}, "the policy requires approval (infra, nights)"),
    RationaleCode.APPROVED: (
        {"principal": "mara", "rules": ("infra",), "text": "seen"},
        "mara approved it (infra): seen",
    ),
    RationaleCode.VAGUE: ({"text": "fix it"}, "its text could be about anything: fix it"),
    RationaleCode.AMBIGUOUS: ({"specialists": ("editor", "writer")}, "none of editor, writer is clearly ahead"),
    RationaleCode.PICKED: (
        {"specialists": ("editor", "writer"), "specialist": "writer"},
        "none of editor, writer is clearly ahead, and the classifier picked writer",
    ),
    RationaleCode.GONE: ({"specialist": "writer"}, "there is no specialist writer any more"),
    RationaleCode.NAMED_GONE: (
        {"specialist": "writer"},
        "the task names writer, and there is no specialist of that id any more",
    ),
    RationaleCode.NOT_AHEAD: ({}, "a match, but not clearly ahead of the others"),
    RationaleCode.LESS_ALIKE: ({}, "a weaker match"),
    RationaleCode.AS_GOOD: ({}, "as good a match, but other signals decided"),
    RationaleCode.BELOW_THRESHOLD: ({}, "below the threshold"),
    RationaleCode.TOO_RISKY: (
        {"risk": Risk.HIGH, "ceiling": Risk.LOW},
        "takes tasks up to low risk, and this one has high risk",
    ),
    RationaleCode.LACKS: ({"lacking": ("gpu",)}, "lacks gpu"),
    RationaleCode.MESSAGE_MENTIONS: ({"specialists": ("editor", "writer")}, "the message mentions editor, writer"),
    RationaleCode.MESSAGE_ANSWERS: ({"specialist": "writer"}, "the message answers writer"),
    RationaleCode.FOR_PRIMARY: (
        {"specialist": "writer"},
        "it addresses nobody else, and writer is the channel's primary",
    ),
    RationaleCode.FOR_NOBODY: ({}, "it addresses nobody"),
    RationaleCode.MESSAGE_REFUSED: ({}, "policy allows no answer to it"),
    RationaleCode.TEXT: ({"text": "as an earlier version said"}, "as an earlier version said"),
}
"""Parameters of each code, and the words that they make."""
_STORED = TypeAdapter[Rationale](StoredRationale)
_SHOWN = TypeAdapter[Rationale | None](Known[Rationale])
_FALLBACK = TypeAdapter[Fallback](StoredFallback)


@pytest.mark.parametrize("code", RationaleCode)
def test_each_code_has_its_words_and_comes_back_as_it_was_stored(code: RationaleCode) -> None:
    params, words = EXAMPLES[code]
    value = rationale(code, **params)
    assert value.text == words
    assert _STORED.validate_json(value.model_dump_json()) == value


@pytest.mark.parametrize("code", RationaleCode)
def test_the_words_name_parameters_that_there_are(code: RationaleCode) -> None:
    assert set(code.parameters) <= RationaleParams.model_fields.keys()


def test_a_parameter_of_another_code_is_refused() -> None:
    with pytest.raises(TypeError, match="least_active has no agent"):
        rationale(RationaleCode.LEAST_ACTIVE, agent="codex")


def test_what_is_missing_is_not_stored() -> None:
    stored = rationale(RationaleCode.UNANSWERED, text=None).model_dump(mode="json")
    assert stored == {"code": "unanswered", "params": {}}


def test_words_of_an_earlier_version_are_read_as_words() -> None:
    stored = "least active; haiku is its fallback_model after overloaded of opus"
    assert _STORED.validate_python(stored) == rationale(RationaleCode.TEXT, text=stored)
    assert _STORED.validate_python(stored).text == stored
    assert _FALLBACK.validate_python("every agent is limited; tried all the same") is Fallback.ALL_LIMITED


def test_a_code_of_a_newer_daemon_is_none_for_a_client() -> None:
    assert _SHOWN.validate_python({"code": "drawn_by_lot", "params": {}}) is None


def test_a_stand_in_says_for_what_and_why() -> None:
    stand_in = StandIn(fallback="haiku", model="opus", after=Reason.OVERLOADED)
    assert stand_in.text == "haiku is its fallback_model after overloaded of opus"
    assert stand_in.model_copy(update={"model": None}).text == "haiku is its fallback_model after overloaded"
