"""What conditions cost, by their text: ordinary ones little, and what is held to cost little does."""

import re
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from claudomator_py.policy.condition import Condition
from claudomator_py.policy.cost import MAX_CHARACTERS, MAX_US, is_small
from claudomator_py.policy.expression import Expression, Unevaluated, code_of, context_of
from tests.unit.policy.hostile import MEMORY, NEAR, READ, TIME, facts

DOCS = Path(__file__).parents[3] / "docs"


def shown_conditions() -> Iterator[str]:
    """Those of the rules that pages show."""
    for page in sorted(DOCS.rglob("*.md")):
        for block in re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
            if "when:" in block:  # to read all of them takes each worker half a second
                for document in yaml.safe_load_all(block):
                    yield from _whens(document)


def _whens(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and isinstance(value.get("when"), str):
        yield value["when"]
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _whens(inner)


ORDINARY = [
    *dict.fromkeys(shown_conditions()),
    'task.text.matches("(?i)(password|secret)")',
    r'task.paths.exists(p, p.matches(r"^infra/.*\.tf$"))',
    r'task.text.matches("\\bprod-\\d{2,4}\\b") || task.text.matches("""\\w+@example[.]com""")',
    "spent.day.usd + task.budget.usd > limits.day.usd && now.hour >= 22",
    'task.tags.all(t, t in ["docs", "chore"]) && size(task.text) < 500',
    '(task.risk == "high" ? !("oncall" in actor.roles) : false) || task.tags.exists_one(t, t.startsWith("x"))',
    'size(task.tags) > 0 && task.tags[0] == "docs" // the first one',
    'task.name.matches("^[0-9]+$") && int(task.name) > 3',
]


def test_pages_show_rules() -> None:
    assert len(set(shown_conditions())) >= 3


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_rules_are_evaluated_where_they_are_needed(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("claudomator_py.policy.sandbox.evaluate", lambda *_: pytest.fail("it went elsewhere"))
    assert isinstance(Condition(text).applies(context_of(facts())), bool)


@pytest.mark.parametrize(
    "text",
    [
        *(*MEMORY, *TIME, *NEAR),
        *READ,
        r'task.name.matches("\\w{200}")',
        r'task.name.matches("\\w\x7b200\x7d")',
        r'task.name.matches("(\\w\\w\\w){9}(\\W){9}")',
        r'task.paths.exists(p, p.matches("\\w+"))',
        'task.tags.exists(t, task.text.matches("a.*b"))',
        "task.name.matches(task.text)",
        'matches(task.name, "a")',
        "task.name + task.name == task.name",
        "[1] + task.tags == [1]",
        "task.text + now.hour.string() == task.name",
        "task.text + 1.string() == task.name",
        "task.text + now.hour[0] == task.name",
        "now.hour.x + task.text == 'a'",
        "size(task.text)+task.text.size() > size('a' + task.text)",
        'task.exists(k, k == "text")',
        "[task.text].exists(t, t == 'a')",
        "task.tags.exists(t, task.tags.exists(u, t != u))",
        "(" * 30 + "true" + ")" * 30,
        "true ? " * 20 + "true" + " : false" * 20,
        "task.tags.exists(t, t == 'a'",
        "task.name == 'a' # b",
        "task.",
        *(f"task.tags.exists(t, {' || '.join(['t in task.paths'] * 99)})",),
    ],
)
def test_what_may_cost_much_is_not_small(text: str) -> None:
    assert not is_small(text)


_LISTS = st.sampled_from(["task.tags", "task.paths", "task.add_dirs", "task.allowed_tools"])
_TEXTS = st.sampled_from(["task.text", "task.name", "task.working_dir", "actor.id", '"a"', "'\\u00e9'"])
_PATTERNS = st.lists(
    st.sampled_from(["a", "b", "[ab]", "(a|b)*", ".*", "(?i)x", r"\\b", r"\\w", "{3}", "?", "^", "$", r"\\pL", "[^a]"])
).map(lambda parts: '"a' + "".join(parts) + '"')
_OF_ENTRY = st.one_of(
    st.builds("t == {}".format, _TEXTS),
    st.builds("t in {}".format, _LISTS),
    st.builds("t.contains({})".format, _TEXTS),
    st.builds("size({}) > 3".format, _TEXTS),
    st.builds("{}.contains(t)".format, _TEXTS),
    st.builds("t.matches({})".format, _PATTERNS),
)
_PARTS = st.one_of(
    st.builds("{} == {}".format, _TEXTS, _TEXTS),
    st.builds("{} == {}".format, _LISTS, _LISTS),
    st.builds("{}.matches({})".format, _TEXTS, _PATTERNS),
    st.builds("string({}).contains({})".format, _TEXTS, _TEXTS),
    st.builds("size({}) > 1 + now.hour".format, st.one_of(_LISTS, _TEXTS)),
    st.builds(
        "{}.{}(t, {})".format,
        _LISTS,
        st.sampled_from(["all", "exists", "exists_one"]),
        st.lists(_OF_ENTRY, min_size=1, max_size=9).map(" && ".join),
    ),
)


def as_much_as_is_small(letter: str) -> dict[str, Any]:
    """The values of a task with as many characters as estimates hold for."""
    each = (MAX_CHARACTERS // 3 - 3_000) // 200
    paths, tags = [letter * each + str(number) for number in range(200)], [letter * 300] * 50
    return facts(text=letter * (MAX_CHARACTERS // 3), paths=paths, tags=tags)


@settings(suppress_health_check=list(HealthCheck), deadline=None)
@given(st.lists(_PARTS, min_size=1, max_size=12), st.sampled_from(["||", "&&"]), st.sampled_from("ab\u00e9"))
def test_what_is_small_takes_little_time_and_memory(parts: list[str], sign: str, letter: str) -> None:
    text = f" {sign} ".join(parts)
    if not is_small(text):
        return
    tried = Expression(text, code_of(text))
    context = context_of(as_much_as_is_small(letter))
    assert context.converted is not None
    begun_s, had_kib = time.thread_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        tried.value(context)
    except Unevaluated:
        pass
    assert time.thread_time() - begun_s < 10 * MAX_US / 1e6, text
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - had_kib < 64 * 1024, text
