"""Whose word counts first of those who say who does a task, and where a person is asked instead."""

from dataclasses import replace
from typing import Any

import pytest

from claudomator_py.domain.decision import Versions
from claudomator_py.domain.rationale import RationaleCode
from claudomator_py.domain.routing import Risk
from claudomator_py.embed import Hashed
from claudomator_py.routing.calibration import calibration_for
from claudomator_py.routing.ranking import Needs, RoutingRules
from claudomator_py.routing.role import Assignments, explicit_choice
from claudomator_py.scheduler.records import Route, SpecialistRecord
from claudomator_py.schema.routing_settings import Preset
from tests.fakes.handoffs import handed

RULES = RoutingRules(calibration_for(Preset.CALIBRATED, Hashed().id), versions=Versions(registry="these"))
ALL = frozenset({"by-rule", "by-hand", "handed", "named", "addressed", "before", "rest"})


def given(
    claims: Assignments,
    seen: frozenset[str] = ALL,
    excluded: frozenset[str] = frozenset(),
    default: str | None = None,
    skill: str | None = None,
) -> SpecialistRecord | None:
    return explicit_choice(claims, seen, Needs(excluded=excluded), replace(RULES, default=default), skill)


def code(record: SpecialistRecord | None) -> tuple[RationaleCode | str, str | None] | None:
    """Why, and who does it, or of whom it speaks where a person is asked."""
    if record is None:
        return None
    asked = record.route is Route.CLARIFY
    assert (record.specialist is None) or not asked
    assert record.versions == RULES.versions
    return record.reason.code, record.reason.params.specialist if asked else record.specialist


EVERYBODY = Assignments(
    by_rule="by-rule",
    rule="give",
    by_hand=" by-hand ",
    handed=handed("handed"),
    named="named",
    addressed="addressed",
    before="before",
)


def test_a_rule_counts_before_a_person_who_hands_it_on_its_file_its_text_and_its_thread() -> None:
    claims = EVERYBODY
    orders: list[tuple[dict[str, Any], object]] = [
        ({"by_rule": None}, (RationaleCode.BY_HAND, "by-hand")),
        ({"by_hand": None}, (RationaleCode.HANDED_ON, "handed")),
        ({"handed": None}, (RationaleCode.NAMED, "named")),
        ({"named": None}, (RationaleCode.MENTIONED, "addressed")),
        ({"addressed": None}, (RationaleCode.CONTINUED, "before")),
        ({"before": None}, None),
    ]
    by_rule = given(claims, skill="weld")
    assert by_rule is not None
    assert code(by_rule) == (RationaleCode.GIVEN_BY_RULE, "by-rule")
    assert (by_rule.reason.params.rule, by_rule.skill) == ("give", None)
    for taken, expected in orders:
        claims = replace(claims, **taken)
        assert code(given(claims)) == expected


@pytest.mark.parametrize(
    "claims",
    [
        Assignments(by_hand="by-hand"),
        Assignments(named="named"),
        Assignments(addressed="addressed"),
        Assignments(before="before"),
    ],
)
def test_the_skill_that_the_task_asks_for_is_kept(claims: Assignments) -> None:
    record = given(claims, skill="weld")
    assert record is not None
    assert (record.route, record.skill) == (Route.SPECIALIST, "weld")


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        (Assignments(by_rule="ghost"), (RationaleCode.GONE, "ghost")),
        (Assignments(by_hand="ghost"), None),
        (Assignments(by_hand="ghost", named="named"), (RationaleCode.NAMED, "named")),
        (Assignments(handed=handed("ghost")), (RationaleCode.GONE, "ghost")),
        (Assignments(named="ghost"), (RationaleCode.NAMED_GONE, "ghost")),
        (Assignments(before="ghost"), None),
    ],
)
def test_a_person_is_asked_where_whoever_was_given_it_is_gone_and_not_where_nobody_promised_them(
    claims: Assignments, expected: tuple[RationaleCode, str] | None
) -> None:
    assert code(given(claims)) == expected


@pytest.mark.parametrize(
    ("default", "by", "excluded", "who"),
    [
        ("rest", "ann", (), "rest"),
        ("rest", "rest", (), None),
        ("rest", "ann", ("rest",), None),
        ("rest", "ann", ("ann",), "rest"),
        ("ghost", "ann", (), None),
        (None, "ann", (), None),
    ],
)
def test_by_default_the_default_specialist_continues_unless_it_failed_or_may_not(
    default: str | None, by: str, excluded: tuple[str, ...], who: str | None
) -> None:
    record = given(Assignments(handed=handed(None, by, risk=Risk.LOW)), excluded=frozenset(excluded), default=default)
    assert record is not None
    assert (record.route, record.specialist, record.risk) == (Route.DEFAULT, who, Risk.LOW)


@pytest.mark.parametrize(
    "claims",
    [
        Assignments(by_rule="rest"),
        Assignments(by_hand="rest"),
        Assignments(handed=handed("rest")),
        Assignments(named="rest"),
        Assignments(addressed="rest"),
        Assignments(before="rest"),
    ],
)
def test_who_is_excluded_is_given_nothing_by_anybody(claims: Assignments) -> None:
    assert code(given(claims, excluded=frozenset({"rest"}))) == (RationaleCode.EXCLUDED, "rest")
    assert code(given(claims, excluded=frozenset({"named"}))) != (RationaleCode.EXCLUDED, "rest")
