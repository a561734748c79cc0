"""What rules say of a task: in order, adding up, and never by accident."""

from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from claudomator_py.domain.principal import Principal, Role
from claudomator_py.domain.routing import Assessment, Constraints, Risk, Sign
from claudomator_py.domain.task import PermissionMode, Permissions
from claudomator_py.policy.facts import MAX_PATHS, Facts, sample
from claudomator_py.policy.rule import Rule
from claudomator_py.policy.verdict import Demanded, Policy, Verdict, with_built_in

SAMPLE = sample()
HARMLESS = Assessment(Risk.LOW)
HARMFUL = Assessment(Risk.HIGH, ((Sign.HARMFUL, ""),))


def rule(name: str = "a", **fields: Any) -> Rule:
    return Rule.model_validate({"name": name, **fields})


def judge(*rules: Rule, facts: Facts = SAMPLE) -> Verdict:
    return Policy(rules).judge(facts)


def test_nothing_is_said_without_rules() -> None:
    assert judge() == Verdict()


def test_the_first_that_denies_ends_it() -> None:
    verdict = judge(rule(when="false", deny="never"), rule("b", deny="not today"), rule("c", deny="later"))
    assert (verdict.denied_by, verdict.denial) == ("b", "not today")
    assert [(check.rule, check.allowed, check.matched) for check in verdict.checks] == [
        ("a", True, False),
        ("b", False, True),
    ]


def test_what_allows_ends_the_list_and_keeps_what_came_before() -> None:
    verdict = judge(rule(approve={"by": ["admin"]}), rule("b", allow=True), rule("c", deny="no"))
    assert verdict.allowed_by == "b"
    assert verdict.denied_by is None
    assert verdict.demanded == Demanded(("a",), (("admin",),))


def test_approvals_add_up() -> None:
    rules = (rule(approve={"by": ["admin"], "within": "12h"}), rule("b", approve={"by": ["mara"], "within": "2h"}))
    assert judge(*rules).demanded == Demanded(("a", "b"), (("admin",), ("mara",)), 2 * 3_600_000)


@pytest.mark.parametrize(
    "effect",
    [{"deny": "no"}, {"approve": {}}, {"tier": {"ceiling": "fast"}}, {"risk": "high"}, {"allow": True, "risk": "high"}],
)
def test_a_fault_of_a_rule_demands_approval(effect: dict[str, Any]) -> None:
    facts = replace(SAMPLE, actor=Principal("ann", Role.OPERATE, "("))
    verdict = judge(rule(when="task.text.matches(task.organisation)", **effect), facts=facts)
    assert verdict.demanded is not None
    assert verdict.demanded.rules == ("a",)
    assert (verdict.checks[0].matched, verdict.checks[0].allowed) == (None, False)
    assert "could not be evaluated" in str(verdict.checks[0].detail)


def test_no_rule_on_paths_is_hidden_from_by_many_of_them() -> None:
    infra = rule(when='task.paths.exists(p, p.startsWith("infra/"))', deny="no")
    many = tuple(f"src/{number}.py" for number in range(MAX_PATHS))
    assert judge(infra, facts=replace(SAMPLE, paths=many)).demanded is None
    verdict = judge(infra, rule("b", when='task.name == "other"', deny="no"), facts=replace(SAMPLE, paths=(*many, "x")))
    assert verdict.demanded == Demanded(("a",))
    assert "names more than 200 paths" in str(verdict.checks[0].detail)


def test_a_fault_never_allows() -> None:
    facts = replace(SAMPLE, actor=Principal("ann", Role.OPERATE, "("))
    verdict = judge(rule(when="task.text.matches(task.organisation)", allow=True), rule("b", deny="no"), facts=facts)
    assert (verdict.allowed_by, verdict.denied_by) == (None, "b")


def test_a_fault_of_a_rule_that_restricts_nothing_demands_nothing() -> None:
    facts = replace(SAMPLE, actor=Principal("ann", Role.OPERATE, "("))
    verdict = judge(rule(when="task.text.matches(task.organisation)", allow=True), facts=facts)
    assert (verdict.allowed_by, verdict.demanded) == (None, None)
    assert (verdict.checks[0].matched, verdict.checks[0].allowed) == (None, True)


def test_what_a_fault_demands_is_demanded_beside_all_else_and_by_whom_the_rule_names() -> None:
    facts = replace(SAMPLE, actor=Principal("ann", Role.OPERATE, "("))
    faulty = rule("b", when="task.text.matches(task.organisation)", approve={"by": ["mara"]})
    verdict = judge(rule(approve={"by": ["admin"]}), faulty, facts=facts)
    assert verdict.demanded == Demanded(("a", "b"), (("admin",), ("mara",)))


def test_risk_is_only_raised_and_later_rules_see_it() -> None:
    raising = rule(risk="high")
    seeing = rule("b", when='task.risk == "high"', deny="too risky")
    assert judge(raising, seeing).denied_by == "b"
    assert judge(seeing, raising).denied_by is None
    assert judge(rule(risk="low"), facts=replace(SAMPLE, risk=Risk.HIGH)).risk is Risk.HIGH


def test_bounds_narrow() -> None:
    verdict = judge(
        rule(tier={"floor": "fast", "ceiling": "powerful"}, agents=["claude", "codex"]),
        rule("b", tier={"ceiling": "balanced"}, agents=["claude"], exclude_agents=["claude-2"], isolation="worktree"),
        rule("c", concurrency=2, exclude_specialists=["dba"], specialist="writer", hosts=["lab", "attic", "local"]),
        rule("d", hosts=["lab", "attic"], exclude_hosts=["attic"]),
    )
    left = verdict.constraints
    assert (left.tier_floor, left.tier_ceiling, left.isolated) == ("fast", "balanced", True)
    assert left.admits("claude", "claude")
    assert not left.admits("codex", "codex")
    assert not left.admits("claude-2", "claude")
    assert [(cap.rule, cap.most) for cap in left.caps] == [("c", 2)]
    assert (verdict.specialist, verdict.excluded) == ("writer", frozenset({"dba"}))
    assert left.open_hosts(["local", "attic", "lab"]) == ("lab",)
    assert Constraints().and_those(left).open_hosts(["attic", "lab"]) == ("lab",)
    assert Constraints.parse(left.text) == left


@pytest.mark.parametrize(
    ("first", "second", "left"),
    [
        ({"floor": "powerful"}, {"floor": "fast"}, ("powerful", None)),
        ({"ceiling": "fast"}, {"ceiling": "powerful"}, (None, "fast")),
        ({"floor": "balanced"}, {"ceiling": "balanced"}, ("balanced", "balanced")),
        ({"floor": "fast"}, {"floor": "balanced", "ceiling": "balanced"}, ("balanced", "balanced")),
    ],
)
def test_of_two_floors_the_stronger_counts_and_of_two_ceilings_the_weaker(
    first: dict[str, str], second: dict[str, str], left: tuple[str | None, str | None]
) -> None:
    verdict = judge(rule(tier=first), rule("b", tier=second))
    assert verdict.denied_by is None
    assert (verdict.constraints.tier_floor, verdict.constraints.tier_ceiling) == left


def test_a_floor_that_an_earlier_rule_has_raised_contradicts_a_later_ceiling() -> None:
    assert (
        judge(rule(tier={"floor": "powerful"}), rule("b", tier={"floor": "fast", "ceiling": "balanced"})).denied_by
        == "b"
    )


def test_tools_are_limited_by_all_rules_and_nobody_is_isolated_by_a_rule_that_does_not_say_so() -> None:
    both = judge(rule(tools={"disallowed_tools": ["Web"]}), rule("b", tools={"disallowed_tools": ["Bash"]})).constraints
    assert both.tools is not None
    assert set(both.tools.limited(Permissions()).disallowed_tools) == {"Bash", "Web"}
    assert not both.isolated


def test_an_approval_that_says_no_time_and_nobody_shortens_no_other_and_names_nobody() -> None:
    verdict = judge(rule(approve={}), rule("b", approve={"within": "2h"}))
    assert verdict.demanded == Demanded(("a", "b"), (), 2 * 3_600_000)


def test_a_check_says_whether_its_rule_alone_would_let_the_task_begin() -> None:
    verdict = judge(rule(risk="low"), rule("b", approve={}), rule("c", specialist="x"), rule("d", specialist="y"))
    assert [(check.rule, check.allowed) for check in verdict.checks] == [
        ("a", True),
        ("b", False),
        ("c", True),
        ("d", False),
    ]


@pytest.mark.parametrize(("seen", "ending"), [("", ""), ("drop the table", ": drop the table")])
def test_a_built_in_rule_says_by_which_words_it_judged(seen: str, ending: str) -> None:
    assessment = Assessment(Risk.HIGH, ((Sign.HARMFUL, seen),))
    harmful = with_built_in(Verdict(), assessment, reviews=True)
    assert (harmful.denial, harmful.checks[0].allowed) == (f"its text asks for what would do harm{ending}", False)
    risky = with_built_in(Verdict(risk=Risk.HIGH), HARMLESS, reviews=True, by_model=seen)
    assert risky.checks[0].detail == (seen or None), "the rule's name says the rest"


@pytest.mark.parametrize(
    "second",
    [
        {"tier": {"floor": "powerful"}},
        {"specialist": "dba"},
        {"exclude_specialists": ["writer"]},
        {"exclude_agents": ["codex", "claude"]},
        {"exclude_hosts": ["local"]},
    ],
)
def test_rules_that_leave_nothing_refuse(second: dict[str, Any]) -> None:
    first = rule(tier={"ceiling": "fast"}, specialist="writer", agents=["claude", "codex"], hosts=["local"])
    for rules in ((first, rule("b", **second)), (rule(**second), first.model_copy(update={"name": "b"}))):
        verdict = judge(*rules)
        assert verdict.denied_by == "b"
        assert "rule" in str(verdict.denial)


@pytest.mark.parametrize("second", [{"exclude_agents": ["claude"]}, {"agents": ["codex"]}, {"agents": ["alpha"]}])
def test_rules_that_may_leave_an_agent_do_not_refuse(second: dict[str, Any]) -> None:
    assert judge(rule(agents=["claude", "codex"]), rule("b", **second)).denied_by is None


@pytest.mark.parametrize(
    ("asked", "limit", "left"),
    [
        ({"mode": "bypassPermissions"}, {"mode": "acceptEdits"}, {"mode": "acceptEdits"}),
        ({"mode": "plan"}, {"mode": "acceptEdits"}, {"mode": "plan"}),
        ({}, {"allowed_tools": ["Read"]}, {}),
        ({"allowed_tools": ["Read", "Bash(rm -rf x)"]}, {"allowed_tools": ["Read"]}, {"allowed_tools": ("Read",)}),
        ({"allowed_tools": ["Bash(ls)"]}, {"allowed_tools": ["Bash"]}, {"allowed_tools": ("Bash(ls)",)}),
        ({"allowed_tools": ["Bash"]}, {"allowed_tools": ["Bash(ls)"]}, {}),
        ({"disallowed_tools": ["Web"]}, {"disallowed_tools": ["Bash"]}, {"disallowed_tools": ("Bash", "Web")}),
    ],
)
def test_limits_grant_nothing(asked: dict[str, Any], limit: dict[str, Any], left: dict[str, Any]) -> None:
    limits = judge(rule(tools=limit)).constraints.tools
    assert limits is not None
    assert limits.limited(Permissions.model_validate(asked)) == Permissions.model_validate(
        {"mode": PermissionMode.DEFAULT, **left}
    )


def test_built_in_rules_give_way_to_one_that_allows() -> None:
    high = Verdict(risk=Risk.HIGH)
    assert with_built_in(high, HARMFUL, reviews=True).denied_by == "harmful"
    held = with_built_in(high, HARMLESS, reviews=True)
    assert held.demanded == Demanded(("high-risk",))
    assert with_built_in(high, HARMFUL, reviews=False) == high
    allowed = judge(rule(allow=True), facts=replace(SAMPLE, risk=Risk.HIGH))
    assert with_built_in(allowed, HARMFUL, reviews=True) == allowed


@pytest.mark.parametrize("risk", Risk)
def test_only_a_high_risk_is_looked_at_by_a_person_without_a_rule(risk: Risk) -> None:
    verdict = with_built_in(Verdict(risk=risk), HARMLESS, reviews=True)
    assert verdict.demanded == (Demanded(("high-risk",)) if risk is Risk.HIGH else None)


def test_the_hash_is_of_what_rules_say_and_of_no_key_that_they_leave_out() -> None:
    """A version that knows another key judges nothing again."""
    assert Policy([rule(deny="no")]).hash == Policy([rule(deny="no", allow=False)]).hash
    assert Policy([rule(deny="no")]).hash == sha256(b'[{"deny":"no","name":"a"}]').hexdigest()
    assert Policy([rule(deny="no")]).hash != Policy([rule(deny="yes")]).hash
    assert Policy().hash is None


@pytest.mark.parametrize(
    ("rules", "verdict", "named"),
    [
        ((), "allowed", ()),
        ((rule("ok", allow=True),), "allowed", ("ok",)),
        ((rule("a", approve={}), rule("b", approve={"by": ["admin"]})), "held", ("a", "b")),
        ((rule("a", approve={}), rule("ok", allow=True)), "held", ("a",)),
        ((rule("a", approve={}), rule("no", deny="never")), "denied", ("no",)),
    ],
)
def test_a_verdict_is_shown_with_the_rules_that_make_it(
    rules: tuple[Rule, ...], verdict: str, named: tuple[str, ...]
) -> None:
    shown = judge(*rules, rule("k", exclude_specialists=["b", "a"])).shown("t")
    assert (shown.name, shown.verdict, shown.rules) == ("t", verdict, named)
    assert all(name in shown.reason for name in named)
    assert (shown.approval is not None) is any(rule.approve is not None for rule in rules)
    ended = any(rule.allow or rule.deny for rule in rules)
    assert shown.excluded_specialists == (() if ended else ("a", "b"))


def test_a_value_is_looked_at_if_some_rule_does() -> None:
    policy = Policy(
        [rule(when="spent.day.runs > 1", deny="no"), rule("b", when="now.hour < 8", deny="no"), rule("c", deny="no")]
    )
    assert [policy.mentions(name) for name in ("spent", "now", "actor")] == [True, True, False]
