"""From a mapping to a task: what is accepted, what is refused, and the words of the refusal."""

from datetime import UTC, datetime
from typing import Any

import pytest

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.errors import Problem
from claudomator_py.domain.task import OnLost, PermissionMode, Priority, TaskSpec
from claudomator_py.schema.taskfile import (
    canonical_json,
    content_hash,
    parse_task,
    parse_task_file,
    shown_document,
    to_document,
)

EVERYTHING = {
    "name": "fix-login-redirect",
    "instructions": "The login page redirects twice.\n",
    "working_dir": "~/src/shop",
    "agent": {"type": "claude", "tier": "powerful", "model": "opus", "strict": True},
    "expected_output": "a fix with a test",
    "priority": "high",
    "depends_on": ["write-login-tests"],
    "not_before": "2026-12-01T08:00:00+01:00",
    "timeout": "45m",
    "stall_timeout": "1h30m",
    "retry": {"max_attempts": 5, "backoff": "2m"},
    "on_limit": "failover",
    "on_lost": "retry",
    "max_turns": 40,
    "isolation": "worktree",
    "on_input": "deny",
    "approval": True,
    "check": ["make test", ["sh", "-c", "a && b"]],
    "permissions": {"mode": "acceptEdits", "allowed_tools": ["Bash(git *)"], "disallowed_tools": ["WebFetch"]},
    "env": {"CI": "1"},
    "add_dirs": ["~/src/shared"],
    "tags": ["shop", "login"],
    "x-ticket": 4711,
}


def task(**fields: object) -> TaskSpec:
    parsed = parse_task({"name": "a", "instructions": "x", **fields})
    assert isinstance(parsed, TaskSpec), parsed
    return parsed


def refusal(**fields: object) -> Problem:
    parsed = parse_task({"name": "a", "instructions": "x", **fields})
    assert isinstance(parsed, list), parsed
    assert len(parsed) == 1
    return parsed[0]


def test_the_whole_schema() -> None:
    spec = task(**EVERYTHING)

    assert spec.name == "fix-login-redirect"
    assert spec.instructions == "The login page redirects twice."
    assert spec.working_dir == "~/src/shop"
    assert (spec.agent.type, spec.agent.tier, spec.agent.model) == ("claude", Tier.POWERFUL, "opus")
    assert spec.agent.strict
    assert spec.priority is Priority.HIGH
    assert spec.not_before == datetime(2026, 12, 1, 7, tzinfo=UTC)
    assert (spec.timeout, spec.stall_timeout) == (2_700_000, 5_400_000)
    assert (spec.retry.max_attempts, spec.retry.backoff) == (5, 120_000)
    assert spec.on_lost is OnLost.RETRY
    assert spec.check == (("make", "test"), ("sh", "-c", "a && b"))
    assert spec.permissions.mode is PermissionMode.ACCEPT_EDITS
    assert spec.env == {"CI": "1"}
    assert spec.extra == {"x-ticket": 4711}


def test_two_fields_are_enough() -> None:
    spec = task()

    assert (spec.priority, spec.timeout, spec.stall_timeout) == (Priority.NORMAL, 3_600_000, 1_800_000)
    assert (spec.retry.max_attempts, spec.retry.backoff) == (3, 60_000)
    assert spec.working_dir is None


def test_the_default_name_is_only_a_default() -> None:
    assert parse_task({"instructions": "x"}, default_name="stem") == task(name="stem")
    assert parse_task({"name": "own", "instructions": "x"}, default_name="stem") == task(name="own")


def test_a_single_text_is_a_list_of_one() -> None:
    assert task(depends_on="b").depends_on == ("b",)
    assert task(check="make test").check == (("make", "test"),)
    assert task(tags="shop").tags == ("shop",)
    assert task(add_dirs="/srv").add_dirs == ("/srv",)


def test_words_are_split_as_a_shell_would_quote_them() -> None:
    command = r"""grep -q "two words" 'a > b' c\ d"""
    assert task(check=[command]).check == (("grep", "-q", "two words", "a > b", "c d"),)


REFUSED: list[tuple[dict[str, object], str]] = [
    ({"model": "opus"}, "model: is not a known key; write agent: {model: ...}"),
    ({"max_tokens": 5}, "max_tokens: is not a known key; write budget: {tokens: ...}"),
    ({"max-cost": 5}, "max-cost: is not a known key; write budget: {usd: ...}"),
    ({"max_retries": 3}, "max_retries: is not a known key; write retry: {max_attempts: ...}, the first attempt"),
    ({"dependson": ["b"]}, "dependson: is not a known key; did you mean `depends_on`?"),
    ({"extra": {}}, "extra: is not a known key; did you mean `retry`?"),
    ({"agent": {"tipe": "claude"}}, "agent.tipe: is not a known key; did you mean `type`?"),
    ({"retry": {"attempts": 3}}, "retry.attempts: is not a known key; did you mean `max_attempts`?"),
    ({"x-": 1}, "x-: is not a known key; "),
    ({"name": False}, "name: is the truth value false (YAML also reads yes, no, on and off as truth values)"),
    ({"name": "Fix Login"}, "name: `Fix Login` is not a name; use lower-case letters"),
    ({"name": "a" * 101}, "is not a name"),
    ({"name": "a\n"}, "name: `a\\n` is not a name"),
    ({"instructions": None}, "instructions: is empty; give it a value"),
    ({"instructions": " \n"}, "instructions: is empty; give it a value"),
    ({"instructions": 5}, "instructions: is the number 5, but must be text; put it in quotes"),
    ({"instructions": "x" * 1_000_001}, "instructions: is longer than 1000000 characters; shorten it"),
    ({"instructions": "a\0b"}, "instructions: contains a NUL character; remove it"),
    ({"instructions": "a\x1b[31m"}, "instructions: contains the control character U+001B; remove it"),
    ({"instructions": "\ud83d"}, "instructions: contains half of a surrogate pair"),
    (
        {"working_dir": "src"},
        "working_dir: `src` is relative, and it would not be clear to what; begin it with / or ~/",
    ),
    ({"working_dir": "/a\nb"}, "working_dir: runs over several lines; write it on one"),
    ({"agent": "claude"}, "agent: is the text `claude`, but must be a mapping; write {type: claude}"),
    ({"budget": 5}, "budget: is the number 5, but must be a mapping; write {usd: 5}"),
    ({"retry": "5m"}, "retry: is the text `5m`, but must be a mapping; write {backoff: 5m}"),
    ({"permissions": "yolo"}, "permissions: is the text `yolo`, but must be a mapping; write {mode: yolo}"),
    ({"check": True}, '(YAML also reads yes, no, on and off as truth values), but must be a list; write "true"'),
    ({"tags": 7}, 'tags: is the number 7, but must be a list; write "7"'),
    ({"agent": {"tier": "strong"}}, "agent.tier: `strong` is not one of fast, balanced, powerful; "),
    ({"agent": {"strict": True}}, "agent.strict: does not say for which agent; add `type`"),
    ({"agent": {"type": "a", "strict": "yes"}}, "agent.strict: is the text `yes`, but must be true or false"),
    ({"agent": {"type": "a", "strict": 1}}, "agent.strict: is the number 1, but must be true or false"),
    ({"priority": "hihg"}, "priority: `hihg` is not a priority; did you mean `high`?"),
    ({"priority": 2}, "priority: is not a priority; write one of low, normal, high, urgent"),
    ({"depends_on": ["a"]}, "depends_on: names the task itself"),
    ({"depends_on": ["b", "b"]}, "depends_on: `b` appears twice; remove one of them"),
    ({"depends_on": ["B"]}, "depends_on[0]: `B` is not a name"),
    ({"depends_on": {"b": "c"}}, "depends_on: is a mapping, but must be a list; write [one, two]"),
    ({"not_before": "2026-12-01T08:00:00"}, "not_before: does not say in which time zone; write it with an offset"),
    ({"not_before": "tomorrow"}, "not_before: `tomorrow` is not a time; write it with an offset"),
    ({"not_before": 5}, "not_before: is not a time; write it with an offset"),
    ({"not_before": "0001-01-01T00:00:00+12:00"}, "not_before: is out of range"),
    ({"timeout": 45}, "timeout: is the bare number 45, and its unit would be a guess; write 45s or 45m"),
    ({"timeout": "45"}, "timeout: `45` is not a duration; write a number and a unit"),
    ({"timeout": True}, "timeout: is not a duration; write a number and a unit"),
    ({"timeout": "0s"}, "timeout: is too small; it must be more than 0s"),
    ({"timeout": "31d"}, "timeout: is too large; it must be at most 30d"),
    ({"retry": {"max_attempts": 0}}, "retry.max_attempts: is too small; it must be at least 1"),
    ({"retry": {"max_attempts": True}}, "retry.max_attempts: is the truth value true"),
    ({"retry": {"max_attempts": "3"}}, "retry.max_attempts: is the text `3`, but must be a whole number"),
    ({"max_turns": 2.5}, "max_turns: is the number 2.5, but must be a whole number"),
    ({"isolation": "worktree"}, "isolation: does not say of which repository; add `working_dir`, or leave out"),
    ({"base": "main"}, "base: is about a work tree, and there is none; add `working_dir` and `isolation: worktree`"),
    (
        {"commit": True, "working_dir": "/srv"},
        "commit: is about a work tree, and there is none; add `isolation: worktree`, or remove it",
    ),
    (
        {"commit": True, "continues": "x"},
        "and there is none; add `working_dir` and `isolation: worktree`, or remove it",
    ),
    (
        {"isolation": "worktree", "working_dir": "/a", "base": "a..b"},
        "base: `a..b` is not the name of a branch or tag; write it as git lists it, such as `main`",
    ),
    ({"isolation": "wroktree"}, "isolation: `wroktree` is not one of none, worktree; did you mean `worktree`?"),
    ({"on_lost": "ignore"}, "on_lost: `ignore` is not one of fail, retry; write one of these"),
    ({"check": ["make && make test"]}, 'check[0]: `&&` needs a shell, and none is used here; write [sh, -c, "make'),
    ({"check": "cat <a >b | wc; ls"}, "check[0]: `<a` needs a shell"),
    ({"check": "make test; make lint"}, "check[0]: `test;` needs a shell"),
    ({"check": "make test &"}, "check[0]: `&` needs a shell"),
    ({"check": 'say "hello'}, "check[0]: cannot be split into words: a quote is never closed; correct it"),
    ({"check": "CI=1 make"}, "check[0]: begins with `CI=`, which only a shell understands; set it under `env`"),
    ({"check": [""]}, "check[0]: is empty"),
    ({"check": [["", "make"]]}, "check[0]: begins with an empty word; begin it with the program to run"),
    ({"check": [["make", 5]]}, "check[0][1]: is the number 5, but must be text"),
    ({"needs": {"cpus": 1.5}}, "needs.cpus: is the number 1.5, but must be a whole number; write digits only"),
    ({"check": [["make", "a\x01"]]}, "check[0][1]: contains the control character U+0001"),
    ({"permissions": {"mode": "acceptedits"}}, "permissions.mode: `acceptedits` is not one of default, acceptEdits"),
    ({"env": {"CI": 1}}, "env.CI: is the number 1, but must be text; put it in quotes"),
    ({"env": {"CI": True}}, "env.CI: is the truth value true (YAML also reads yes, no, on and off as truth values)"),
    ({"env": {"1A": "x"}}, "env.1A: `1A` is not a variable's name; use letters, digits"),
    ({"env": {"CLAUDOMATOR_RUN": "x"}}, "env.CLAUDOMATOR_RUN: `CLAUDOMATOR_RUN` is set by Claudomator itself"),
    ({"env": {"A": "x\x7f"}}, "env.A: contains the control character U+007F; remove it"),
    ({"env": ["A=1"]}, "env: is a list, but must be a mapping; write {key: value}"),
    ({"tags": ["a", "a"]}, "tags: `a` appears twice"),
    ({"tags": None}, "tags: is empty; give it a value, or delete the line"),
    ({"instructions": None}, "instructions: is empty; give it a value"),
    ({"agent": {"type": ""}}, "agent.type: is empty; give it a value, or delete the line"),
    ({"tags": ["a"] * 51}, "tags: has more than 50 items; shorten it"),
    (
        {"x-n": 2**63},
        "x-n: is a number of more than 64 bits; write another number, or put it in quotes if it is a text",
    ),
    (
        {"x-n": float("nan")},
        "x-n: is the number nan, which JSON lacks; write another number, or put it in quotes if it is a text",
    ),
    ({"x-n": {1: 2}}, "x-n: the key 1 is not text; put it in quotes"),
    ({"x-n": b"x"}, "x-n: is a bytes, which JSON lacks"),
]


@pytest.mark.parametrize(("fields", "words"), REFUSED)
def test_a_refusal_names_field_problem_and_remedy(fields: dict[str, object], words: str) -> None:
    problem = refusal(**fields)

    assert words in problem.render()
    assert problem.field is not None
    assert problem.remedy


def test_what_is_missing_is_named() -> None:
    parsed = parse_task({})
    assert isinstance(parsed, list)
    assert [problem.render() for problem in parsed] == ["name: is missing; add it", "instructions: is missing; add it"]


def test_a_nest_without_end_is_refused() -> None:
    nest: list[Any] = []
    nest.append(nest)
    assert "nested more than" in refusal(**{"x-a": nest}).message


@pytest.mark.parametrize("where", ["", "agent", "env"])
def test_very_many_problems_are_not_all_told(where: str) -> None:
    many: dict[str, object] = {f"key {number}": number for number in range(10_000)}
    parsed = parse_task({"name": "a", "instructions": "x", **({where: many} if where else many)})

    assert isinstance(parsed, list)
    assert len(parsed) == 100


LATER: list[tuple[dict[str, object], str]] = [
    ({"specialist": "Backend Engineer"}, "specialist: `Backend Engineer` is not a name"),
    ({"skill": "api"}, "skill: does not say whose; add `specialist`, or leave out `skill`"),
]


@pytest.mark.parametrize(("fields", "words"), LATER)
def test_what_nothing_acts_on_is_refused_not_ignored(fields: dict[str, object], words: str) -> None:
    assert words in refusal(**fields).render()


@pytest.mark.parametrize("fields", [{"isolation": "none"}, {"on_input": "wait"}, {"budget": {}}, {"schedule": None}])
def test_asking_for_what_happens_anyway_changes_nothing(fields: dict[str, object]) -> None:
    assert content_hash(task(**fields)) == content_hash(task())


def test_problems_have_the_line_of_the_nearest_part_and_its_order() -> None:
    lines = {(): 1, ("agent",): 7, ("tags",): 3, ("tags", 1): 5, ("foo",): 9}
    mapping = {"name": "a", "instructions": "x", "foo": 1, "agent": {"tier": "x"}, "tags": ["a", 5]}

    parsed = parse_task(mapping, lines=lines)

    assert isinstance(parsed, list)
    assert [(problem.line, problem.field) for problem in parsed] == [(5, "tags[1]"), (7, "agent.tier"), (9, "foo")]


def test_a_document_reads_back() -> None:
    spec = task(**EVERYTHING)

    document = to_document(spec)

    assert document["timeout"] == "45m"
    assert document["priority"] == "high"
    assert document["not_before"] == "2026-12-01T07:00:00Z"
    assert document["x-ticket"] == 4711
    assert parse_task(document) == spec
    assert TaskSpec.model_validate(spec.model_dump(mode="json")) == spec
    assert TaskSpec.model_validate_json(spec.model_dump_json()) == spec


def test_a_document_with_problems_says_all_of_them() -> None:
    problems = parse_task({"name": "a", "instructions": "x", "tags": None, "foo": 1})
    assert isinstance(problems, list)
    assert sorted(f"{problem.field}: {problem.message}" for problem in problems) == [
        "foo: is not a known key",
        "tags: is empty",
    ]


def test_content_is_what_is_meant_not_how_it_is_written() -> None:
    spec = task(timeout="60m", tags="a", not_before="2026-12-01T08:00:00+01:00", priority="normal")
    same = parse_task(
        {"tags": ["a"], "not_before": "2026-12-01T07:00:00Z", "instructions": "x\n\n", "timeout": "1h", "name": "a"}
    )

    assert isinstance(same, TaskSpec)
    assert content_hash(spec) == content_hash(same)
    assert canonical_json(spec) == '{"instructions":"x","name":"a","not_before":"2026-12-01T07:00:00Z","tags":["a"]}'


@pytest.mark.parametrize("change", [{"instructions": "y"}, {"x-a": 1}, {"x-a": {"b": 2}}, {"priority": "low"}])
def test_a_change_of_content_changes_the_hash(change: dict[str, object]) -> None:
    assert content_hash(task(**change)) != content_hash(task())


def test_a_rendered_problem_is_one_printable_line() -> None:
    problem = Problem(line=3, column=2, field="a", message="is bad", remedy="mend it")

    assert problem.render("x.yaml") == "x.yaml:3:2: a: is bad; mend it"
    assert Problem(message="is bad").render() == "is bad"
    assert problem.render("a\x1b[0m\n.yaml") == "a\\x1b[0m\\n.yaml:3:2: a: is bad; mend it"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"schedule": "0 3 * *"}, "schedule: `0 3 * *` has 4 fields instead of five; write minute, hour, day, month"),
        ({"schedule": "daily"}, "schedule: `daily` has 1 field instead of five; write minute"),
        ({"schedule": "@daily"}, 'schedule: `@daily` is not supported; write "0 0 * * *"'),
        ({"timezone": "Europe/Berlin"}, "timezone: is about times, and there is no schedule; add `schedule`"),
        ({"overlap": "queue"}, "overlap: is about times, and there is no schedule; add `schedule`, or remove it"),
        ({"catch_up": "once"}, "catch_up: is about times, and there is no schedule; add `schedule`, or remove it"),
        (
            {"schedule": "0 3 * * *", "catch_up": "all"},
            "catch_up: would skip all but the first, as that has not ended; add `overlap: queue`",
        ),
        (
            {"schedule": "0 3 * * *", "overlap": "replace", "catch_up": "all"},
            "catch_up: would replace all but the last, as none of them has begun; write `overlap: queue`",
        ),
        ({"name": "a" * 84, "schedule": "0 3 * * *"}, "shorten `name` to 83 characters"),
    ],
)
def test_a_schedule_that_would_not_do_what_it_says_is_refused(fields: dict[str, object], words: str) -> None:
    assert words in refusal(**fields).render()


def test_a_schedule_however_spaced_is_the_same_content() -> None:
    assert content_hash(task(schedule="0 3 * * *")) == content_hash(task(schedule=" 0  3 * * * "))
    assert content_hash(task(schedule="0 3 * * *", catch_up="skip")) == content_hash(task(schedule="0 3 * * *"))
    assert content_hash(task(schedule="0 4 * * *")) != content_hash(task(schedule="0 3 * * *"))


def test_what_looks_like_a_secret_is_not_shown_and_its_mark_is_not_taken_for_it() -> None:
    env = {"API_KEY": "value-of-a-key", "KEY_FILE": "/etc/key", "COLOUR": "green"}
    given = {"name": "a", "instructions": "x", "env": env}
    task = parse_task(given)
    assert isinstance(task, TaskSpec)
    shown = shown_document(task)
    assert shown["env"] == {**env, "API_KEY": "[redacted]"}
    assert to_document(task)["env"] == env
    problems = parse_task(shown, lines={("env", "API_KEY"): 7})
    assert isinstance(problems, list)
    assert [problem.render("a.yaml") for problem in problems] == [
        "a.yaml:7: env.API_KEY: is not the value, which was not shown; write the value"
    ]


def test_tasks_of_a_file_that_wait_for_each_other_are_refused_with_the_line() -> None:
    text = "name: {}\ninstructions: x\ndepends_on: {}\n"
    parsed_file = parse_task_file("---\n".join(text.format(*names) for names in ("ab", "bc", "ca")).encode(), "f.yaml")
    (problem,) = parsed_file.problems
    assert problem.render("f.yaml").startswith("f.yaml:3: depends_on: these tasks would wait for each other forever: ")
    assert problem.message.endswith(": a -> b -> c -> a")
    assert parsed_file.items == ()
    scheduled = text.format("a", "b") + 'schedule: "0 3 * * *"\n---\n' + text.format("b", "a")
    assert parse_task_file(scheduled.encode(), "f.yaml").problems == ()
