"""What of a task decides who is eligible for it: tasks that differ in nothing else are of one lane."""

from typing import Any

import pytest

from claudomator_py.domain.run import ResumedConversation
from claudomator_py.scheduler.lanes import demands, eligibility, held_by, hint, hint_of
from claudomator_py.scheduler.snapshot import HeldConversation
from tests.fakes.steps import spec

REF = ResumedConversation(run_id="r1", agent="claude", kind="claude", tier=None, revision=1)


def test_what_makes_no_difference_is_not_in_it() -> None:
    plain = eligibility(spec("a"))
    assert plain == "[null,false,null,null]"
    for fields in ({"working_dir": "/srv/x"}, {"env": {"CI": "1"}}, {"budget": {"runs": 3}}, {"priority": "low"}):
        assert eligibility(spec("b", **fields)) == plain, fields
    assert demands(spec("a", budget={"runs": 3})) == {}


def test_a_conversation_is_with_whoever_has_it_whatever_the_hint_is() -> None:
    asking = spec("a", agent={"type": "claude", "strict": True, "model": "opus"})
    assert hint(asking) == hint_of("claude", strict=True) != hint_of("claude", strict=False)
    assert hint(asking, REF) == ""
    assert hint(asking, REF.model_copy(update={"given_up": True})) == hint(asking)


@pytest.mark.parametrize(
    ("entry", "other"),
    [
        ({"agent": {"type": "claude"}}, {"agent": {"type": "codex"}}),
        ({}, {"max_turns": 1}),
        ({}, {"host": "cluster"}),
        ({}, {"needs": {"cpus": 2}}),
        ({"host": "cluster"}, {"host": "local"}),
        ({}, {"budget": {"usd": 1.0}}),
        ({"budget": {"usd": 1.0}}, {"budget": {"tokens": 10}}),
        ({"add_dirs": ["/srv/lib"]}, {"add_dirs": ["/srv/l*"]}),
        ({"add_dirs": ["/srv/lib"]}, {"add_dirs": ["/srv/l?b"]}),
    ],
)
def test_what_agents_are_refused_for_makes_another_lane(entry: dict[str, Any], other: dict[str, Any]) -> None:
    assert eligibility(spec("t", **entry)) != eligibility(spec("t", **other))


def test_folders_without_a_pattern_are_no_patterns() -> None:
    assert demands(spec("t", add_dirs=["/srv/lib"])) == {"add_dirs": "qualified"}
    assert demands(spec("t", add_dirs=["/srv/l*"])) == {"add_dirs": "qualified", "folder_patterns": True}


@pytest.mark.parametrize(
    ("tools", "shape"),
    [
        (["Bash", "web*"], "plain"),
        (["Bash", "Bash(git log:*)"], "qualified"),
        (["Read(a,b)"], "qualified, with commas"),
    ],
)
def test_one_tool_that_is_not_a_plain_name_makes_the_list_another(tools: list[str], shape: str) -> None:
    assert demands(spec("t", permissions={"allowed_tools": tools})) == {"allowed_tools": shape}


def test_a_task_that_leaves_an_agent_no_tool_demands_that() -> None:
    assert demands(spec("t", permissions={"tools": []})) == {"tools": True}


def test_a_conversation_is_a_lane_of_its_holder() -> None:
    assert eligibility(spec("t"), REF) != eligibility(spec("t"))
    assert eligibility(spec("t"), REF) == eligibility(spec("t"), REF.model_copy(update={"run_id": "r2"}))
    assert eligibility(spec("t"), REF) != eligibility(spec("t"), REF.model_copy(update={"agent": "other"}))
    assert eligibility(spec("t"), REF) != eligibility(spec("t"), REF.model_copy(update={"optional": True}))


def test_a_fresh_conversation_is_held_by_nobody() -> None:
    assert held_by(None, spec("t")) is None
    assert held_by(REF.model_copy(update={"given_up": True}), spec("t")) is None
    assert eligibility(spec("t"), REF.model_copy(update={"given_up": True})) == eligibility(spec("t"))


def test_a_conversation_of_its_own_yields_to_nobody() -> None:
    held = HeldConversation(run="r1", agent="claude", kind="claude")
    assert held_by(REF, spec("t", continues="first")) == held


@pytest.mark.parametrize(("on_limit", "yields"), [("failover", "limited"), ("wait", "unable")])
def test_a_conversation_of_another_task_yields_as_on_limit_says(on_limit: str, yields: str) -> None:
    task = spec("t", continues="first", on_limit=on_limit)
    others = held_by(REF.model_copy(update={"follows": "r1"}), task)
    assert others is not None
    assert (others.run, others.of, others.yields) == ("r1", "first", yields)
    own = held_by(REF.model_copy(update={"follows": "r0"}), task)
    assert own is not None
    assert (own.run, own.of, own.yields) == ("r1", None, yields)
