"""How far a task may act: what it says, what rules leave, and the default."""

import pytest

from claudomator_py.acts import Reach
from claudomator_py.domain.routing import Constraints
from claudomator_py.domain.task import TaskSpec
from claudomator_py.policy.facts import Facts
from claudomator_py.policy.rule import Rule
from claudomator_py.policy.verdict import Policy, Verdict


def spec(reach: Reach | None = None) -> TaskSpec:
    return TaskSpec(name="t", instructions="Do it.", reach=reach)


@pytest.mark.parametrize(
    ("asked", "ruled", "left"),
    [
        (None, None, None),
        (None, Reach.TREE, Reach.TREE),
        (Reach.ANY, Reach.NETWORK, Reach.NETWORK),
        (Reach.TREE, Reach.PUBLISH, Reach.TREE),
        (Reach.PUBLISH, None, Reach.PUBLISH),
    ],
)
def test_a_rule_sets_it_or_lowers_it(asked: Reach | None, ruled: Reach | None, left: Reach | None) -> None:
    assert Constraints(reach=ruled).limited(spec(asked)).reach is left


def test_of_several_the_nearest_counts() -> None:
    constraints, other = Constraints(reach=Reach.PUBLISH), Constraints(reach=Reach.NETWORK, default_reach=Reach.TREE)
    assert constraints.and_those(other).reach is Reach.NETWORK
    assert constraints.and_those(other).default_reach is Reach.TREE
    assert Constraints().and_those(Constraints()).reach is None


def test_the_default_is_no_demand() -> None:
    assert Constraints(default_reach=Reach.NETWORK).limited(spec()).reach is None


def test_rules_add_up() -> None:
    policy = Policy([Rule(name="a", reach=Reach.PUBLISH), Rule(name="b", reach=Reach.NETWORK)])
    verdict = policy.judge(Facts(spec()))
    assert verdict.constraints.reach is Reach.NETWORK
    assert [check.effect for check in verdict.checks] == ["reach", "reach"]


def test_they_compare() -> None:
    assert sorted(Reach) == list(Reach)
    assert Reach.TREE < Reach.ANY
    assert Reach.PUBLISH >= Reach.NETWORK


def judged(condition: str, asked: Reach | None, **effect: object) -> Verdict:
    """What a rule with that condition says of a task that asks for that reach."""
    return Policy([Rule.model_validate({"name": "r", "when": condition, **effect})]).judge(Facts(spec(asked)))


@pytest.mark.parametrize("asked", [None, *Reach])
def test_a_condition_reads_what_the_task_asks_for(asked: Reach | None) -> None:
    text = "" if asked is None else asked.value
    for word in ("", *Reach):
        verdict = judged(f'task.reach == "{word}"', asked, deny="no")
        assert (verdict.denied_by is not None) is (word == text)


@pytest.mark.parametrize(
    ("asked", "left"), [(None, Reach.TREE), (Reach.ANY, None), (Reach.PUBLISH, None), (Reach.NETWORK, Reach.TREE)]
)
def test_a_rule_demands_one_where_its_condition_says_so(asked: Reach | None, left: Reach | None) -> None:
    verdict = judged('!(task.reach in ["publish", "any"])', asked, reach="tree")
    assert verdict.constraints.reach is left
    assert verdict.constraints.reach_rule == (None if left is None else "r")


@pytest.mark.parametrize("word", ["far", "Network", "none"])
def test_a_word_that_no_reach_is_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match=word):
        Policy([Rule.model_validate({"name": "r", "when": f'task.reach == "{word}"', "deny": "no"})])


def test_who_says_so_is_known() -> None:
    constraints = Constraints(reach=Reach.NETWORK, reach_rule="one", default_reach=Reach.TREE)
    other = Constraints(reach=Reach.TREE, reach_rule="other", is_reach_configured=True)
    both = (constraints.and_those(other), other.and_those(constraints))
    assert {left.reach_rule for left in both} == {"other"}
    reach = {left.reach_of(asked) for left in both for asked in (None, Reach.ANY, Reach.PUBLISH)}
    assert [origin.text for origin in reach if origin] == ["tree (rule other)"]
    assert Constraints().reach_of(None) is None
    texts = [
        (Constraints(default_reach=Reach.NETWORK), None, "network (default)"),
        (Constraints(default_reach=Reach.NETWORK, is_reach_configured=True), None, "network (configuration)"),
        (Constraints(default_reach=Reach.NETWORK), Reach.ANY, "any (task)"),
        (other, Reach.TREE, "tree (task)"),
    ]
    for left, asked, text in texts:
        origin = left.reach_of(asked)
        assert origin is not None
        assert origin.text == text
