"""Agents that connect to the hub of a real daemon: what was promised to either side holds, whoever is killed."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from claudomator_py.domain.card import Card
from claudomator_py.resources.access import TokenRequest
from tests.e2e.hub_agent import CARD, Agent, accepted, address, submit, token
from tests.e2e.scenarios_support import document, ended, in_state, last_run
from tests.e2e.site import Site, open_site
from tests.patience import wait_until
from tests.warm.starter import WarmStarter


@pytest.fixture
def site(tmp_path: Path, warm: WarmStarter) -> Iterator[Site]:
    with open_site(tmp_path / "site", warm=warm, routing={"shipped": False}) as site:
        yield site


@pytest.fixture(autouse=True)
def _connections() -> Iterator[None]:
    with ExitStack() as Agent.open:
        yield


EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "hub_agent.py"


def test_the_example_does_tasks_and_is_found_by_what_they_say(site: Site) -> None:
    daemon = site.start().ready()
    environ = {"CLAUDOMATOR_TOKEN": token(site), "PATH": os.environ["PATH"]}
    example = subprocess.Popen([sys.executable, str(EXAMPLE), address(site)], env=environ, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: list(daemon.client.all_specialists()), "it to register")
        site.drop("count.yaml", document(None, "Count the words of this text: one two three", agent=None))
        task = ended(daemon, "count")
        assert (task.state, task.specialist, task.agent) == ("COMPLETED", "word-counter", "hub:word-counter")
        assert str(task.result_text).endswith("words")
        # That it was accepted need not be there: the result may be heard before, and says as much.
        assert b'"percent": 50' in daemon.client.log(last_run(daemon, "count").id).data
    finally:
        example.kill()
        example.wait()


def test_an_agent_registers_takes_a_task_and_hands_back_its_result(site: Site) -> None:
    daemon = site.start().ready()
    agent = Agent(site)
    assert agent.register()["result"] == {"agent_id": "shepherd", "resumed": []}
    (specialist,) = daemon.client.all_specialists()
    assert (specialist.id, specialist.source, specialist.content.url) == ("shepherd", "hub", "ws-agent://shepherd")
    submit(site, "sheep", skill="count")
    asked = agent.called("task.assign")
    agent.send(id=asked["id"], result={"accepted": True})
    run = last_run(daemon, "sheep")
    task_id = daemon.client.task("sheep").id
    assert (asked["params"]["assignment_id"], asked["params"]["task_id"]) == (run.id, task_id)
    assert "Count the sheep." in asked["params"]["instructions"]
    assert asked["params"]["handoff"] == {"name": "sheep", "skill": "count"}
    agent.send(
        method="task.progress", params={"assignment_id": run.id, "seq": 1, "text": "seven so far", "percent": 10}
    )
    assert agent.finish(run.id)["result"] == {"recorded": True, "duplicate": False}
    task = ended(daemon, "sheep")
    assert (task.state, task.result_text, task.attempts) == ("COMPLETED", "42 sheep", 1)
    assert b"seven so far" in daemon.client.log(run.id).data
    assert agent.finish(run.id)["result"] == {"recorded": True, "duplicate": True}
    assert agent.finish(run.id, text="43 sheep")["error"]["code"] == -32009


A2A = {
    "name": "Sheep counter",
    "protocolVersion": "0.3.0",
    "url": "https://agents.example/rpc",
    "preferredTransport": "JSONRPC",
    "capabilities": {"streaming": False},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
}


def test_a_card_for_a2a_is_taken_and_the_agent_is_told_what_of_it_does_not_count(site: Site) -> None:
    daemon = site.start().ready()
    agent = Agent(site)
    fields = {**CARD, **A2A, "id": "4711", "visibility": "private", "homepage": "https://agents.example"}
    answer = agent.register(card=fields)
    assert answer["result"] == {"agent_id": "shepherd", "resumed": [], "ignored": ["homepage", "id", "url"]}
    specialist = daemon.client.specialist("shepherd")
    assert (specialist.content.url, specialist.content.visibility, specialist.content.title) == (
        "ws-agent://shepherd",
        "private",
        "Sheep counter",
    )
    decorated = {**CARD, "iconUrl": "https://agents.example/icon.png", "visibility": "private"}
    assert "result" in agent.register(card=decorated)
    refused = agent.register(card={**CARD, **A2A, "visibilty": "private"})
    assert refused["error"]["code"] == -32602
    assert "did you mean `visibility`?" in refused["error"]["message"]
    assert daemon.client.specialist("shepherd").content.visibility == "private"


@pytest.mark.parametrize("url", ["ws-agent://shepherd", None])
def test_what_its_operator_has_written_of_an_agent_stands_when_it_registers(site: Site, url: str | None) -> None:
    daemon = site.start().ready()
    written = {
        "id": "shepherd",
        "description": "Counts for the farm.",
        "visibility": "private",
        "wake_url": "https://agents.example/wake",
        "skills": [{"id": "wolves", "name": "Wolves"}],
        **({} if url is None else {"url": url}),
    }
    daemon.client.register_specialist(Card.model_validate(written))
    agents = [Agent(site) for _ in range(2)]
    for agent in agents:
        ignored = agent.register(card={**CARD, "visibility": "public"})["result"]["ignored"]
        # Public is the default, so a card that says it and one that does not are the same.
        assert ignored == ["description", "skills"]
    specialist = daemon.client.specialist("shepherd")
    assert specialist.source == "api"
    assert specialist.content.document == {**written, "url": "ws-agent://shepherd"}
    submit(site, "sheep")
    agents[-1].finish(agents[-1].accept())
    assert ended(daemon, "sheep").state == "COMPLETED"


def test_what_its_operator_has_changed_in_the_card_of_an_agent_stands(site: Site) -> None:
    daemon = site.start().ready()
    agent = Agent(site)
    agent.register()
    agent.register(card={**CARD, "description": "Counts goats."})
    registered = daemon.client.specialist("shepherd")
    assert (registered.source, registered.content.description) == ("hub", "Counts goats.")
    changed = registered.content.document | {"visibility": "private"}
    daemon.client.change_specialist(Card.model_validate(changed))
    assert agent.register()["result"]["ignored"] == ["description"]
    specialist = daemon.client.specialist("shepherd")
    assert (specialist.source, specialist.content.document) == ("api", changed)
    daemon.client.remove_specialist("shepherd")
    assert "ignored" not in agent.register()["result"]
    assert daemon.client.specialist("shepherd").source == "hub"


def test_a_card_that_is_written_without_an_address_while_its_agent_is_connected_stays_the_agents(site: Site) -> None:
    daemon = site.start().ready()
    agent = Agent(site)
    agent.register()
    written = {"id": "shepherd", "description": "Counts for the farm.", "visibility": "private"}
    daemon.client.register_specialist(Card.model_validate(written))
    assert daemon.client.specialist("shepherd").content.document == {**written, "url": "ws-agent://shepherd"}
    submit(site, "sheep")
    agent.finish(agent.accept())
    assert ended(daemon, "sheep").agent == "hub:shepherd"


def test_an_agent_that_has_left_gets_no_work_that_names_nobody(site: Site) -> None:
    daemon = site.start().ready()
    agent = Agent(site)
    agent.register()
    agent.close()

    def problem() -> str:
        return next((str(agent.problem) for agent in daemon.client.agents() if agent.name == "hub:shepherd"), "")

    wait_until(lambda: "not connected" in problem(), "the daemon to notice")
    site.drop("count.yaml", document(None, "Count sheep", agent=None))
    in_state(daemon, "count", "QUEUED", "RUNNING", "COMPLETED")
    wait_until(lambda: "its agent is not connected" in str(daemon.client.why("count").sentences), "the decision")
    assert daemon.client.task("count").specialist != "shepherd"


def test_an_agent_registers_under_no_card_of_somebody_at_another_address(site: Site) -> None:
    daemon = site.start().ready()
    elsewhere = {"id": "shepherd", "description": "Counts.", "url": "https://agents.example/rpc"}
    daemon.client.register_specialist(Card.model_validate(elsewhere))
    refused = Agent(site).register()
    assert refused["error"]["code"] == -32009
    assert "names another address" in refused["error"]["message"]
    assert daemon.client.specialist("shepherd").content.url == "https://agents.example/rpc"


def test_what_an_agent_fails_at_fails_with_its_reason(site: Site) -> None:
    daemon = site.start().ready()
    agent = Agent(site)
    agent.register()
    submit(site, "sheep")
    agent.finish(agent.accept(), status="failed", text="I count no sheep.", reason="refused")
    task = ended(daemon, "sheep")
    assert (task.state, task.reason) == ("FAILED", "refused")
    assert "I count no sheep." in str(task.reason_text)


def test_a_daemon_that_is_killed_loses_and_doubles_nothing(site: Site) -> None:
    daemon = site.start().ready()
    agent = Agent(site)
    agent.register()
    submit(site, "sheep")
    assignment = agent.accept()
    accepted(daemon, "sheep")

    daemon.kill()
    daemon = site.start().ready()
    again = Agent(site)
    assert again.register(resume=(assignment, "no-such-assignment"))["result"]["resumed"] == [assignment]
    assert again.finish(assignment)["result"] == {"recorded": True, "duplicate": False}

    task = ended(daemon, "sheep")
    assert (task.state, task.attempts, len(daemon.client.runs("sheep"))) == ("COMPLETED", 1, 1)


def test_a_result_that_was_recorded_before_the_daemon_was_killed_counts(site: Site) -> None:
    daemon = site.start().ready()
    agent = Agent(site)
    agent.register()
    submit(site, "sheep")
    assignment = agent.accept()
    accepted(daemon, "sheep")
    assert agent.finish(assignment)["result"]["recorded"] is True
    daemon.kill()

    daemon = site.start().ready()
    assert ended(daemon, "sheep").result_text == "42 sheep"
    again = Agent(site)
    assert again.register(resume=(assignment,))["result"]["resumed"] == []
    assert again.finish(assignment)["result"] == {"recorded": True, "duplicate": True}


def test_an_agent_that_was_cut_off_goes_on_where_it_was(site: Site) -> None:
    daemon = site.start().ready()
    agent = Agent(site)
    agent.register()
    submit(site, "sheep")
    assignment = agent.accept()
    accepted(daemon, "sheep")
    agent.cut()

    again = Agent(site)
    assert again.register(instance="one", resume=(assignment,))["result"]["resumed"] == [assignment]
    assert again.finish(assignment)["result"]["duplicate"] is False
    assert ended(daemon, "sheep").attempts == 1


def test_a_cancelled_task_is_cancelled_there(site: Site) -> None:
    daemon = site.start().ready()
    agent = Agent(site)
    agent.register()
    submit(site, "sheep")
    assignment = agent.accept()
    accepted(daemon, "sheep")
    daemon.client.cancel("sheep")
    asked = agent.called("task.cancel")
    assert asked["params"] == {"assignment_id": assignment}
    agent.send(id=asked["id"], result={})
    assert ended(daemon, "sheep").state == "CANCELLED"
    assert agent.finish(assignment)["error"]["code"] == -32009


def test_of_two_connections_one_is_assigned_and_none_more_than_it_takes(site: Site) -> None:
    daemon = site.start().ready()
    agent, other = Agent(site), Agent(site)
    agent.register(instance="one", max_concurrent=1)
    other.register(instance="other", max_concurrent=1)
    submit(site, "sheep")
    assignment = agent.accept()
    accepted(daemon, "sheep")
    assert other.ask("ping")["result"] == {}
    assert other.waiting == []
    assert agent.finish(assignment)["result"]["recorded"] is True
    assert ended(daemon, "sheep").state == "COMPLETED"


def test_another_agents_result_is_refused(site: Site) -> None:
    daemon = site.start().ready()
    agent, thief = Agent(site), Agent(site, "thief")
    agent.register()
    thief.register()
    submit(site, "sheep")
    assignment = agent.accept()
    accepted(daemon, "sheep")
    assert thief.finish(assignment)["error"]["code"] == -32004
    assert thief.finish("no-such-assignment")["error"]["code"] == -32004
    agent.finish(assignment)
    assert ended(daemon, "sheep").state == "COMPLETED"


def test_nobody_takes_over_anothers_name(site: Site) -> None:
    daemon = site.start().ready()
    Agent(site).register()
    made = daemon.client.create_token(TokenRequest(name="ann", role="operate", organisation="acme"))
    ann = Agent(site, secret=made.token)
    assert ann.register()["error"]["code"] == -32009
    hers = Agent(site, "hers", secret=made.token)
    assert hers.register(card={**CARD, "organisation": "globex"})["error"]["code"] == -32001
    made = daemon.client.create_token(TokenRequest(name="reader", role="read"))
    reader = Agent(site, "reader", secret=made.token)
    assert reader.register()["error"]["code"] == -32001
    assert hers.register()["result"]["agent_id"] == "hers"
    result = reader.ask("agent.search", query="sheep")["result"]
    assert [agent["name"] for agent in result["agents"]] == ["shepherd"], "hers does no work of others"
    assert result["total"] == 1
    assert hers.ask("agent.search", query="sheep")["result"]["total"] == 1
