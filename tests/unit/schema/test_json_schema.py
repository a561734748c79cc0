"""The published schema of a card agrees with the parser. That of a task: ``tests.unit.domain.test_task_schema``."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from claudomator_py.schema.cardfile import parse_card_file, shipped_files
from claudomator_py.schema.json_schema import card_json_schema
from claudomator_py.schema.yamltext import decode, read_documents

SCHEMA = card_json_schema()
VALIDATOR = Draft202012Validator(SCHEMA)
BASE = {"id": "a", "description": "Does A."}
SKILL = {"id": "s", "name": "S", "description": "Does S."}

GOOD: list[dict[str, Any]] = [
    {},
    {"name": "A", "version": "2"},
    {"display_name": "A", "prompt": "Do it.", "allowed_backends": ["claude"]},
    {"keywords": "one phrase"},
    {"skills": [SKILL | {"examples": "Do it.", "tags": ["a"]}]},
    {"permissions": {"mode": "plan"}, "risk_ceiling": "low", "default_tier": "fast"},
    {"visibility": "private", "fallback": "b", "escalation": "c"},
    {"x-colour": {"any": ["thing"]}},
]
BAD: list[dict[str, Any]] = [
    {"id": "A"},
    {"id": None},
    {"description": " "},
    {"colour": "red"},
    {"x-": 1},
    {"keywords": [1]},
    {"skills": {}},
    {"skills": [{"id": "s"}]},
    {"skills": [SKILL | {"colour": "red"}]},
    {"default_tier": "strong"},
    {"risk_ceiling": "none"},
    {"visibility": "hidden"},
    {"threshold": 7},
    {"prompt": 1},
]


def accepted(document: dict[str, Any]) -> bool:
    return not parse_card_file(json.dumps(document).encode(), "a.json").problems


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("fields", GOOD)
def test_both_accept(fields: dict[str, Any]) -> None:
    document = BASE | fields
    assert accepted(document)
    assert VALIDATOR.is_valid(document), list(VALIDATOR.iter_errors(document))


@pytest.mark.parametrize("fields", BAD)
def test_both_refuse(fields: dict[str, Any]) -> None:
    document = BASE | fields
    assert not accepted(document)
    assert not VALIDATOR.is_valid(document)


def test_the_shipped_cards_are_valid() -> None:
    for name, data in shipped_files().items():
        for document in read_documents(decode(data)):
            assert VALIDATOR.is_valid(document.value), (name, list(VALIDATOR.iter_errors(document.value)))


def test_every_field_says_what_it_is_for() -> None:
    parts = [SCHEMA, *SCHEMA["$defs"].values()]
    fields = [item for part in parts for item in part.get("properties", {}).items()]
    assert len(fields) > 30
    assert [name for name, schema in fields if not schema.get("description")] == []
