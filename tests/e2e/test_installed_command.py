"""The installed command itself, as a user has it: three agents, limits, tiers and restarts, and why each came about."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from claudomator_py.resources.tasks import TaskView
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import document, ended, in_state, waits_for, why
from tests.e2e.site import Site, open_site
from tests.fakes.tier_server import Behaviour, TierServer, hangs, says, status, tier
from tests.patience import PATIENCE_S, wait_until

# Beside the interpreter, in its unresolved folder: that is the environment that it was installed into.
COMMAND = Path(sys.executable).with_name("claudomator")
MODELS = {"fast": "small", "balanced": "middle", "powerful": "large"}
BUSY = "simulate: outcome=hang"
DONE = "simulate: outcome=success"
LIMITED = "simulate: outcome=limited(reset=1h)"


def simulated(script: str | None = None) -> dict[str, object]:
    return {"kind": "simulated", "auto_select": True, "max_concurrent": 2, "script": script, "models": MODELS}


@pytest.fixture
def server() -> Iterator[TierServer]:
    with TierServer(tier("fast", "a recipe is given")) as running:
        yield running


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Site]:
    """A site with the agents alpha, beta and gamma, whose daemons are the installed command."""
    assert COMMAND.exists(), f"{COMMAND} is missing: install the project (pip install --editable .)"
    agents = {name: simulated() for name in ("alpha", "beta", "gamma")}
    with open_site(tmp_path / "site", command=[str(COMMAND)], agents=agents, concurrency={"total": 8}) as site:
        yield site


def started(site: Site) -> Daemon:
    """A daemon that finds the package where it is installed, and nowhere else."""
    return site.start(PYTHONPATH="").ready()


def drop(site: Site, name: str, *lines: str, agent: object = None, **fields: object) -> None:
    site.drop(f"{name}.yaml", document(None, *lines, agent=agent, **fields))


def limit(site: Site, daemon: Daemon, agent: str) -> TaskView:
    """Have the agent meet a limit, in a task that insists on it and waits."""
    drop(site, "unlucky", LIMITED, agent={"type": agent, "strict": True, "tier": "fast"})
    wait_until(lambda: any(known.name == agent and known.limited for known in daemon.client.agents()), "the limit")
    return waits_for(daemon, "unlucky", "limited")


def settled(site: Site, daemon: Daemon, name: str, *lines: str) -> TaskView:
    drop(site, name, *lines or (DONE,))
    return ended(daemon, name)


def say(site: Site, *words: str) -> str:
    """What the installed command prints."""
    words = (str(COMMAND), *words, "--config", str(site.config_file))
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(site.root / "home"), "COLUMNS": "500"}
    done = subprocess.run(
        words, env=environ, cwd=site.root, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_three_agents_share_the_work_and_it_flows_around_the_one_that_is_limited(three: Site) -> None:
    daemon = started(three)
    for number in range(3):
        drop(three, f"busy-{number}", BUSY)
        in_state(daemon, f"busy-{number}", "RUNNING")
    assert Counter(task.agent for task in daemon.client.all_tasks()) == {"alpha": 1, "beta": 1, "gamma": 1}
    assert why(daemon, "busy-1").splitlines()[0] == "busy-1 is RUNNING on beta."
    assert " went to beta: least active (0 of 2 slots)." in why(daemon, "busy-1")
    assert "alpha was busier (1 of 2 slots)." in why(daemon, "busy-1")
    assert "Tier balanced (middle): the agent's default (no classifier is configured)." in why(daemon, "busy-1")

    waiting = limit(three, daemon, "alpha")
    assert waiting.reason == "limited"
    assert "alpha is limited (" in str(waiting.reason_text)
    went = [settled(three, daemon, f"flows-{number}") for number in range(3)]

    assert {task.agent for task in went} == {"beta"}, "gamma is as busy, and beta comes first alphabetically"
    assert {task.state for task in went} == {"COMPLETED"}
    story = why(daemon, "flows-0")
    assert story.splitlines()[0].startswith("flows-0 is COMPLETED")
    assert "alpha was limited (simulated, reported) until " in story
    assert "gamma was as busy as beta, which comes first alphabetically." in story
    printed = " ".join(say(three, "why", "flows-0").split())
    for sentence in story.splitlines():
        assert sentence in printed
    assert "Run 1 on alpha met a limit" in why(daemon, "unlucky")
    assert daemon.stop() == 0


FAULTS: list[tuple[str, str]] = [
    ("lying", "the classifier named a tier it was not offered: the tier ultra was not offered"),
    ("babbling", "the classifier's answer could not be read"),
    ("broken", "the classifier failed: it answered with HTTP 500"),
    ("slow", "the classifier did not answer in time"),
]


def test_whatever_the_classifier_does_every_task_is_done_and_says_how_its_model_was_chosen(
    three: Site, server: TierServer
) -> None:
    three.configure(
        agents={name: simulated() for name in ("alpha", "beta")},
        classifier={"kind": "openai", "model": "lite", "base_url": server.url, "timeout": "5s"},
    )
    behaviours: dict[str, Behaviour] = {
        "lying": says('{"tier": "ultra", "reason": "more is more"}'),
        "babbling": says("I would rather not say."),
        "broken": status(500),
        "slow": hangs(server.closing),
    }
    daemon = started(three)

    for name, cause in FAULTS:
        server.behaviour = behaviours[name]
        task = settled(three, daemon, name)
        assert (task.state, task.tier, task.model) == ("COMPLETED", "balanced", "middle")
        assert f"Tier balanced (middle): the agent's default ({cause}" in why(daemon, name)
    server.behaviour = tier("fast", "a recipe is given")
    first = settled(three, daemon, "task")
    assert (first.agent, first.state, first.tier, first.model) == ("alpha", "COMPLETED", "fast", "small")
    assert first.generation == 1
    assert "Tier fast (small): as the classifier says (a recipe is given)." in why(daemon, "task")

    # A restart over HTTP decides everything again.
    limit(three, daemon, "alpha")
    server.behaviour, asked = tier("powerful", "it came back"), len(server.asked)

    token = (three.state / "token").read_text().strip()
    answer = httpx.post(
        f"{three.endpoint}/v1/tasks/task/restart",
        json={},
        headers={"authorization": f"Bearer {token}"},
        timeout=PATIENCE_S,
    )

    assert answer.status_code in (200, 202), answer.text
    wait_until(lambda: daemon.client.task("task").generation == 2, "the second generation")
    second = ended(daemon, "task")
    assert (second.agent, second.tier, second.model) == ("beta", "powerful", "large")
    assert len(server.asked) == asked + 1
    story = why(daemon, "task")
    assert " went to beta: " in story
    assert "alpha was limited (" in story
    assert "Tier powerful (large): as the classifier says (it came back)." in story
