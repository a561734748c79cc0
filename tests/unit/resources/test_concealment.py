"""What is shown, without the specialists who are hidden from whoever asks: each place in which they may be named."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from sqlalchemy import Connection

from claudomator_py.domain.handoff import EarlierFailure, HandedOn, Handoff
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.rationale import RationaleCode, rationale
from claudomator_py.resources.concealment import concealed, visible_handoff, without_hidden
from claudomator_py.store.database import Database
from claudomator_py.store.tables import RUN, TASK, Event, Run, Task
from tests.databases import open_migrated
from tests.fakes.cards import card
from tests.fakes.world import World

ANN = Principal("ann", Role.OPERATE, "acme")
EVE = Principal("eve", Role.OPERATE, "acme")
ITSELF = Principal("run:r", Role.RUN, "acme", "r")

HIDDEN = {
    "shepherd": {"url": "ws-agent://shepherd", "wake_url": "https://wake.example/up"},
    "weaver": {"url": "ws-agent://weaver"},
    "herald": {"url": "https://agents.example/news"},
    "here": {"url": "http://127.0.0.1:9000/news"},
    "safe": {"url": "https://localhost/news"},
    "six": {"url": "https://[2001:db8::1]/news"},
}
"""How each that is the operator's alone is reached."""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """All know ben, and nobody but the operator knows the others."""
    state: Path = tmp_path_factory.mktemp("state")
    with open_migrated(state) as database:
        world = World(database)
        for name, place in HIDDEN.items():
            world.specialists.register(card(name, visibility="private", **place))
        world.specialists.register(card("ben", visibility="public", url="https://ben.example/bread"))
        yield database


class Shape(BaseModel):
    """Something that is shown."""

    value: Any = None
    spec: Any = None
    beside: "Shape | None" = None


def shown(database: Database, shape: Shape, by: Principal = EVE) -> Shape:
    return database.read(lambda connection: concealed(connection, [shape], by))[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hub:shepherd", "hub"),
        ("by hub:weaver, who is woken by nobody", "by hub, who is woken by nobody"),
        ("on hub:shepherd.", "on hub."),
        ("http:herald and hub:ben", "http and hub:ben"),
        ("shepherd", "shepherd"),
        ("hub:shepherd-dog, xhub:shepherd", "hub:shepherd-dog, xhub:shepherd"),
    ],
)
def test_a_hidden_agent_is_called_by_how_it_is_reached_alone(database: Database, text: str, message: str) -> None:
    assert shown(database, Shape(value=text)) == Shape(value=message)
    for by in (OPERATOR, Principal("carl", Role.READ)):
        assert shown(database, Shape(value=text), by) == Shape(value=text)


@pytest.mark.parametrize(
    ("agent", "text", "message"),
    [
        ("http:herald", "agents.example", "its server"),
        ("http:herald", "at https://AGENTS.example/news?a=b#c.", "at its server."),
        ("http:herald", "(http://agents.example:443)", "(its server)"),
        ("http:herald", "agents.example.", "its server."),
        *((("http:herald", entry, entry)) for entry in ("my.agents.example", "agents.example.org", "agents.example-2")),
        ("http:herald", "agentsXexample", "agentsXexample"),
        ("http:herald", "https://ben.example/bread", "https://ben.example/bread"),
        ("hub:shepherd", "https://wake.example/up: refused", "its server: refused"),
        ("hub:shepherd", "a shepherd wakes", "a shepherd wakes"),
        ("http:here", "http://127.0.0.1:9000/news", "its server"),
        ("http:here", "http://127.0.0.1:9001, 127.0.0.1", "http://127.0.0.1:9001, 127.0.0.1"),
        ("http:safe", "https://localhost:443/news", "its server"),
        ("http:safe", "https://localhost:80", "https://localhost:80"),
        ("http:six", "https://[2001:db8::1]:443/news", "its server"),
    ],
)
def test_nor_is_it_told_where_a_hidden_agent_is_reached(
    database: Database, agent: str, text: str, message: str
) -> None:
    assert shown(database, Shape(value=agent, beside=Shape(value=text))).beside == Shape(value=message)


@pytest.mark.parametrize(
    ("value", "record"),
    [
        ({"hub:shepherd": ["hub:shepherd", 1]}, {"hub": ["hub", 1]}),
        (("hub:shepherd", None), ("hub", None)),
        ({"hub:shepherd", "hub:ben"}, {"hub", "hub:ben"}),
        (frozenset({"hub:shepherd"}), frozenset({"hub"})),
        (Shape(value=[Shape(value="hub:shepherd")]), Shape(value=[Shape(value="hub")])),
    ],
)
def test_it_is_taken_out_wherever_it_stands(database: Database, value: Any, record: Any) -> None:
    assert shown(database, Shape(value=value)).value == record


def test_what_a_task_says_itself_is_no_secret_to_those_who_see_it(database: Database) -> None:
    shape = Shape(spec="ask hub:shepherd", beside=Shape(value="hub:shepherd", spec="hub:shepherd"))
    assert shown(database, shape) == Shape(spec="ask hub:shepherd", beside=Shape(value="hub", spec="hub:shepherd"))


@pytest.mark.parametrize("value", [{"a": ["x"]}, ["x"], ("x",), {"x"}, Shape(value="x")])
def test_what_names_nobody_is_not_copied(database: Database, value: Any) -> None:
    shape = Shape(value="hub:shepherd", beside=Shape(value=value))
    assert shown(database, shape).beside is shape.beside


def test_a_code_stays_a_code(database: Database) -> None:
    agent, code = shown(database, Shape(value=["hub:shepherd", RationaleCode.TEXT])).value
    assert (agent, code is RationaleCode.TEXT) == ("hub", True)


def test_several_are_shown_together_and_in_their_order(database: Database) -> None:
    shapes = [Shape(value=name) for name in ("hub:weaver", "hub:shepherd", "hub:ben")]
    result = database.read(lambda connection: concealed(connection, shapes, EVE))
    assert [entry.value for entry in result] == ["hub", "hub", "hub:ben"]


# --- sentences, by what they are made of ----------------------------------------------------------------------------

LOOP = rationale(RationaleCode.HANDOFF_LOOP, specialist="weaver").model_dump(mode="json")
LOOP_OF_SOMEBODY = rationale(RationaleCode.HANDOFF_LOOP, specialist="somebody else").model_dump(mode="json")
CLOSEST = rationale(RationaleCode.NO_MATCH, specialist="shepherd").model_dump(mode="json")
CLOSEST_IS_SOMEBODY = rationale(RationaleCode.NO_MATCH, specialist="somebody else").model_dump(mode="json")
NAMED_GONE = rationale(RationaleCode.NAMED_GONE, specialist="shepherd").model_dump(mode="json")

PARTS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"candidates": ["shepherd", "ben", "weaver"]}, {"candidates": ["ben"]}),
    ({"meant": "shepherd"}, {"meant": "somebody else"}),
    ({"meant": "ben", "candidates": ["weaver"]}, {"meant": "ben", "candidates": []}),
    (
        {"refused_handoff": {"to": "shepherd", "why": LOOP}},
        {"refused_handoff": {"to": "somebody else", "why": LOOP_OF_SOMEBODY}},
    ),
    ({"refused_handoff": {"to": "ben", "why": LOOP}}, {"refused_handoff": {"to": "ben", "why": LOOP_OF_SOMEBODY}}),
    ({"unclear": CLOSEST}, {"unclear": CLOSEST_IS_SOMEBODY}),
    # Whom the task itself names is no secret to those who see it, where it is said that it does.
    ({"unclear": NAMED_GONE}, {"unclear": NAMED_GONE}),
    ({"unclear": NAMED_GONE, "meant": "shepherd"}, {"unclear": NAMED_GONE, "meant": "somebody else"}),
    ({"asked": {"meant": "shepherd"}}, {"asked": {"meant": "somebody else"}}),
    (
        {"meant": "shepherd", "refused_handoff": None, "unclear": None, "asked": None},
        {"meant": "somebody else", "refused_handoff": None, "unclear": None, "asked": None},
    ),
]


@pytest.mark.parametrize(("part", "payload"), PARTS)
def test_a_sentence_names_nobody_who_is_hidden(
    database: Database, part: dict[str, Any], payload: dict[str, Any]
) -> None:
    row = Event(id=1, at_ms=1, kind="answered", data=part)

    def seen(by: Principal) -> Event:
        return database.read(lambda connection: without_hidden(connection, [row], by))[0]

    assert (seen(EVE).data, seen(OPERATOR).data) == (payload, part)
    assert (seen(EVE).id, seen(EVE).kind) == (1, "answered")


def task(asks: dict[str, Any] | None) -> Task:
    columns: dict[str, Any] = dict.fromkeys(column.name for column in TASK.columns)
    return Task(**columns | {"asks": asks})


def test_of_each_kind_of_row_the_part_is_known_that_sentences_are_made_of(database: Database) -> None:
    text, payload = {"meant": "shepherd"}, {"meant": "somebody else"}
    columns: dict[str, Any] = dict.fromkeys(column.name for column in RUN.columns)
    event, run = Event(at_ms=1, kind="answered", data=text), Run(**columns | {"outcome": text})

    def look(connection: Connection) -> list[Any]:
        return [
            *without_hidden(connection, [event], EVE),
            *without_hidden(connection, [run], EVE),
            *without_hidden(connection, [task(text)], EVE),
        ]

    results = database.read(look)
    assert (results[0].data, results[1].outcome, results[2].asks) == (payload, payload, payload)


def test_rows_that_name_nobody_hidden_are_the_same(database: Database) -> None:
    rows = [task(asks) for asks in (None, {"meant": "ben"}, {"meant": "shepherd"})]
    result = database.read(lambda connection: without_hidden(connection, rows, EVE))
    assert [entry is row for entry, row in zip(result, rows, strict=True)] == [True, True, False]
    assert database.read(lambda connection: without_hidden(connection, rows[:2], EVE)) == rows[:2]


# --- the handoff ----------------------------------------------------------------------------------------------------


def failure(specialist: str | None) -> EarlierFailure:
    return EarlierFailure(run="earlier", agent="claude", specialist=specialist, reason=Reason.AGENT_ERROR)


def handoff(**fields: Any) -> Handoff:
    given = {"version": 1, "task": "t", "revision": 1, "run": "r", "deadline": "2030-01-01T00:00:00Z"}
    return Handoff.model_validate(given | fields)


DOCUMENTS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"specialist": "shepherd", "skill": "count"}, {"specialist": None, "skill": None}),
    ({"specialist": "ben", "skill": "bake"}, {"specialist": "ben", "skill": "bake"}),
    ({"escalation": ("ben", "weaver", "human_review")}, {"escalation": ("ben", "human_review")}),
    (
        {"failures": (failure("weaver"), failure("ben"), failure(None))},
        {"failures": (failure(None), failure("ben"), failure(None))},
    ),
    (
        {"specialist": "ben", "skill": "bake", "before": HandedOn(run="earlier", specialist="shepherd", left="all")},
        {"specialist": "ben", "skill": "bake", "before": HandedOn(run="earlier", left="all")},
    ),
    (
        {"specialist": "shepherd", "before": HandedOn(run="earlier", specialist="ben")},
        {"specialist": None, "before": HandedOn(run="earlier", specialist="ben")},
    ),
    ({"expected_output": "what hub:shepherd said"}, {"expected_output": "what hub said"}),
]


@pytest.mark.parametrize(("fields", "payload"), DOCUMENTS)
def test_a_handoff_names_nobody_hidden_but_to_the_run_itself(
    database: Database, fields: dict[str, Any], payload: dict[str, Any]
) -> None:
    document = handoff(**fields)

    def seen(by: Principal) -> Handoff:
        return database.read(lambda connection: visible_handoff(connection, document, by))

    assert (seen(EVE), seen(OPERATOR), seen(ITSELF)) == (handoff(**payload), document, document)
