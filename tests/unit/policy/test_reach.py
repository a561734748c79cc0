"""How far a task may act: what it says, what rules leave, and the default."""

import pytest

from claudomator_py.acts.reach import Reach
from claudomator_py.domain.routing import Constraints
from claudomator_py.domain.task import TaskSpec
from claudomator_py.policy.facts import Facts
from claudomator_py.policy.rule import Rule
from claudomator_py.policy.verdict import Policy


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
    one, other = Constraints(reach=Reach.PUBLISH), Constraints(reach=Reach.NETWORK, default_reach=Reach.TREE)
    assert one.and_those(other).reach is Reach.NETWORK
    assert one.and_those(other).default_reach is Reach.TREE
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
