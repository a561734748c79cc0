"""No field takes one kind of value for another: what a file or a request says is what is meant, or it is refused."""

from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, TypeAdapter

from claudomator_py.api.app import RESOURCES
from claudomator_py.domain.card import Card
from claudomator_py.domain.task import TaskSpec
from claudomator_py.schema.agent_settings import AgentEntry
from claudomator_py.schema.cardfile import parse_card_file
from claudomator_py.schema.settings import Settings
from claudomator_py.schema.taskfile import parse_task_file

OF_FILES = (TaskSpec, Card, AgentEntry, *(field.annotation for field in Settings.model_fields.values()))
MODELS = {
    model.__name__: model
    for model in (*OF_FILES, *(body for resource in RESOURCES for body in resource.bodies))
    if isinstance(model, type) and issubclass(model, BaseModel)
}


def lax(schema: Any) -> Iterator[str]:
    """The kinds of number and truth value that the schema would read out of something else."""
    if isinstance(schema, list | tuple):
        for item in schema:
            yield from lax(item)
    elif isinstance(schema, dict):
        kind = schema.get("type")
        if kind == "function-before":  # reads what is written itself, such as 45m
            return
        if kind in ("int", "float", "bool") and not schema.get("strict"):
            yield kind
        for key, item in schema.items():
            if key not in ("metadata", "serialization"):
                yield from lax(item)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_every_number_and_truth_value_is_strict(model: type[BaseModel]) -> None:
    results = {}
    for name, field in model.model_fields.items():
        annotated: Any = Annotated[field.annotation, *field.metadata, None]
        results[name] = sorted(lax(TypeAdapter(annotated).core_schema))

    assert {name: kinds for name, kinds in results.items() if kinds} == {}


CARDS = [
    (
        "threshold: on",
        "threshold: is the truth value true (YAML also reads yes, no, on and off as truth values), but must be a ",
    ),
    ('threshold: ".5"', "threshold: is the text `.5`, but must be a number; write a number, without quotes"),
    ("max_concurrent: yes", "max_concurrent: is the truth value true"),
    ("max_concurrent: 2.0", "max_concurrent: is the number 2.0, but must be a whole number; write 2"),
    ("max_concurrent: 0o10", "max_concurrent: is the text `0o10`, but must be a whole number; write 8, without quotes"),
    ('pricing: {per_task: "12"}', "pricing.per_task: is the text `12`, but must be a number; write 12, without quotes"),
    ("pricing: {input: off}", "pricing.input: is the truth value false"),
    ("deduplicates: 1", "deduplicates: is the number 1, but must be true or false"),
    ('deduplicates: "yes"', "deduplicates: is the text `yes`, but must be true or false"),
    ("skills: [{id: b, name: on}]", "skills[0].name: is the truth value true"),
    ("name: 2026", "name: is the number 2026, but must be text; put it in quotes"),
    ("version: 1.10", "version: is the number 1.1, but must be text; put it in quotes"),
    ("keywords: [no]", "keywords[0]: is the truth value false"),
]


@pytest.mark.parametrize(("line", "words"), CARDS)
def test_a_card_is_read_as_strictly_as_a_task(line: str, words: str) -> None:
    parsed = parse_card_file(f"id: a\ndescription: x\n{line}\n".encode(), "f.yaml")

    (problem,) = parsed.problems
    assert problem.render("f.yaml").startswith(f"f.yaml:3: {words}")


TASKS = [
    ("max_turns: 08", "max_turns: is the text `08`, but must be a whole number; write 8, without quotes"),
    ('max_turns: "12"', "max_turns: is the text `12`, but must be a whole number; write 12, without quotes"),
    ("max_turns: 1e1", "max_turns: is the number 10.0, but must be a whole number; write 10"),
    ("max_turns: 4.5", "max_turns: is the number 4.5, but must be a whole number; write digits only, without quotes"),
    ("max_turns: many", "max_turns: is the text `many`, but must be a whole number; write digits only, without quotes"),
    ("budget: {usd: on}", "budget.usd: is the truth value true"),
    (
        "name: on",
        "name: is the truth value true (YAML also reads yes, no, on and off as truth values), but must be text; put it",
    ),
    ("name: 1e3", "name: is the number 1000.0, but must be text; put it in quotes"),
    ("tags: [no]", "tags[0]: is the truth value false"),
    ("check: true", "check: is the truth value true"),
    ("approval: 1", "approval: is the number 1, but must be true or false"),
]


@pytest.mark.parametrize(("line", "words"), TASKS)
def test_a_remedy_says_how_to_write_the_number(line: str, words: str) -> None:
    parsed = parse_task_file(f"instructions: x\n{line}\n".encode(), "f.yaml")

    (problem,) = parsed.problems
    assert problem.render("f.yaml").startswith(f"f.yaml:2: {words}")


def test_a_date_is_text() -> None:
    parsed = parse_task_file(b"instructions: x\nname: 2026-11-27\n", "f.yaml")

    assert parsed.items[0].name == "2026-11-27"


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("[Agent(worker, researcher), Read]", ("Agent(worker, researcher)", "Read")),
        ("[Bash(rm:*, mv:*, dd:*)]", ("Bash(rm:*, mv:*, dd:*)",)),
        ("['Agent(worker, researcher)', Read]", ("Agent(worker, researcher)", "Read")),
        ("'Read, Grep'", ("Read", "Grep")),
        ("'Bash(git diff:*, git log:*), Read,'", ("Bash(git diff:*, git log:*)", "Read")),
        ("Read", ("Read",)),
        ("[]", ()),
        ("['Bash(npm test', Read]", ("Bash(npm test", "Read")),
    ],
)
@pytest.mark.parametrize("field", ["tools", "allowed_tools", "disallowed_tools"])
def test_a_tool_with_a_comma_in_its_brackets_is_one(field: str, written: str, names: tuple[str, ...]) -> None:
    """To YAML, the comma is between two items, and a rule that denies would deny nothing."""
    task = parse_task_file(f"instructions: x\npermissions: {{{field}: {written}}}\n".encode(), "task.yaml")
    card = parse_card_file(f"id: a\ndescription: x\npermissions: {{{field}: {written}}}\n".encode(), "a.yaml")
    assert not task.problems
    assert not card.problems
    assert getattr(task.items[0].permissions, field) == names
    assert getattr(card.items[0].permissions, field) == names
