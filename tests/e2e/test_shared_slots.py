"""Slots of a real daemon are shared: whatever a guest submits, and however silent its agents are, the operator's work
begins within seconds, and so does another guest's."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from claudomator_py.client import Client, TaskSpec
from claudomator_py.domain.blocked import BlockCode
from claudomator_py.resources.access import TokenRequest
from tests.e2e.daemon import Daemon
from tests.e2e.hub_agent import Agent
from tests.e2e.scenarios_support import document, ended, in_state, waits_for, why
from tests.e2e.site import Site, open_site
from tests.patience import PATIENCE_S, wait_until
from tests.warm.starter import WarmStarter

SILENT = {
    "description": "Says nothing.",
    "visibility": "private",
    "skills": [{"id": "wait", "name": "Waiting", "examples": ["Wait for me"]}],
}


@pytest.fixture
def site(tmp_path: Path, warm: WarmStarter) -> Iterator[Site]:
    with open_site(tmp_path / "site", warm=warm, routing={"shipped": False}) as site:
        yield site


@pytest.fixture(autouse=True)
def _connections() -> Iterator[None]:
    with ExitStack() as Agent.open:
        yield


class Guest:
    """Somebody else with a token."""

    def __init__(self, site: Site, daemon: Daemon, name: str, organisation: str | None) -> None:
        self.site = site
        self.name = name
        self.secret = daemon.client.create_token(
            TokenRequest(name=name, role="operate", organisation=organisation)
        ).token

    def submit(self, name: str, instructions: str = "Wait for me.", **fields: Any) -> None:
        with Client(str(self.site.endpoint), self.secret, timeout_s=PATIENCE_S) as client:
            client.submit(TaskSpec.model_validate({"name": name, "instructions": instructions, **fields}))

    def agent(self, agent_id: str, card: Mapping[str, Any] = SILENT) -> Agent:
        """One that accepts whatever it is asked, and is never heard of again."""
        agent = Agent(self.site, agent_id, secret=self.secret)
        assert "result" in agent.register(card=dict(card), max_concurrent=100)
        return agent

    def floods(self, agent: Agent, number: int) -> None:
        """Have the agent hold as many runs as it gets."""
        for name in range(number):
            self.submit(f"{self.name}-{name}", specialist=agent.agent_id, timeout="7d", stall_timeout="7d")


def running(daemon: Daemon, prefix: str) -> set[str]:
    """The tasks of such names that run."""
    all_tasks = daemon.client.all_tasks()
    return {task.name for task in all_tasks if task.name.startswith(prefix) and task.state == "RUNNING"}


def done_by_operator(site: Site, daemon: Daemon, name: str) -> None:
    """A file of the operator's is done, and so is a task of its token."""
    site.drop(f"{name}.yaml", document(None, "Do it.", priority="low"))
    assert ended(daemon, name).state == "COMPLETED"


@pytest.mark.parametrize("organisation", ["acme", None])
def test_a_silent_agent_of_a_guest_keeps_nobody_waiting(site: Site, organisation: str | None) -> None:
    daemon = site.start().ready()
    guest = Guest(site, daemon, "ann", organisation)
    agent = guest.agent("barn")
    guest.floods(agent, 6)
    for _ in range(6):
        agent.accept()
    done_by_operator(site, daemon, "own")
    other = Guest(site, daemon, "ben", "globex")
    other.submit("bens", "Do it.", agent={"type": "sh"})
    assert ended(daemon, "bens").state == "COMPLETED"

    daemon.kill()
    daemon = site.start().ready()
    done_by_operator(site, daemon, "after")
    assert len(running(daemon, "ann-")) == 6


def test_one_guest_has_half_of_what_remote_agents_may_run_and_the_operator_the_last(site: Site) -> None:
    site.configure(routing={"shipped": False}, concurrency={"total": 1, "remote": 4})
    daemon = site.start().ready()
    ann, ben = (Guest(site, daemon, name, org) for name, org in (("ann", "acme"), ("ben", "globex")))
    ann.floods(ann.agent("barn"), 5)
    ben.floods(ben.agent("shed"), 5)
    wait_until(lambda: len(running(daemon, "ann-")) == 2 and len(running(daemon, "ben-")) == 1)
    waiting = waits_for(daemon, "ann-4", "slots")
    assert waiting.blocked is not None
    assert waiting.blocked.code is BlockCode.ORGANISATION_SLOTS
    assert "organisation acme uses all the slots that it may have (2 of 2, concurrency.remote_per" in why(
        daemon, "ann-4"
    )
    waiting = waits_for(daemon, "ben-4", "slots")
    assert waiting.blocked is not None
    assert waiting.blocked.code is BlockCode.KEPT_SLOTS
    own = Agent(site, "own")
    own.register()
    site.drop("mine.yaml", document(None, "Count the sheep.", agent=None, specialist="own"))
    own.finish(own.accept())
    assert ended(daemon, "mine").state == "COMPLETED"
    done_by_operator(site, daemon, "here")


def test_checks_of_what_a_guests_agents_did_have_no_more_slots_than_its_other_tasks(site: Site) -> None:
    daemon = site.start().ready()
    guest = Guest(site, daemon, "ann", "acme")
    agent = guest.agent("barn")
    for number in range(5):
        guest.submit(f"ann-{number}", specialist="barn", check=["sleep 600"])
    for assignment in [agent.accept() for _ in range(5)]:
        agent.finish(assignment)

    def phases() -> list[str]:
        tasks = daemon.client.all_tasks()
        return sorted(str(task.phase) for task in tasks if task.name.startswith("ann-"))

    wait_until(lambda: phases() == ["checking"] * 2 + ["running"] * 3)
    done_by_operator(site, daemon, "own")
    assert phases() == ["checking"] * 2 + ["running"] * 3
    waiting = next(task.name for task in daemon.client.all_tasks() if task.phase == "running")
    assert "its check waits for a slot: organisation acme uses all the slots that it may have" in why(daemon, waiting)
    checked = next(task.name for task in daemon.client.all_tasks() if task.phase == "checking")
    daemon.client.cancel(checked)
    in_state(daemon, checked, "CANCELLED")
    wait_until(lambda: phases().count("checking") == 2)


def test_a_guest_that_keeps_processors_busy_has_half_of_them(site: Site) -> None:
    site.configure(
        routing={"shipped": False},
        agents={"simulated": {"kind": "simulated", "auto_select": True, "max_concurrent": 9}},
    )
    daemon = site.start().ready()
    ann, ben = (Guest(site, daemon, name, org) for name, org in (("ann", "acme"), ("ben", None)))
    for number in range(5):
        ann.submit(f"ann-{number}", "simulate: outcome=hang", priority="urgent")
    wait_until(lambda: len(running(daemon, "ann-")) == 2)
    for number in range(5):
        ben.submit(f"ben-{number}", "simulate: outcome=hang", priority="urgent")
    wait_until(lambda: len(running(daemon, "ben-")) == 1)
    assert "ben uses" not in why(daemon, "ben-4"), "what is left is the operator's"
    for number in range(3):
        site.drop(f"own-{number}.yaml", document(None, "simulate: outcome=success", agent="simulated", priority="low"))
        assert ended(daemon, f"own-{number}").state == "COMPLETED"
    shown = json.loads(site.command("status", "-o", "json").stdout)
    codes = {task["name"]: task["blocked"]["code"] for task in shown["queued"] if task["blocked"] is not None}
    assert {codes["ann-4"], codes["ben-4"]} == {"organisation_slots", "kept_slots"}

    daemon.client.cancel("ann-0")
    in_state(daemon, "ann-0", "CANCELLED")
    wait_until(lambda: running(daemon, "ann-") == {"ann-1", "ann-2"})
    assert len(running(daemon, "ben-")) == 1
