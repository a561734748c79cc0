"""A task whose conversation an agent has: it waits for that one, or is left to another as far as it yields."""

import pytest

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.blocked import BlockCode, Blocked, Why, blocked
from claudomator_py.domain.blocked_words import blocked_text
from claudomator_py.scheduler.admission import admit
from claudomator_py.scheduler.records import DecisionRecord
from claudomator_py.scheduler.snapshot import HeldConversation
from tests.fakes.configuration import rules
from tests.unit.scheduler.situations import HOLD, IDLE, agent, decide, head, waits

REMEDY = "configure it again, or cancel the task and restart it without resume"
TALK = HeldConversation(run="41c98f14-0000-5000-8000-000000000000", agent="claude", kind="claude")


def test_a_conversation_goes_on_where_it_is_whatever_the_hint_says() -> None:
    for task in (head(1, conversation=TALK), head(1, conversation=TALK, agent_type="codex", strict=True)):
        record = decide(task, agent("claude", active=1), agent("codex"))
        assert (record.agent, record.reason.text) == ("claude", "resumes the conversation of run 41c98f14 on claude")
        codex = next(candidate for candidate in record.candidates if candidate.agent == "codex")
        assert codex.rejected == blocked(BlockCode.NO_CONVERSATION, agent="codex")


def test_it_waits_for_the_agent_that_has_it_and_says_why() -> None:
    task, codex = head(1, conversation=TALK), agent("codex")
    why = "resumes the conversation of run 41c98f14 on claude"
    busy = waits(task, agent("claude", active=2), codex)
    assert (busy.why, blocked_text(busy)) == (Why.SLOTS, f"{why}: claude is full (2 of 2 slots)")
    limited = waits(task, agent("claude", hold=HOLD), codex)
    assert (limited.why, limited.until) == (Why.LIMITED, HOLD.until)
    assert blocked_text(limited).startswith(f"{why}: claude is limited (")
    for gone in (agent("claude-2", kind="claude"), agent("claude", kind="gemini")):
        text = blocked_text(waits(task, gone, codex))
        assert text == f"{why}, which is no longer configured; {REMEDY}"


def test_it_goes_on_on_an_agent_that_is_chosen_by_name_only() -> None:
    record = decide(head(1, conversation=TALK), agent("claude", auto_select=False), agent("codex"))
    assert record.agent == "claude"
    assert next(seen for seen in record.candidates if seen.agent == "claude").eligible


def test_it_keeps_its_tier_unless_another_is_asked_for() -> None:
    kept = decide(head(1, conversation=TALK, kept_tier=Tier.FAST), agent("claude"))
    assert (kept.model, kept.classification.cause) == ("haiku", "a continued conversation keeps its tier")
    assert decide(head(1, conversation=TALK, kept_tier=Tier.FAST, tier=Tier.POWERFUL), agent("claude")).model == "opus"


@pytest.mark.parametrize(
    ("how", "goes_on_although"),
    [
        ({}, {"unable", "limited", "full"}),
        ({"optional": True}, set()),
        ({"yields": "unable"}, {"limited", "full"}),
        ({"yields": "limited"}, {"full"}),
    ],
)
def test_a_conversation_is_left_for_another_agent_as_far_as_it_yields(
    how: dict[str, object], goes_on_although: set[str]
) -> None:
    task = head(1, conversation=HeldConversation(run="run", agent="claude", kind="claude").model_copy(update=how))
    assert decide(task, agent("claude", active=1), agent("codex")).agent == "claude", "it can go on"
    unfit: dict[str, dict[str, object]] = {
        "unable": {"problem": "not on PATH"},
        "limited": {"hold": HOLD},
        "full": {"active": 2},
    }
    for name, state in unfit.items():
        verdict = admit(task, (agent("claude", **state), agent("codex")), rules(), IDLE)
        assert isinstance(verdict, Blocked) == (name in goes_on_although), name
        if isinstance(verdict, DecisionRecord):
            assert verdict.agent == "codex"


@pytest.mark.parametrize("how", [{"optional": True}, {"yields": "unable"}, {"yields": "limited"}])
def test_a_conversation_that_may_be_left_is_left_when_nobody_has_it(how: dict[str, object]) -> None:
    record = decide(head(1, conversation=TALK.model_copy(update=how)), agent("codex"))
    assert (record.agent, record.reason.text) == ("codex", decide(head(2), agent("codex")).reason.text)
