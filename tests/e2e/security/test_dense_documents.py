"""A document of many small values costs a hundred times what one of the same length costs that is a text: whichever
way it comes to a real daemon, it is refused before it is read."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from claudomator_py.schema.validation import MAX_JSON_PARTS
from tests.e2e.hub_agent import Agent
from tests.e2e.security.test_principals import Served
from tests.e2e.site import open_site
from tests.warm.starter import WarmStarter

ROOM = 1_000_000
"""Bytes of a document: less than a body or a frame may have."""


def many(part: str, between: str = ",") -> str:
    return "[" + between.join([part] * (ROOM // len(part + between))) + "]"


DENSE = {
    "numbers": many("1"),
    "empty lists": many("[]"),
    "empty objects": many("{}"),
    "empty texts": many('""'),
    "halves of surrogate pairs": many(r'"\ud800"'),
    "texts that end in backslashes": many(r'"\\"'),
    "lists in lists": "[" * (ROOM // 2) + "]" * (ROOM // 2),
    "names": "{" + ",".join(f'"{number:x}":0' for number in range(ROOM // 12)) + "}",
    "objects that lack something": many('{"id":"a"}'),
    "spaced numbers": many("0", " , "),
}
PLACES = {
    "/v1/tasks": '{"name": "t", "instructions": "i", "tags": %s}',
    "/v1/specialists": '{"id": "s", "description": "d", "skills": %s}',
    "/v1/channels": '{"name": "c", "members": %s}',
    "/v1/schedules": '{"name": "s", "cron": "* * * * *", "task": {"instructions": "i", "tags": %s}}',
}
FRAMES = {
    "ping": '{"of": %s}',
    "task.progress": '{"assignment_id": "a", "text": %s}',
    "agent.register": '{"agent_id": "dense", "instance_id": "one", "card": {"description": "d", "skills": %s}}',
    "task.submit": '{"name": "t", "instructions": "i", "of": %s}',
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, warm: WarmStarter) -> Iterator[Served]:
    with open_site(tmp_path_factory.mktemp("dense") / "site", warm=warm, routing={"shipped": False}) as site:
        yield Served(site, site.start().ready())


@pytest.fixture(scope="module")
def secret(served: Served) -> str:
    return served.token("eve", "operate", organisation="globex")


@pytest.fixture
def agent(served: Served, secret: str) -> Iterator[Agent]:
    with ExitStack() as Agent.open:
        yield Agent(served.site, "dense", secret=secret)


@pytest.mark.parametrize("dense", DENSE)
def test_a_body_of_too_many_values_is_refused(served: Served, secret: str, dense: str) -> None:
    for path, body in PLACES.items():
        headers = {"Content-Type": "application/json"}
        answer = served.ask(secret, "POST", path, content=body % DENSE[dense], headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_json"), path


@pytest.mark.parametrize("dense", DENSE)
def test_a_frame_of_too_many_values_is_refused_and_ends_nothing(agent: Agent, dense: str) -> None:
    for method, params in FRAMES.items():
        agent.connection.send(f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params % DENSE[dense]}}}')
        answer = agent.next_frame()
        assert (answer["id"], answer["error"]["code"]) == (None, -32700), method
    assert agent.ask("ping")["result"] == {}


@pytest.mark.parametrize("text", [',"[{', '\\",\\"', "a,b\n", '{"a": [1, 2]},'])
def test_what_stands_in_a_text_is_not_counted(served: Served, agent: Agent, secret: str, text: str) -> None:
    instructions = text * (4 * MAX_JSON_PARTS // len(text))
    name = f"t{abs(hash(text))}"
    asked: dict[str, Any] = {"name": name, "instructions": instructions}
    assert "result" in agent.ask("task.submit", **asked)
    headers = {"Content-Type": "application/json"}
    asked["name"] += "b"
    answer = served.ask(secret, "POST", "/v1/tasks", content=json.dumps(asked), headers=headers)
    assert answer.status_code == 201, answer.text[:300]


def test_a_card_with_all_the_skills_that_it_may_have_is_taken(agent: Agent) -> None:
    skills = [
        {
            "id": f"s{number}",
            "name": f"S {number}",
            "description": "d, e",
            "tags": ["a", f"b{number}"],
            "examples": [f"x{number}"],
        }
        for number in range(500)
    ]
    assert "result" in agent.register(card={"description": "Does all, and more.", "skills": skills})


@pytest.mark.parametrize("part", ["&", "a=1&", "&&=", "a&b=%20&"])
def test_a_form_of_nearly_nothing_but_separators_is_refused(served: Served, secret: str, part: str) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": served.url}
    for path in ("/new", "/new/check"):
        body = part * (ROOM // len(part))
        answer = served.ask(secret, "POST", path, content=body, headers=headers)
        assert answer.status_code == 413, path
        full = "&".join(f"f{number}=a%26b" for number in range(900))
        assert served.ask(secret, "POST", path, content=full, headers=headers).status_code not in (413, 500), path
