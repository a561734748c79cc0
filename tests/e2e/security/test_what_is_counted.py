"""What a guest costs is counted whichever way it comes: progress of its runs, and slots of its tasks."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from tests.e2e.hub_agent import Agent
from tests.e2e.scenarios_support import ended, in_state
from tests.e2e.security.test_principals import Served
from tests.e2e.site import open_site
from tests.e2e.test_shared_slots import SILENT, done_by_operator, running
from tests.patience import wait_until
from tests.warm.starter import WarmStarter

BARN = "barn"
FRAMES = 60
MAX_KEPT_BYTES = 3 * 1024 * 1024
"""Of a run that says twice as much at once: a burst, a result, and what the pace lets through in a minute."""
SLOTS = 4
HANGS = "simulate: outcome=hang"


class Barn:
    """An agent of acme's that has a run, and may come more than once."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.secret = served.token("acme-ann", "operate", organisation="acme")
        self.foreign = served.token("globex-bob", "operate", organisation="globex")
        self.number = 0
        self.task = ""

    def connected(self, instance: str = "one", secret: str | None = None, **more: Any) -> Agent:
        agent = Agent(self.served.site, BARN, secret=secret or self.secret)
        agent.register(instance=instance, card=SILENT, max_concurrent=100, **more)
        return agent

    def run(self, agent: Agent, *, accepts: bool = True) -> str:
        """Begin one more."""
        self.number += 1
        self.task = f"loud-{self.number}"
        agent.ask("task.submit", name=self.task, instructions="Wait for me.", specialist=BARN)
        if accepts:
            return agent.accept()
        asked = agent.called("task.assign")
        agent.waiting.append(asked)
        return str(asked["params"]["assignment_id"])


def say(agent: Agent, run: str, text: str = "x" * 90_000, frames: int = FRAMES, **more: Any) -> None:
    with suppress(ConnectionClosed):  # who says too much is cut off, which is well, too
        for number in range(frames):
            params = {"assignment_id": run, "seq": number, "text": text, **more}
            agent.send(method="task.progress", params=params)
        assert agent.ask("ping")["result"] == {}


def by_one_connection(barn: Barn, **fields: Any) -> str:
    agent = barn.connected()
    run = barn.run(agent)
    say(agent, run, **fields)
    return run


def by_many_connections(barn: Barn) -> str:
    agents = [barn.connected(f"instance-{number}") for number in range(4)]
    barn.number += 1
    barn.task = f"loud-{barn.number}"
    agents[0].ask("task.submit", name=barn.task, instructions="Wait for me.", specialist=BARN)
    wait_until(lambda: barn.served.operator.task(barn.task).state == "RUNNING", "it to run")
    (result,) = barn.served.operator.runs(barn.task)
    for agent in agents:
        say(agent, result.id, frames=FRAMES // 4)
    return result.id


def by_coming_back(barn: Barn) -> str:
    agent = barn.connected()
    run = barn.run(agent)
    for _ in range(3):
        say(agent, run, frames=FRAMES // 3)
        agent.close()
        agent = barn.connected(resume=(run,))
    return run


def before_it_is_accepted(barn: Barn) -> str:
    agent = barn.connected()
    run = barn.run(agent, accepts=False)
    say(agent, run)
    agent.accept()
    return run


def after_its_end(barn: Barn) -> str:
    agent = barn.connected()
    run = barn.run(agent)
    assert agent.finish(run)["result"]["recorded"]
    say(agent, run)
    return run


def in_results(barn: Barn) -> str:
    agent = barn.connected()
    run = barn.run(agent)
    for number in range(6):
        agent.finish(run, text=f"{number}{'x' * 900_000}")
    return run


def by_somebody_else(barn: Barn) -> str:
    run = barn.run(barn.connected())
    other = Agent(barn.served.site, "shed", secret=barn.foreign)
    other.register(card=SILENT)
    say(other, run)
    return run


def by_nobody_registered(barn: Barn) -> str:
    run = barn.run(barn.connected())
    say(Agent(barn.served.site, secret=barn.secret), run)
    return run


SAYING: dict[str, Callable[[Barn], str]] = {
    "one connection": by_one_connection,
    "many connections": by_many_connections,
    "coming back": by_coming_back,
    "before it is accepted": before_it_is_accepted,
    "after its end": after_its_end,
    "results": in_results,
    "somebody else": by_somebody_else,
    "nobody registered": by_nobody_registered,
    "signs that are escaped": lambda barn: by_one_connection(barn, text="\x01" * 90_000, frames=20),
    "signs of four bytes": lambda barn: by_one_connection(barn, text="\U0001f411" * 80_000, frames=30),
    "halves of signs": lambda barn: by_one_connection(barn, text="\ud83d" * 80_000, frames=30),
    "quotes": lambda barn: by_one_connection(barn, text='"' * 90_000, frames=40),
    "with a share": lambda barn: by_one_connection(barn, percent=99.5),
}


@pytest.fixture(scope="module")
def barn(tmp_path_factory: pytest.TempPathFactory, warm: WarmStarter) -> Iterator[Barn]:
    with (
        open_site(tmp_path_factory.mktemp("barn") / "site", warm=warm, routing={"shipped": False}) as site,
        ExitStack() as Agent.open,
    ):
        yield Barn(Served(site, site.start().ready()))


@pytest.mark.parametrize("way", SAYING)
def test_of_what_a_run_says_no_more_is_kept_than_there_is_room_for(barn: Barn, way: str) -> None:
    run = SAYING[way](barn)
    folder = barn.served.site.state / "runs" / run
    for name in ("mailbox", "stdout.jsonl"):
        wait_until((folder / name).exists, f"{name} to be there")  # what was said may still be on its way
        assert (folder / name).stat().st_size < MAX_KEPT_BYTES, name
    done_by_operator(barn.served.site, barn.served.daemon, f"own-{barn.number}")
    if barn.served.operator.task(barn.task).state == "RUNNING":
        barn.served.operator.cancel(barn.task)


class Guest:
    """Somebody of acme's who wants all the slots, with two tokens."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.secrets = [served.token(f"acme-{name}", "operate", organisation="acme") for name in ("ann", "eve")]
        self.number = 0

    def submit(self, name: str, token: int = 0, **fields: Any) -> None:
        task = {"name": name, "instructions": HANGS, "agent": {"type": "simulated"}, **fields}
        answer = self.served.ask(self.secrets[token], "POST", "/v1/tasks", json=task)
        assert answer.status_code == 201, answer.text

    def restarted(self, name: str) -> None:
        self.submit(name)
        self.served.ask(self.secrets[0], "POST", f"/v1/tasks/{name}/cancel", json={})
        in_state(self.served.daemon, name, "CANCELLED")
        answer = self.served.ask(self.secrets[0], "POST", f"/v1/tasks/{name}/restart", json={})
        assert answer.status_code == 202, answer.text

    def by_hub(self, name: str) -> None:
        agent = Agent(self.served.site, secret=self.secrets[0])
        assert "result" in agent.ask("task.submit", name=name, instructions=HANGS, specialist="idle")
        agent.close()


SUBMITTING: dict[str, Callable[[Guest, str, int], None]] = {
    "tasks": lambda guest, name, _: guest.submit(name),
    "two tokens": lambda guest, name, number: guest.submit(name, token=number % 2),
    "urgent": lambda guest, name, _: guest.submit(name, priority="urgent"),
    "long": lambda guest, name, _: guest.submit(name, timeout="7d", stall_timeout="7d"),
    "with a check": lambda guest, name, _: guest.submit(name, check=["true"]),
    "due before": lambda guest, name, _: guest.submit(name, not_before="2020-01-01T00:00:00Z"),
    "in folders of their own": lambda guest, name, _: guest.submit(name, tags=[name]),
    "no other agent": lambda guest, name, _: guest.submit(name, agent={"type": "simulated", "strict": True}),
    "restarts": lambda guest, name, _: guest.restarted(name),
    "a card of its own": lambda guest, name, _: guest.submit(name, specialist="idle"),
    "the hub": lambda guest, name, _: guest.by_hub(name),
}


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory, warm: WarmStarter) -> Iterator[Guest]:
    agents = {"simulated": {"kind": "simulated", "auto_select": True, "max_concurrent": 99}}
    config: dict[str, Any] = {"routing": {"shipped": False}, "agents": agents, "concurrency": {"total": SLOTS}}
    with (
        open_site(tmp_path_factory.mktemp("slots") / "site", warm=warm, **config) as site,
        ExitStack() as Agent.open,
    ):
        guest = Guest(Served(site, site.start().ready()))
        card = {"id": "idle", "description": "Waits.", "visibility": "private", "allowed_agents": ["simulated"]}
        assert guest.served.ask(guest.secrets[0], "POST", "/v1/specialists", json=card).status_code == 201
        yield guest


@pytest.mark.parametrize("way", SUBMITTING)
def test_a_guest_has_half_of_the_slots_and_the_operator_does_not_wait(guest: Guest, way: str) -> None:
    guest.number += 1
    prefix, daemon = f"g{guest.number}-", guest.served.daemon
    names = [f"{prefix}{entry}" for entry in range(SLOTS + 2)]
    for number, name in enumerate(names):
        SUBMITTING[way](guest, name, number)
    wait_until(lambda: len(running(daemon, prefix)) == SLOTS // 2, "the guest's to run")
    for number in range(2):
        own = f"own-{guest.number}-{number}"
        task = {"name": own, "instructions": "simulate: outcome=success", "agent": {"type": "simulated"}}
        operator = (guest.served.site.state / "token").read_text().strip()
        assert guest.served.ask(operator, "POST", "/v1/tasks", json={**task, "priority": "low"}).status_code == 201
        assert ended(daemon, own).state == "COMPLETED"
    assert len(running(daemon, prefix)) == SLOTS // 2
    for name in reversed(names):
        guest.served.operator.cancel(name)
    for name in names:
        in_state(daemon, name, "CANCELLED")
