"""Remote agents behind a real daemon: a remote run is a run, whatever happens to the daemon, the shim or the client."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from claudomator_py.client.http import Client
from claudomator_py.resources.access import TokenRequest
from claudomator_py.resources.tasks import AnswerRequest
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import document, ended, in_state, kill_run, last_run
from tests.e2e.site import Site, open_site
from tests.fakes.a2a import Request, Seen, plain_server, reply, sdk_server
from tests.fakes.cards import card
from tests.patience import wait_until
from tests.warm.starter import WarmStarter

SECRET = "s3cret-of-the-docs-bot"


@contextmanager
def remote_site(folder: Path, warm: WarmStarter, url: str, **entry: object) -> Iterator[Site]:
    agents = {"docs-bot": {"kind": "a2a", "url": url, **entry}}
    with open_site(folder / "site", warm=warm, agents=agents) as site:
        yield site


@pytest.fixture(params=["1.0", "0.3"])
def remote(request: pytest.FixtureRequest, tmp_path: Path, warm: WarmStarter) -> Iterator[tuple[Site, Seen]]:
    with sdk_server((request.param,)) as (url, seen), remote_site(tmp_path, warm, url) as site:
        yield site, seen


def test_its_answer_is_the_tasks(remote: tuple[Site, Seen]) -> None:
    site, seen = remote
    daemon = site.start().ready()
    site.drop("page.yaml", document(None, "Describe the login.", agent="docs-bot"))
    task = ended(daemon, "page")
    assert (task.state, task.agent, task.attempts) == ("COMPLETED", "docs-bot", 1)
    assert "you said: Describe the login." in str(task.result_text)
    run = last_run(daemon, "page")
    assert [message_id for message_id, _, _ in seen.messages] == [run.id]


def test_its_question_is_answered_in_the_same_remote_task(remote: tuple[Site, Seen]) -> None:
    site, seen = remote
    daemon = site.start().ready()
    site.drop("fence.yaml", document(None, "Paint it and ask", agent="docs-bot"))
    task = in_state(daemon, "fence", "NEEDS_INPUT")
    assert (task.reason, task.reason_text) == ("question", "Which colour?")
    daemon.kill()
    daemon = site.start().ready()
    daemon.client.answer("fence", AnswerRequest(text="Blue."))
    task = ended(daemon, "fence")
    assert (task.state, task.attempts) == ("COMPLETED", 1)
    assert "Blue." in str(task.result_text)
    assert len({task_id for _, _, task_id in seen.messages}) == 1
    assert len(seen.messages) == 2


def begun(daemon: Daemon, name: str) -> None:
    """Wait until the task's client knows the remote task."""

    def known() -> bool:
        return any(b'"task"' in daemon.client.log(run.id).data for run in daemon.client.runs(name))

    in_state(daemon, name, "RUNNING")
    wait_until(known, "the remote task to be known")


def test_a_cancelled_task_is_cancelled_there(remote: tuple[Site, Seen]) -> None:
    site, seen = remote
    daemon = site.start().ready()
    site.drop("long.yaml", document(None, "please wait", agent="docs-bot"))
    begun(daemon, "long")
    daemon.client.cancel("long")
    assert ended(daemon, "long").state == "CANCELLED"
    wait_until(lambda: len(seen.cancelled) == 1, "the remote task to be cancelled")


def test_a_run_goes_on_while_the_daemon_is_dead(remote: tuple[Site, Seen]) -> None:
    site, seen = remote
    daemon = site.start().ready()
    site.drop("long.yaml", document(None, "please wait", agent="docs-bot"))
    begun(daemon, "long")
    daemon.kill()
    seen.released.set()
    daemon = site.start().ready()
    task = ended(daemon, "long")
    assert (task.state, task.runs, len(seen.messages)) == ("COMPLETED", 1, 1)


def test_after_its_shim_and_client_were_killed_the_next_run_asks_after_the_same_task(
    remote: tuple[Site, Seen],
) -> None:
    site, seen = remote
    daemon = site.start().ready()
    site.drop("long.yaml", document(None, "please wait", agent="docs-bot", on_lost="retry", retry={"backoff": "1s"}))
    begun(daemon, "long")
    kill_run(site, last_run(daemon, "long").id)
    wait_until(lambda: len(daemon.client.runs("long")) == 2, "the next run")
    seen.released.set()
    task = ended(daemon, "long")
    assert (task.state, len(seen.messages)) == ("COMPLETED", 1)
    first, second = daemon.client.runs("long")
    assert second.resumes == first.id
    assert "you said: please wait" in str(task.result_text)


def test_a_limit_holds_the_agent_until_it_is_over(tmp_path: Path, warm: WarmStarter) -> None:
    limited = [True]

    def answer(request: Request, handler: BaseHTTPRequestHandler) -> None:
        if limited[0]:
            limited[0] = False
            return reply(handler, 429, b"slow down", Retry_After="2")
        return reply(handler, 200, b'{"text": "done"}')

    with plain_server(answer) as (url, requests), remote_site(tmp_path, warm, url, protocol="post") as site:
        daemon = site.start().ready()
        site.drop("hasty.yaml", document(None, "Do it.", agent="docs-bot", on_limit="wait"))
        task = ended(daemon, "hasty")
        assert (task.state, task.result_text, task.attempts, task.runs) == ("COMPLETED", "done", 1, 2)
        first, second = daemon.client.runs("hasty")
        assert first.outcome is not None
        assert (first.outcome.reason, first.outcome.provenance) == ("rate_limited", "reported")
        assert second.started_at >= str(first.outcome.reset_at)
        assert len(requests) == 2


def test_its_secret_comes_from_the_daemons_environment_and_shows_nowhere(tmp_path: Path, warm: WarmStarter) -> None:
    def answer(request: Request, handler: BaseHTTPRequestHandler) -> None:
        fields = {"text": f"you sent {request.headers.get('Authorization')}"}
        reply(handler, 200, json.dumps(fields).encode())

    authentication = {"scheme": "bearer", "secret": "DOCS_TOKEN"}
    with (
        plain_server(answer) as (url, requests),
        remote_site(tmp_path, warm, url, protocol="post", authentication=authentication) as site,
    ):
        daemon = site.start(DOCS_TOKEN=SECRET).ready()
        site.drop("echo.yaml", document(None, "Do it.", agent="docs-bot"))
        task = ended(daemon, "echo")
        assert requests[0].headers["Authorization"] == f"Bearer {SECRET}"
        assert SECRET not in str(task.result_text)
        spec = (site.state / "runs" / last_run(daemon, "echo").id / "spec.json").read_text()
        assert SECRET not in spec


def test_a_task_that_needs_what_it_cannot_be_held_to_is_refused(remote: tuple[Site, Seen]) -> None:
    site, _ = remote
    site.start().ready()
    plan = site.drop("plan.yaml", document(None, "Plan it.", agent="docs-bot", permissions={"mode": "plan"}))
    refusal = plan.with_name("plan.yaml.error.txt")
    wait_until(refusal.exists, "the refusal")
    assert "docs-bot is a remote agent, which cannot be held to permissions.mode" in refusal.read_text()


def test_a_message_whose_fate_is_unknown_is_lost_and_not_sent_again(tmp_path: Path, warm: WarmStarter) -> None:
    def answer(request: Request, handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True

    with plain_server(answer) as (url, requests), remote_site(tmp_path, warm, url, protocol="post") as site:
        daemon = site.start().ready()
        site.drop("once.yaml", document(None, "Do it.", agent="docs-bot"))
        task = ended(daemon, "once")
        assert (task.state, task.reason, task.runs) == ("FAILED", "lost", 1)
        assert "did not answer" in " ".join(daemon.client.why("once").sentences)
        assert len(requests) == 1


def test_an_agent_that_is_not_there_is_tried_again_at_no_attempts_cost(tmp_path: Path, warm: WarmStarter) -> None:
    with plain_server(lambda request, handler: None) as (url, _):
        pass
    with remote_site(tmp_path, warm, url) as site:
        daemon = site.start().ready()
        site.drop("later.yaml", document(None, "Do it.", agent="docs-bot", retry={"max_attempts": 1, "backoff": "1s"}))
        wait_until(lambda: len(daemon.client.runs("later")) >= 2 if known(daemon) else False, "the next run")
        first = daemon.client.runs("later")[0]
        assert first.outcome is not None
        assert first.outcome.reason == "unreachable"
        assert daemon.client.task("later").attempts == 0


def known(daemon: Daemon) -> bool:
    return any(daemon.client.all_tasks())


def test_a_specialist_with_an_address_is_an_agent_of_its_own(tmp_path: Path, warm: WarmStarter) -> None:
    with sdk_server(("1.0",)) as (url, seen), open_site(tmp_path / "site", warm=warm, agents={}) as site:
        daemon = site.start().ready()
        paint = {"id": "paint", "name": "Painting", "examples": ["Paint the fence of the house"]}
        daemon.client.register_specialist(
            card("painter", description="Paints.", url=url, system_prompt="For others.", skills=[paint])
        )
        site.drop("fence.yaml", document(None, "Paint the fence of the house.", agent=None))

        task = ended(daemon, "fence")
        assert (task.state, task.specialist, task.agent) == ("COMPLETED", "painter", "http:painter")
        (_, sent, _) = seen.messages[0]
        assert "For others." not in str(sent)
        assert seen.metadata == [({"skill_used": "paint"}, {"skill_used": "paint"})]


def test_a_card_of_somebody_else_sends_nothing_anywhere(tmp_path: Path, warm: WarmStarter) -> None:
    with sdk_server(("1.0",)) as (url, seen), open_site(tmp_path / "site", warm=warm) as site:
        daemon = site.start().ready()
        token = daemon.client.create_token(TokenRequest(name="guest", role="operate")).token
        with Client(str(site.endpoint), token) as guest:
            guest.register_specialist(
                card(
                    "painter",
                    description="Paints fences.",
                    url=url,
                    authentication={"scheme": "bearer", "secret": "HOME"},
                )
            )
        site.drop("fence.yaml", document(None, "Paint the fences.", "simulate: outcome=success", agent=None))

        in_state(daemon, "fence", "QUEUED", "COMPLETED")

        assert "http:painter" not in {agent.name for agent in daemon.client.agents()}
        assert seen.messages == []


def test_an_imported_agent_below_a_path_does_its_tasks(tmp_path: Path, warm: WarmStarter) -> None:
    card = {
        "name": "回声",
        "description": "Says what it is told.",
        "url": "/echo/rpc",
        "version": "1",
        "capabilities": {},
        "defaultInputModes": ["text"],
        "defaultOutputModes": ["text"],
        "skills": [],
    }

    def answer(request: Request, handler: BaseHTTPRequestHandler) -> None:
        if request.path == "/echo/.well-known/agent-card.json":
            return reply(handler, 200, json.dumps(card).encode())
        if request.method != "POST" or request.path != "/echo/rpc":
            return reply(handler, 404)
        parts = json.loads(request.body)["params"]["message"]["parts"]
        fields = {"kind": "message", "messageId": "m", "role": "agent", "parts": parts}
        return reply(handler, 200, json.dumps({"jsonrpc": "2.0", "id": 1, "result": fields}).encode())

    with plain_server(answer) as (url, _), open_site(tmp_path / "site", warm=warm) as site:
        daemon = site.start().ready()
        done = site.command("specialists", "import", f"{url}/echo", "-o", "json")
        assert done.returncode == 0, done.stderr
        (echo,) = json.loads(done.stdout)
        site.drop("hello.yaml", document(None, "Hello there.", agent=None, specialist=echo["id"]))
        task = ended(daemon, "hello")
        assert (task.state, task.specialist) == ("COMPLETED", echo["id"])
        assert "Hello there." in str(task.result_text)
