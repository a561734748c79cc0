"""Following a real daemon from the command line: its tasks, and what their agents write, over a restart of it."""

import json
import select
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from tests.e2e.site import Site
from tests.patience import wait_until

SECRET = "hunter22-of-the-daemon"


@contextmanager
def output_of(site: Site, *arguments: str) -> Iterator[IO[str]]:
    """What the command writes, until the block ends."""
    running = site.command.start(*arguments)
    with running:
        try:
            assert running.stdout is not None
            yield running.stdout
        finally:
            running.kill()


def task(agent: str, *lines: str) -> str:
    """A task file for that agent."""
    return json.dumps({"instructions": "\n".join(lines), "agent": {"type": agent}})


def test_an_agents_output_is_followed_over_a_restart_of_the_daemon(site: Site) -> None:
    agents = json.loads(site.config_file.read_text())["agents"]
    agents["sh"]["pass_env"] = ["MINE"]
    site.configure(agents=agents)
    daemon = site.start(MINE=SECRET).ready()
    gate = site.root / "gate"
    wait = f"while [ ! -e {gate} ]; do sleep 0.05; done"
    site.drop("it.yaml", task("sh", 'do: echo "one $MINE"', f"do: {wait}", "do: echo two"))
    wait_until(lambda: daemon.client.status().counts.get("RUNNING"), "the task to run")
    with output_of(site, "logs", "it", "-f") as output:
        assert output.readline() == "one [redacted]\n"
        endpoint = site.endpoint
        assert endpoint is not None
        site.configure(agents=agents, http={"listen": endpoint.removeprefix("http://")})
        assert daemon.stop() == 0
        assert "graceful shutdown exceeded" not in site.log_text()
        daemon = site.start(MINE=SECRET).ready()
        gate.touch()
        assert output.readline() == "two\n"
        assert output.read() == ""  # it ends by itself, when the run does
    site.drain(daemon)
    raw = site.command("logs", "it", "--raw")
    assert raw.stdout == f"one {SECRET}\ntwo\n"


def test_tasks_are_watched_from_their_acceptance_to_their_end(site: Site) -> None:
    site.start().ready()
    with output_of(site, "status", "--watch", "-o", "json") as output:
        wait_until(lambda: _begun(site, output), "the command to watch")
        site.drop("it.yaml", task("simulated", "simulate: text=hi"))
        task_id = ""
        messages: list[str] = []
        while "COMPLETED" not in messages:
            event = json.loads(output.readline())
            if event["kind"] == "accepted" and event["data"]["name"] == "it":
                task_id = event["task_id"]
            elif (event["kind"], event["task_id"]) == ("state", task_id):
                messages.append(event["data"]["state"])
    assert list(dict.fromkeys(messages)) == ["QUEUED", "RUNNING", "COMPLETED"]
    shown = site.command("logs", "it")
    assert shown.stdout.endswith("[simulated] hi\n")


def _begun(site: Site, output: IO[str]) -> bool:
    """Whether the command has an open stream: then what is asked of the daemon is told there."""
    site.command("release", "simulated")
    if select.select([output], [], [], 0.2)[0]:
        return bool(output.readline())
    return False
