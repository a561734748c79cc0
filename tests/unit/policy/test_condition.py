"""Conditions of rules: checked when they are written, so that none is silently never true."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.policy.condition import LONGEST, BadCondition, Condition, Undecided, context_of
from claudomator_py.policy.facts import paths_in, sample

SAMPLE = sample()
CONTEXT = context_of(SAMPLE.values)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"docs" in task.tags', True),
        ('"prod" in task.tags && !("oncall" in actor.roles)', False),
        ('task.paths.exists(p, p.startsWith("infra/") || p.endsWith(".tf"))', True),
        ('task.text.matches("(?i)(password|secret)")', False),
        ("spent.day.usd + task.budget.usd > limits.day.usd", False),
        ('task.tags.all(t, t in ["docs", "chore"]) && size(task.text) < 500', True),
        ("(now.hour >= 22 || now.hour < 6) && now.weekday <= 5", True),
        ('task.risk in ["medium", "high"]', False),
        ('task.name == "task.nothing" // task.nothing is no name', False),
        ('task["name"] == "sample"', True),
    ],
)
def test_what_is_true(text: str, expected: bool) -> None:
    assert Condition(text).applies(CONTEXT) is expected


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        ("task.risk ==", "has a syntax error at character 13", "https://cel.dev"),
        (
            "(" * 300 + "true" + ")" * 300,
            "has a syntax error at character 97: recursion limit of 96 exceeded",
            "https://cel.dev",
        ),
        ("foo.bar == 1", "uses `foo`, which is not a known name", "write one of actor, limits, now, spent, task"),
        ("true || foo", "uses `foo`, which is not a known name", "write one of actor, limits, now, spent, task"),
        ('true || task.riskk == "low"', "uses `task.riskk`, which no task has", "did you mean `task.risk`?"),
        ("has(task.deadline)", "uses `task.deadline`, which no task has", ""),
        ("spent.month.usd > 1.0", "uses `spent.month`, which no task has", ""),
        ('true || task.nothing.startsWith("x")', "uses `task.nothing`, which no task has", ""),
        ('task["nothing"] == "x"', "cannot be evaluated: there is no value 'nothing'", ""),
        ("task.tags[7] == 'x'", "cannot be evaluated: index out of bounds: 7", ""),
        ("1", "cannot be evaluated: is 1, which is neither true nor false", "true or false for every task"),
        (
            'task.name.matches("(")',
            "cannot be evaluated: Function 'matches' error: '(' not a valid regex",
            "true or false for every task",
        ),
        ("true || f(task.name)", "calls `f`, which is not a function", ""),
        ("task.tags.exists(t, t.x == 1)", "cannot be evaluated", ""),
        ('task.risk == "hgih"', 'compares `task.risk` with "hgih", which it never is', "did you mean `high`?"),
        ("task.risk == 3", "compares `task.risk` with 3, which it never is", "write one of high, low, medium"),
        ('actor.role in ["admin", "root"]', 'compares `actor.role` with "root"', ""),
        (f'task.name == "{"x" * LONGEST}"', "is longer than 2,000 characters", "split it"),
    ],
)
def test_what_is_refused(text: str, message: str, remedy: str) -> None:
    with pytest.raises(BadCondition) as refused:
        Condition(text)
    assert str(refused.value).startswith(message)
    assert remedy in refused.value.remedy


def test_a_condition_may_be_as_long_as_is_told() -> None:
    assert not Condition("false".ljust(LONGEST)).applies(CONTEXT)


@given(st.text(max_size=200))
def test_any_text_is_a_condition_or_refused(text: str) -> None:
    try:
        condition = Condition(text)
    except BadCondition:
        return
    assert isinstance(condition.applies(CONTEXT), bool)


def test_a_fault_for_one_task_is_told() -> None:
    condition = Condition('task.tags[0] == "docs"')
    values = SAMPLE.values
    values["task"]["tags"] = []
    with pytest.raises(Undecided):
        condition.applies(context_of(values))


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("Change infra/main.tf and ./infra/../infra/x.tf.", ("infra/main.tf", "infra/x.tf.")),
        ("See https://example.com/infra/main.tf", ()),
        ("In /srv/app/src/a.py and /etc/passwd", ("src/a.py", "/etc/passwd")),
        ("../other/secret.txt, setup.py", ("/srv/other/secret.txt", "setup.py")),
        ("nothing at all, and/or this", ("and/or",)),
    ],
)
def test_paths_that_a_text_names(text: str, paths: tuple[str, ...]) -> None:
    assert paths_in(text, "/srv/app") == paths
