"""An agent of a guest is connected, and its card copies what others ask for: by no way does their work come to it."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from claudomator_py.api.guard.pace import ONE_PRINCIPAL
from claudomator_py.protocols.hub.mailbox import MAX_PROGRESS_BYTES
from tests.e2e.hub_agent import Agent
from tests.e2e.processes import cpu_s
from tests.e2e.security.test_principals import Served
from tests.e2e.site import open_site
from tests.patience import PATIENCE_S, wait_until
from tests.warm.starter import WarmStarter

LOOK = "Review the diff of the login module"
EARS = "acme-ears"
TITLE = "Code reviewer"
CARD = {
    "description": "Reviews diffs",
    "name": TITLE,
    "visibility": "public",
    "skills": [{"id": "s", "name": "Review diffs", "description": LOOK, "examples": [LOOK, f"{LOOK}."]}],
}
NOISE = 100_000
"""Frames, unless the connection is ended before."""
MAX_SHARE = 2 * ONE_PRINCIPAL.of_one
"""Of a processor, for the guest and for what the daemon does anyway. Such noise kept its loop busy for as long as it
lasted, and each result that came late for a fifth of a second."""


class Asking:
    """Somebody whose work is none of acme's."""

    def __init__(self, served: Served, token: str, name: str) -> None:
        self.served, self.token, self.name = served, token, name
        self.tasks: list[str] = []

    def http(self, method: str, path: str, /, **body: Any) -> Any:
        answer = self.served.ask(self.token, method, path, json=body)
        assert answer.status_code < 500, answer.text
        record = answer.json()
        if path == "/v1/tasks" and answer.status_code == 201:
            self.tasks.append(record["id"])
        return record

    def task(self, name: str, /, **fields: Any) -> Any:
        return self.http("POST", "/v1/tasks", name=f"{name}-{self.name}", **{"instructions": LOOK, **fields})

    def a2a(self, message_id: str, /, text: str = LOOK, **metadata: Any) -> None:
        fields = {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": text}], "metadata": metadata}
        params = {"message": fields, "configuration": {"returnImmediately": True}}
        http = self.http("POST", "/a2a", jsonrpc="2.0", id=1, method="SendMessage", params=params)
        if "result" in http:
            self.tasks.append(http["result"]["task"]["id"])

    def hub(self, name: str, /, **fields: Any) -> None:
        agent = Agent(self.served.site, secret=self.token)
        payload = agent.ask("task.submit", name=f"{name}-{self.name}", **{"instructions": LOOK, **fields})
        if "result" in payload:
            self.tasks.append(payload["result"]["task_id"])
        agent.close()


def by_restart(asking: Asking, **fields: Any) -> None:
    made = asking.task("again", not_before="2099-01-01T00:00:00Z")
    asking.http("POST", f"/v1/tasks/{made['id']}/cancel")
    asking.http("POST", f"/v1/tasks/{made['id']}/restart", **fields)


def by_follow_up(asking: Asking, **fields: Any) -> None:
    first = asking.task("first", instructions="do: true", agent={"type": "sh"})
    asking.task("second", continues=first["id"], **fields)


def in_a_channel(asking: Asking, text: str, *, primary: bool = False) -> None:
    channel = f"room-{asking.name}-{primary}".lower()
    asking.http("POST", "/v1/channels", name=channel, participants=[EARS])
    asking.http("POST", "/v1/channels", name=channel)
    asking.http("POST", f"/v1/channels/{channel}/participants", specialist=EARS)
    if primary:
        asking.http("PUT", f"/v1/channels/{channel}/settings", settings={"primary": "always"}, primary=EARS)
    http = asking.http("POST", f"/v1/channels/{channel}/messages", content=text)
    assert [answer for answer in http["answers"] if answer["specialist"] == EARS and answer.get("task_id")] == []


def by_a_card_of_ones_own(asking: Asking, field: str) -> None:
    """Whose fallback, or whose hand that is."""
    mine = f"mine-{field}-{asking.name}".lower()
    asking.http("POST", "/v1/specialists", id=mine, description="Reviews diffs", **{field: EARS})
    asking.task(f"by-{field}", specialist=mine)


WAYS: dict[str, Callable[[Asking], Any]] = {
    "text": lambda by: by.task("text"),
    "its id in the text": lambda by: by.task("at", instructions=f"@{EARS} {LOOK}"),
    "its title in the text": lambda by: by.task("title", instructions=f"@{TITLE}, {LOOK}"),
    "by name": lambda by: by.task("named", specialist=EARS),
    "by name and skill": lambda by: by.task("skilled", specialist=EARS, skill="s"),
    "its agent": lambda by: by.task("agent", agent={"type": f"hub:{EARS}"}),
    "its agent alone": lambda by: by.task("strict", agent={"type": f"hub:{EARS}", "strict": True}),
    "its address": lambda by: by.task("address", agent={"type": f"ws-agent://{EARS}"}),
    "tags": lambda by: by.task("tags", instructions="See the tags.", tags=["review", "diff", "login"]),
    "its name is the text": lambda by: by.task("Review the diff of the login module", instructions="See above."),
    "A2A, text": lambda by: by.a2a(f"m1-{by.name}"),
    "A2A, executor": lambda by: by.a2a(f"m2-{by.name}", executor={"name": EARS}),
    "A2A, executor.name": lambda by: by.a2a(f"m3-{by.name}", **{"executor.name": EARS}),
    "A2A, skill": lambda by: by.a2a(f"m4-{by.name}", skill_used=EARS),
    "A2A, id in the text": lambda by: by.a2a(f"m5-{by.name}", text=f"@{EARS} {LOOK}"),
    "hub, text": lambda by: by.hub("hub-text"),
    "hub, name": lambda by: by.hub("hub-name", specialist=EARS),
    "hub, id in the text": lambda by: by.hub("hub-at", instructions=f"@{EARS} {LOOK}"),
    "restart": by_restart,
    "restart with it": partial(by_restart, specialist=EARS),
    "restart with other words": partial(by_restart, instructions=f"@{EARS} {LOOK}"),
    "follow-up": by_follow_up,
    "follow-up with it": partial(by_follow_up, specialist=EARS),
    "a message": partial(in_a_channel, text=f"@{EARS} {LOOK}"),
    "a message to the title": partial(in_a_channel, text=f"@{TITLE} {LOOK}"),
    "a message to whoever is first": partial(in_a_channel, text=LOOK, primary=True),
    "fallback": partial(by_a_card_of_ones_own, field="fallback"),
    "escalation": partial(by_a_card_of_ones_own, field="escalate_to"),
}


@pytest.fixture(scope="module")
def listening(
    tmp_path_factory: pytest.TempPathFactory, warm: WarmStarter
) -> Iterator[tuple[Served, Agent, dict[str, Asking]]]:
    with (
        open_site(tmp_path_factory.mktemp("ears") / "site", warm=warm, routing={"shipped": False}) as site,
        ExitStack() as Agent.open,
    ):
        served = Served(site, site.start().ready())
        ears = Agent(site, EARS, secret=served.token("acme-ann", "operate", organisation="acme"))
        assert "result" in ears.register(card=CARD, max_concurrent=1_000)
        operator = (site.state / "token").read_text().strip()
        askers = {
            "operator": Asking(served, operator, "op"),
            "no organisation": Asking(served, served.token("dan", "operate"), "dan"),
            "globex": Asking(served, served.token("globex-bob", "operate", organisation="globex"), "bob"),
        }
        yield served, ears, askers


@pytest.mark.parametrize("way", WAYS)
def test_no_work_of_others_comes_to_it(listening: tuple[Served, Agent, dict[str, Asking]], way: str) -> None:
    served, ears, askers = listening
    for asking in askers.values():
        WAYS[way](asking)
        for task in asking.tasks:
            wait_until(partial(_is_settled, served, task), "it to be routed")
            assert served.operator.task(task).specialist != EARS
            assert f"hub:{EARS}" not in [run.agent for run in served.operator.runs(task)]
        asking.tasks.clear()
    assert ears.ask("ping")["result"] == {}
    assert ears.waiting == [], "it heard of it"


def _is_settled(served: Served, task: str) -> bool:
    """Whether it is decided who does it."""
    view = served.operator.task(task)
    return view.state != "QUEUED" or view.reason is not None


def test_its_own_sides_work_does(listening: tuple[Served, Agent, dict[str, Asking]]) -> None:
    served, ears, _ = listening
    asking = Asking(served, served.token("acme-eve", "operate", organisation="acme"), "eve")
    for way in ("text", "by name", "A2A, executor", "hub, id in the text"):
        WAYS[way](asking)
        assignment = ears.accept()
        assert ears.finish(assignment)["result"]["recorded"], json.dumps(way)


def stays_within_its_share(served: Served, meanwhile: Callable[[], object]) -> None:
    """Fail where the daemon computes more than a guest's share while somebody does that, an answer to the operator
    included."""
    before_s, began_s = cpu_s(served.daemon.pid), time.monotonic()
    meanwhile()
    assert httpx.get(f"{served.url}/livez", timeout=PATIENCE_S, trust_env=False).status_code == 200
    passed_s = time.monotonic() - began_s
    assert cpu_s(served.daemon.pid) - before_s < ONE_PRINCIPAL.burst_s + MAX_SHARE * passed_s


@pytest.mark.parametrize("kind", ["ping", "pong", "empty text", "binary"])
def test_a_guest_that_only_makes_noise_keeps_nobody_waiting(
    listening: tuple[Served, Agent, dict[str, Asking]], kind: str
) -> None:
    served, _, _ = listening
    secret = served.token(f"acme-{kind.replace(' ', '-')}", "read", organisation="acme")

    def noise() -> None:
        agent = Agent(served.site, secret=secret)
        with suppress(ConnectionClosed, OSError):
            for _ in range(NOISE):
                match kind:
                    case "ping":
                        agent.connection.ping()
                    case "pong":
                        agent.connection.pong()
                    case "empty text":
                        agent.connection.send("")
                    case _:
                        agent.connection.send(b"")
        agent.close()

    stays_within_its_share(served, noise)


def test_results_that_come_late_keep_nobody_waiting(listening: tuple[Served, Agent, dict[str, Asking]]) -> None:
    """However much the run's mailbox holds."""
    served, ears, _ = listening
    asking = Asking(served, served.token("acme-may", "operate", organisation="acme"), "may")
    asking.task("loud", specialist=EARS)
    assignment = ears.accept()
    for number in range(60):  # with what comes late, fewer than a connection may send at once
        ears.send(method="task.progress", params={"assignment_id": assignment, "seq": number, "text": "x" * 90_000})
    assert ears.finish(assignment)["result"]["recorded"]
    (task,) = asking.tasks
    wait_until(lambda: served.operator.task(task).state == "COMPLETED", "it to end")
    (run,) = served.operator.runs(task)
    assert (served.site.state / "runs" / run.id / "mailbox").stat().st_size < MAX_PROGRESS_BYTES + (1 << 20)

    def late() -> None:
        for number in range(40):
            ears.finish(assignment, text=f"another {number}")

    stays_within_its_share(served, late)
