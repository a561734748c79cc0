"""Conditions of rules: checked when they are written, so that none is silently never true."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.policy.condition import MAX_LENGTH, BadCondition, Condition
from claudomator_py.policy.expression import Unevaluated, context_of
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
        ('task.name == "task.risk == \'hgih\' // size(" // task.tier == "fats"', False),
        ('size(task.tags) > 0 && task.tags[0] == "docs"', True),
        ('task.name.matches("^[0-9]+$") && int(task.name) > 3', False),
        ("limits.day.usd < 1000.0 && int(limits.day.usd) > 5", True),
        ("task.budget.usd > 0.0 ? 1.0 / task.budget.usd == 1.0 : false", True),
        ('task.source != "run" && !("oncall" in actor.roles) && now.date < "1970-01-02"', True),
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
            'has a pattern at character 19 that is no regular expression, "(": unclosed group',
            "https://docs.rs/regex",
        ),
        ("true || f(task.name)", "calls `f`, which is not a function", ""),
        ("task.tags.exists(t, t.x == 1)", "cannot be evaluated", ""),
        ('task.risk == "hgih"', 'compares `task.risk` with "hgih", which it never is', "did you mean `high`?"),
        ("task.risk == 3", "compares `task.risk` with 3, which it never is", "write one of high, low, medium"),
        ('actor.role in ["admin", "root"]', 'compares `actor.role` with "root"', ""),
        ('"hgih" == task.risk', 'compares `task.risk` with "hgih"', "did you mean `high`?"),
        ('true || task["risk"] != r"hgih"', 'compares `task.risk` with "hgih"', "did you mean `high`?"),
        (
            "false && task.tier in ['fast', 'balancd']",
            'compares `task.tier` with "balancd"',
            "did you mean `balanced`?",
        ),
        ('task.source == "fiel"', 'compares `task.source` with "fiel"', "did you mean `file`?"),
        ('"amdin" in actor.roles', 'looks for "amdin" in `actor.roles`', "did you mean `admin`?"),
        ("now.weekday == 0", "compares `now.weekday` with 0", "write one of 1, 2"),
        ('now.hour == "22"', 'compares `now.hour` with "22"', ""),
        ("task.name == 3", "compares `task.name` with 3, which it never is", "a text, in quotes"),
        ('task.approval == "true"', 'compares `task.approval` with "true"', "true or false"),
        ('task.tags == "docs"', 'compares `task.tags` with "docs"', 'write `"docs" in task.tags`'),
        ('actor == "ann"', 'compares `actor` with "ann"', ""),
        (
            'false && task.tags.exists(t, t.matches("[a"))',
            'has a pattern at character 40 that is no regular expression, "[a": unclosed character class',
            "https://docs.rs/regex",
        ),
        ('false && matches(task.text, "(?=a)")', "has a pattern at character 29", "without look-around"),
        ("spent.day.usd * 2 > 5.0", "cannot be evaluated: Unsupported operation: double * int", "write 1.0 for 1"),
        ('"x" in task.tags && 1 + 1.5 > task.budget.usd', "cannot be evaluated at character 21", "write 1.0 for 1"),
        ('task.name == "x" && task.name > 3', "cannot be evaluated at character 21", "nothing is converted by itself"),
        ("int(limits.day.usd) > 5", "cannot be evaluated where the day has no limit", "ask first"),
        (
            '"prod" in task.tags && int(limits.day.usd) > 5',
            "cannot be evaluated at character 24, `int(limits.day.usd) > 5`, where the day has no limit",
            "ask first",
        ),
        ('task.tags[0] == "a"', "cannot be evaluated for a task that says nothing but its text: index", "ask first"),
        (
            'task.risk == "high" ? !(task.tags[0] == "a") : task.approval',
            'cannot be evaluated at character 25, `task.tags[0] == "a"`, for a task that says nothing but its text',
            "ask first",
        ),
        ('{"low": true, "medium": false}[task.risk]', 'cannot be evaluated where `task.risk` is "high"', ""),
        ('"x" in task.tags && 100 / now.hour > 5', "cannot be evaluated at character 21", ""),
        ("true || size(5) > 1", "cannot be evaluated at character 9, `size(5) > 1`: `size` takes no values", "convert"),
        ("task.tags.all(t, t.startsWith(5))", "cannot be evaluated: `startsWith` takes no values of these", "convert"),
        ('"a" in task.tags && task.text.contains(5)', "cannot be evaluated at character 21", "convert with"),
        ('true || "a".getHours() > 1', 'cannot be evaluated at character 9, `"a".getHours() > 1`: `getHours`', ""),
        ('task.risk > "low"', "orders `task.risk`, but texts are ordered by", 'in `task.risk in ["medium", "high"]`'),
        ('"high" <= task.risk', "orders `task.risk`", 'of "low", "medium", "high"'),
        ("true || task['priority'] < 'high'", "orders `task.priority`", '`task.priority in ["high", "urgent"]`'),
        ('task.tier >= "balanced"', "orders `task.tier`", 'of "fast", "balanced", "powerful"'),
        ('task.reach > "network"', "orders `task.reach`", "name those that are meant"),
        ('actor.role>"operate"', "orders `actor.role`", "name those that are meant"),
        ("5 in task.tags", "looks for 5 in `task.tags`, where it never is", "its entries are texts"),
        ("true || true in actor.roles", "looks for true in `actor.roles`", "its entries are texts"),
        (f'task.name == "{"x" * MAX_LENGTH}"', "is longer than 2,000 characters", "split it"),
    ],
)
def test_what_is_refused(text: str, message: str, remedy: str) -> None:
    with pytest.raises(BadCondition) as refused:
        Condition(text)
    assert str(refused.value).startswith(message)
    assert remedy in refused.value.remedy


@pytest.mark.parametrize(
    "text",
    [
        'now.date > "2026-12-24"',
        'task.name >= "m"',
        "now.weekday > 5 && now.hour < 6",
        "task.text.contains('task.risk > \"low\"')",
    ],
)
def test_texts_that_have_an_order_of_letters_may_be_ordered(text: str) -> None:
    Condition(text)


HOUR, MINUTE, WEEKDAY, DATE = "write `now.hour`", "write `now.minute`", "write `now.weekday`", "write `now.date`"
ALL_OF_NOW = "write `now.hour`, `now.minute`, `now.weekday` or `now.date`"


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("now.getHours() > 8", HOUR),
        ('true || now.getHours("Europe/Berlin") > 8', HOUR),
        ('"night" in task.tags && now . getHours ( ) > 8', HOUR),
        ("getHours(now) > 8", HOUR),
        ("now.hour() > 8", HOUR),
        ("now.getHour() > 8", HOUR),
        ("now.hour.getHours() > 3", HOUR),
        ("now.hours > 8", HOUR),
        ("hour > 22", HOUR),
        ("now.getMinutes() > 8", MINUTE),
        ("now.getDayOfWeek() == 0", WEEKDAY),
        ("now.date.getDayOfWeek() == 1", WEEKDAY),
        ("now.dayOfWeek == 1", WEEKDAY),
        ("weekday == 7", WEEKDAY),
        ("now.getDate() == 1", DATE),
        ("now.getDayOfMonth() == 1", DATE),
        ("now.getDayOfYear() == 1", DATE),
        ("now.getMonth() == 1", DATE),
        ("now.getFullYear() == 2026", DATE),
        ("now.month == 12", DATE),
        ("now.day == 24", DATE),
        ("now.year == 2026", DATE),
        ('today == "2026-12-24"', DATE),
        ("getMonth(now.date) == 11", DATE),
        ("now.getSeconds() == 1", "to the minute"),
        ("now.getMilliseconds() == 1", "to the minute"),
        ("now.second == 1", "to the minute"),
        ("now.getTime() > 5", ALL_OF_NOW),
        ("now() > 8", ALL_OF_NOW),
        ('now < timestamp("2026-12-01T00:00:00Z")', ALL_OF_NOW),
        ('timestamp("2026-12-01T00:00:00Z") <= now', ALL_OF_NOW),
        ('now - duration("1h") > timestamp("2026-12-01T00:00:00Z")', ALL_OF_NOW),
        ('now == "10:00"', ALL_OF_NOW),
        ("timestamp(now.date).getMonth() == 1", ALL_OF_NOW),
        ('string(now).startsWith("2026")', ALL_OF_NOW),
    ],
)
def test_who_takes_now_for_a_timestamp_is_told_what_there_is(text: str, remedy: str) -> None:
    with pytest.raises(BadCondition) as refused:
        Condition(text)
    assert refused.value.remedy.startswith(remedy) or remedy in refused.value.remedy.partition(":")[0]
    assert "`now" in str(refused.value) or "not a known name" in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        'now.date.startsWith("2026-12") || now.date.endsWith("-01") || now.date.contains("-12-")',
        'now.date >= "2026-12-24" && now.date.matches("^2026")',
        'task.text.contains("now.getHours() > 8") || task.name == "now < then"  // now.getHours()',
        'timestamp("2026-12-01T00:00:00Z").getHours() > 3',
        "task.tags.exists(hour, hour.size() > 3)",
        "has(now.hour) && double(now.hour) > 3.5 && size(now.date) == 10",
    ],
)
def test_what_only_looks_like_that_is_a_condition(text: str) -> None:
    Condition(text)


@pytest.mark.parametrize(
    "text",
    [
        "\N{LATIN SMALL LETTER U WITH DIAERESIS}b",
        "\N{CJK UNIFIED IDEOGRAPH-65E5}\N{CJK UNIFIED IDEOGRAPH-672C}",
        "\N{PILE OF POO}!",
        "ab",
    ],
)
def test_the_size_of_a_text_is_its_characters(text: str) -> None:
    values = SAMPLE.values
    values["task"]["text"] = text
    for condition in ("size(task.text) == 2", "task.text.size() == 2 && size(task.tags) == 1", "size( task.text ) < 3"):
        assert Condition(condition).applies(context_of(values))
    assert Condition("size(bytes(task.text)) >= 2").applies(context_of(values))


@given(
    st.sampled_from(["task.approval", "now.hour > 3", '"a" in task.tags', "!(task.risk == 'low')", "true"]), st.data()
)
def test_no_part_is_missed_wherever_it_stands(part: str, data: st.DataObject) -> None:
    whole = "int(limits.day.usd) > 5"
    for _ in range(data.draw(st.integers(1, 5))):
        frame = data.draw(st.sampled_from(["{p} && ({w})", "({w}) && {p}", "{p} ? ({w}) : {p}", "!({w}) || {p}"]))
        whole = frame.format(p=part, w=whole)
    if part == "true" and "|| true" in whole:
        return
    with pytest.raises(BadCondition, match="no limit"):
        Condition(whole)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "task.paths.exists(a, task.paths.exists(b, task.paths.exists(c, a + b == c)))",
            "walks 3 lists within each other",
        ),
        ("task.paths.all(a, task.paths.filter(b, task.tags.exists(c, c == b)).size() > 0)", "walks 3 lists"),
        ("size(task.paths.map(p, task.paths.map(q, p + q))) > 3", "makes a list for each entry"),
        ("task.paths.exists(p, size(task.paths.map(q, p + q)) > 3)", "makes a list for each entry"),
        ("size(task.paths.map(p, task.text)) > 3", "copies the whole text"),
        ('size(task.paths.map(p, task["text"])) > 3', "copies the whole text"),
        ("size(task.paths.map(p, [task])) > 3", "copies the whole text"),
    ],
)
def test_what_could_take_long_or_all_memory_is_refused_before_it_decides_anything(text: str, words: str) -> None:
    with pytest.raises(BadCondition, match=words) as refused:
        Condition(text)
    assert refused.value.remedy


@pytest.mark.parametrize(
    "text",
    [
        "task.paths.exists(a, task.tags.exists(b, a.contains(b)))",
        "task.paths.exists(a, a == b) || task.tags.exists(b, task.paths.exists(c, b == c))".replace(
            " == b) ||", ' == "b") ||'
        ),
        'size(task.paths.map(p, p + ".bak")) > 3',
        'task.paths.map(p, p + "x").exists(q, q == "ax")',
        'task.name == "task.paths.map(p, task.text)"',
        "task.paths.all(p, size(task.text) > size(p))",
    ],
)
def test_what_is_bounded_is_a_condition(text: str) -> None:
    assert isinstance(Condition(text).applies(CONTEXT), bool)


def test_a_condition_may_be_as_long_as_is_told() -> None:
    assert not Condition("false".ljust(MAX_LENGTH)).applies(CONTEXT)


@given(st.text(max_size=200))
def test_any_text_is_a_condition_or_refused(text: str) -> None:
    try:
        condition = Condition(text)
    except BadCondition:
        return
    assert isinstance(condition.applies(CONTEXT), bool)


def test_a_fault_for_one_task_is_told() -> None:
    condition = Condition("task.text.matches(task.organisation)")
    values = SAMPLE.values
    values["task"]["organisation"] = "("
    with pytest.raises(Unevaluated):
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
