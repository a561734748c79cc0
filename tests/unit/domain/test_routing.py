"""What routing leaves open of tiers."""

import pytest
from pydantic import ValidationError

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.routing import Constraints

FAST, BALANCED, POWERFUL = Tier.FAST, Tier.BALANCED, Tier.POWERFUL


@pytest.mark.parametrize(
    ("floor", "ceiling", "clamped"),
    [
        (None, None, [FAST, BALANCED, POWERFUL]),
        (BALANCED, None, [BALANCED, BALANCED, POWERFUL]),
        (None, BALANCED, [FAST, BALANCED, BALANCED]),
        (BALANCED, BALANCED, [BALANCED, BALANCED, BALANCED]),
        (FAST, POWERFUL, [FAST, BALANCED, POWERFUL]),
    ],
)
def test_a_tier_becomes_the_nearest_that_is_allowed(
    floor: Tier | None, ceiling: Tier | None, clamped: list[Tier]
) -> None:
    constraints = Constraints(tier_floor=floor, tier_ceiling=ceiling)

    assert [constraints.clamp(tier) for tier in (FAST, BALANCED, POWERFUL)] == clamped
    assert [tier for tier in Tier if constraints.allows(tier)] == sorted(set(clamped), key=list(Tier).index)


def test_a_floor_above_the_ceiling_is_refused() -> None:
    with pytest.raises(ValidationError, match="no tier is between the floor powerful and the ceiling fast"):
        Constraints(tier_floor=POWERFUL, tier_ceiling=FAST)


def test_what_leaves_everything_open_says_nothing() -> None:
    assert Constraints().text == "{}"
    assert not Constraints().bounds_tiers
    assert Constraints.parse(None) == Constraints()


def test_what_is_written_is_read_again_and_is_the_same_for_the_same() -> None:
    constraints = Constraints(tier_ceiling=BALANCED, tier_floor=FAST)

    assert constraints.text == '{"tier_floor":"fast","tier_ceiling":"balanced"}'
    assert Constraints.parse(constraints.text) == constraints


def test_one_tier_is_left_only_where_floor_and_ceiling_are_the_same() -> None:
    assert Constraints(tier_floor=FAST, tier_ceiling=FAST).only_tier is FAST
    assert Constraints(tier_floor=FAST, tier_ceiling=BALANCED).only_tier is None
    assert Constraints().only_tier is None
