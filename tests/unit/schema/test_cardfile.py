"""Card files: what is in them, whatever they are written in, and what is wrong with place and remedy."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.card import Card
from claudomator_py.schema.a2a_card import write_a2a
from claudomator_py.schema.cardfile import parse_card_file

PLUMBER = {"id": "plumber", "description": "Fixes leaks.", "keywords": ["leaking pipe"]}


def cards(text: str, name: str = "plumber.yaml") -> tuple[Card, ...]:
    parsed_cards = parse_card_file(text.encode(), name)
    assert not parsed_cards.problems, [str(problem) for problem in parsed_cards.problems]
    return parsed_cards.items


def problem(text: str, name: str = "plumber.yaml") -> tuple[int | None, str | None, str]:
    """Line, field and message of the only problem, which has a remedy."""
    (problem,) = parse_card_file(text.encode(), name).problems
    assert problem.remedy
    return problem.line, problem.field, problem.message


def test_yaml_json_and_several_in_a_file() -> None:
    (card,) = cards("id: plumber\ndescription: Fixes leaks.\nkeywords: [leaking pipe]\n")
    assert card == Card.model_validate(PLUMBER)
    assert cards(json.dumps(PLUMBER), "any.json") == (card,)
    first, second = cards("id: a\ndescription: A.\n---\nid: b\ndescription: B.\n")
    assert (first.id, second.id) == ("a", "b")


def test_a_card_without_an_id_is_named_for_its_file() -> None:
    (card,) = cards("description: Fixes leaks.\n", "Pipe Doctor.yaml")
    assert card.id == "pipe-doctor"
    lines = [problem.line for problem in parse_card_file(b"description: A.\n---\ndescription: B.\n", "x.yaml").problems]
    assert lines == [1, 3]


def test_an_agent_file_of_a_coding_cli_is_a_card() -> None:
    text = """---
name: code-reviewer
description: Reviews code.
tools: Read, Grep,Glob
model: opus
x-color: blue
---

You review code.
Be kind.
"""
    (card,) = cards(text, "reviewer.md")
    assert (card.id, card.system_prompt, card.default_tier) == (
        "code-reviewer",
        "You review code.\nBe kind.",
        Tier.POWERFUL,
    )
    assert card.permissions is not None
    assert card.permissions.tools == ("Read", "Grep", "Glob")
    assert card.extra == {"x-color": "blue"}
    (plain,) = cards("---\nname: Pipe Doctor\ndescription: D.\nmodel: inherit\n---\nFix.\n", "fixer.md")
    assert (plain.id, plain.name, plain.default_tier) == ("fixer", "Pipe Doctor", None)


def test_keys_of_other_programs_are_understood() -> None:
    (card,) = cards("id: a\ndisplay_name: A B\ndescription: D.\nprompt: Do it.\nallowed_backends: [claude]\n")
    assert (card.name, card.system_prompt, card.allowed_agents) == ("A B", "Do it.", ("claude",))
    text = "id: a\nname: A\ndescription: D.\ndisplay_name: A B\n"
    assert problem(text) == (4, "display_name", "says the same as `name`")


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ("", None, None),
        ("- id: a\n", 1, None),
        ("id: a\n", 1, "description"),
        ("id: a\ndescription: D.\ncolour: red\n", 3, "colour"),
        ("id: a\ndescription: D.\nthreshold: 7\n", 3, "threshold"),
        ("id: a\ndescription: D.\nskills:\n- id: s\n  name: S\n  examples: 3\n", 6, "skills[0].examples"),
        ("id: search\ndescription: D.\n", 1, "id"),
        ("id: a\ndescription: D.\nurl: http://example.com/a\n", 3, "url"),
        ("description: D.\nurl: ws-agent://b\nid: a\n", 2, "url"),
        ("id: a\ndescription: D.\n---\nid: a\ndescription: E.\n", 4, "id"),
        ("id: [\n", 2, None),
    ],
)
def test_what_is_wrong_has_its_place(text: str, line: int | None, field: str | None) -> None:
    problems = parse_card_file(text.encode(), "x.yaml").problems
    assert problems
    assert (problems[0].line, problems[0].field) == (line, field)
    assert all(problem.remedy for problem in problems)


@given(st.binary(max_size=200), st.sampled_from(["a.yaml", "a.json", "a.md", "", "..", "a"]))
def test_no_file_does_harm(data: bytes, name: str) -> None:
    parsed_cards = parse_card_file(data, name)
    assert bool(parsed_cards.items) != bool(parsed_cards.problems)


BESIDE: dict[str, object] = {
    "provider": {"organization": "Pipes Ltd", "url": "https://pipes.example"},
    "iconUrl": "https://pipes.example/icon.png",
    "documentationUrl": "https://pipes.example/docs",
    "skills": [{"id": "leaks", "name": "Leaks", "description": "Finds them.", "inputModes": ["text/plain"]}],
}
REMOTE: dict[str, object] = {
    "name": "Docs Bot",
    "description": "Writes pages.",
    "supportedInterfaces": [
        {"url": "https://agents.example/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    ],
    "version": "2.1",
    "capabilities": {"streaming": True},
    "defaultInputModes": ["text/plain"],
    "skills": [{"id": "pages", "name": "Pages", "description": "d", "tags": ["a"], "outputModes": ["text/plain"]}],
}


@pytest.mark.parametrize("name", ["docs.json", "docs.yaml"])
def test_a_card_of_ours_may_have_fields_of_a2a(name: str) -> None:
    (card,) = cards(json.dumps({**PLUMBER, "visibility": "private", **BESIDE}), name)
    assert (card.id, card.visibility, card.keywords) == ("plumber", "private", ("leaking pipe",))
    assert card.skills[0].name == "Leaks"
    assert write_a2a(card, "1.0", "")["provider"] == BESIDE["provider"]
    for key, value in BESIDE.items():
        assert cards(json.dumps({**PLUMBER, key: value}), name)[0].id == "plumber"


def test_a_card_of_a2a_is_one_and_is_named_for_its_file_or_by_its_id() -> None:
    (card,) = cards(json.dumps(REMOTE), "weather.json")
    assert (card.id, card.name, card.url, card.protocol) == ("weather", "Docs Bot", "https://agents.example/a2a", "1.0")
    assert write_a2a(card, "1.0", "") == REMOTE
    assert cards(json.dumps({**REMOTE, "id": "bot"}), "weather.json")[0].id == "bot"
    entry, other = cards("\n---\n".join(json.dumps({**REMOTE, "name": name}) for name in ("Ann", "Bob")), "x.yaml")
    assert (entry.id, other.id) == ("ann", "bob")
    (card,) = cards(json.dumps({**REMOTE, "risk_ceiling": "low", "x-price": 3}), "weather.json")
    assert card.risk_ceiling == "low"


@pytest.mark.parametrize("whole", [{**PLUMBER, **BESIDE}, REMOTE], ids=["ours", "of A2A"])
@pytest.mark.parametrize(
    ("key", "value", "remedy"),
    [
        ("visibilty", "private", "`visibility`"),
        ("visible", "private", ""),
        ("Visibility", "private", "`visibility`"),
        ("risk_cieling", "low", "`risk_ceiling`"),
        ("riskCeiling", "low", "`risk_ceiling`"),
        ("private", True, "x-"),
        ("max_concurent", 1, "`max_concurrent`"),
        ("dispostion", "admin", "x-"),
        ("threshhold", 0.9, "`threshold`"),
    ],
)
def test_a_misspelt_key_beside_fields_of_a2a_is_refused(
    whole: dict[str, object], key: str, value: object, remedy: str
) -> None:
    text = f"{json.dumps(whole, indent=1)[:-2]},\n {json.dumps(key)}: {json.dumps(value)}\n}}"
    for name in ("docs.json", "docs.yaml"):
        (problem,) = parse_card_file(text.encode(), name).problems
        assert (problem.line, problem.field, problem.message) == (text.count("\n"), key, "is not a known key")
        assert remedy in str(problem.remedy)


@pytest.mark.parametrize("key", ["descripton", "example", "priority", "owner"])
def test_so_is_one_in_a_skill(key: str) -> None:
    skill = {"id": "leaks", "name": "Leaks", "description": "Finds them.", "inputModes": ["text/plain"], key: "x"}
    (problem,) = parse_card_file(json.dumps({**PLUMBER, "skills": [skill]}).encode(), "docs.json").problems
    assert (problem.field, problem.message) == (f"skills[0].{key}", "is not a known key")


def test_a_card_of_a2a_that_nobody_can_speak_to_is_refused() -> None:
    interface = {"url": "https://agents.example/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}
    (problem,) = parse_card_file(json.dumps({**REMOTE, "supportedInterfaces": [interface]}).encode(), "x.json").problems
    assert "HTTP+JSON" in problem.message
