"""The published JSON Schema agrees with the parser."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from claudomator_py.domain.task import TaskSpec
from claudomator_py.schema.json_schema import task_json_schema
from claudomator_py.schema.taskfile import parse_task

SCHEMA = task_json_schema()
VALIDATOR = Draft202012Validator(SCHEMA)
BASE = {"name": "a", "instructions": "x"}

GOOD: list[dict[str, Any]] = [
    {},
    {"working_dir": "~"},
    {"working_dir": None},
    {"agent": {}},
    {"agent": {"type": "claude", "tier": "fast", "model": None, "strict": True}},
    {"priority": "urgent"},
    {"depends_on": "b"},
    {"depends_on": ["b", "c.d"]},
    {"not_before": "2026-12-01T08:00:00+01:00"},
    {"not_before": "2026-12-01 08:00Z"},
    {"timeout": "1h30m"},
    {"retry": {"max_attempts": 1, "backoff": "0s"}},
    {"on_limit": "failover"},
    {"on_limit": "wait"},
    {"on_limit": "fail"},
    {"on_lost": "retry"},
    {"max_turns": 1},
    {"check": "make test"},
    {"check": ["make test", ["a", "b"]]},
    {"permissions": {"mode": "plan", "allowed_tools": "Read"}},
    {"env": {"A_1": ""}},
    {"add_dirs": ["/a", "~/b"]},
    {"tags": []},
    {"x-a": [1, {"b": None}]},
    {"isolation": "none", "on_input": "deny", "budget": {}},
    {"budget": {"usd": 2, "tokens": 500000, "runs": None}},
    {"isolation": "worktree", "working_dir": "/a"},
    {"isolation": "worktree", "working_dir": "/a", "base": "feature/x"},
    {"on_input": "wait", "approval": True},
]
BAD: list[dict[str, Any]] = [
    {"instructions": ""},
    {"instructions": " "},
    {"instructions": None},
    {"name": "A"},
    {"foo": 1},
    {"extra": {}},
    {"x-": 1},
    {"working_dir": "a"},
    {"agent": "claude"},
    {"agent": {"tier": "strong"}},
    {"agent": {"foo": 1}},
    {"agent": {"strict": "yes"}},
    {"priority": "medium"},
    {"priority": 1},
    {"depends_on": [1]},
    {"not_before": "2026-12-01"},
    {"not_before": "2026-12-01T08:00:00"},
    {"timeout": 5},
    {"timeout": "5"},
    {"timeout": None},
    {"retry": {"max_attempts": 0}},
    {"retry": {"max_attempts": 101}},
    {"max_turns": "3"},
    {"max_turns": True},
    {"on_limit": "never"},
    {"check": [""]},
    {"check": [[]]},
    {"check": [["a", 1]]},
    {"permissions": {"mode": "all"}},
    {"env": {"1": "a"}},
    {"env": {"A": 1}},
    {"tags": None},
    {"tags": ["a"] * 51},
    {"isolation": "container"},
    {"on_input": "no"},
    {"on_input": False},
    {"approval": "yes"},
]


def accepted(document: dict[str, Any]) -> bool:
    return isinstance(parse_task(document), TaskSpec)


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("fields", GOOD)
def test_both_accept(fields: dict[str, Any]) -> None:
    document = {**BASE, **fields}
    assert accepted(document)
    assert VALIDATOR.is_valid(document), list(VALIDATOR.iter_errors(document))


@pytest.mark.parametrize("fields", BAD)
def test_both_refuse(fields: dict[str, Any]) -> None:
    document = {**BASE, **fields}
    assert not accepted(document)
    assert not VALIDATOR.is_valid(document)


def test_every_field_says_what_it_is_for() -> None:
    parts = [SCHEMA, *SCHEMA["$defs"].values()]
    fields = [item for part in parts for item in part.get("properties", {}).items()]
    assert len(fields) > 30
    assert [name for name, schema in fields if not schema.get("description")] == []


def test_every_default_is_written_as_a_file_would_write_it() -> None:
    properties = SCHEMA["properties"]
    assert properties["timeout"]["default"] == "1h"
    assert properties["priority"]["default"] == "normal"
    assert SCHEMA["$defs"]["RetryPolicy"]["properties"]["backoff"]["default"] == "1m"
    assert SCHEMA["$defs"]["RetryPolicy"]["properties"]["max_attempts"]["default"] == 3
