"""The run's tools, from the official client of the protocol to the daemon, over its restart."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from claudomator_py.agents.programs import mcp_command
from claudomator_py.environment.secrets import RunTokens
from claudomator_py.resources.runs import RunView
from claudomator_py.resources.tasks import AnswerRequest
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import document, ended, in_state, last_run
from tests.e2e.site import Site
from tests.patience import wait_until

if TYPE_CHECKING:
    from mcp import Client  # imported where it is needed: it takes half a second, in each worker

SLEEPS = "simulate: delay=300s text=painted"


def begun(site: Site, name: str, *script: str, **fields: object) -> tuple[Daemon, RunView]:
    """A daemon, and a live run of the simulated agent, which uses no tools itself."""
    daemon = site.start().ready()
    site.drop(f"{name}.yaml", document(None, "Paint it.", *(script or (SLEEPS,)), agent="simulated", **fields))
    in_state(daemon, name, "RUNNING")
    return daemon, last_run(daemon, name)


def talk(site: Site, run: RunView, say: "Callable[[Client], Awaitable[Any]]", token: str | None = None) -> Any:
    """What comes of talking to the server that an agent of that run would start. token: of another one."""
    from mcp import Client, StdioServerParameters

    own = RunTokens((site.state / "token").read_text().strip()).of(run.id)
    command, *args = mcp_command(site.state)
    env = {"CLAUDOMATOR_RUN": run.id, "CLAUDOMATOR_RUN_TOKEN": token or own}

    async def session() -> Any:
        async with Client(
            StdioServerParameters(command=command, args=args, env=env), read_timeout_seconds=60
        ) as client:
            return await say(client)

    return asyncio.run(session())


@contextmanager
def held() -> Iterator[tuple[str, threading.Event]]:
    """A service that has the simulated agent say that it is done, once it is let go; its address."""
    let_go = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            let_go.wait(60)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"text=asked")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", let_go
        finally:
            let_go.set()
            server.shutdown()


def typed(site: Site, *arguments: str) -> str:
    """What a person reads who types that."""
    done = site.command(*arguments, COLUMNS="200")
    assert done.returncode == 0, done.stderr
    return done.stdout


def said(result: Any) -> str:
    """What the model reads."""
    return "\n".join(part.text for part in result.content)


def test_the_client_of_the_protocol_finds_and_calls_every_tool(site: Site) -> None:
    daemon, run = begun(site, "fence")

    async def use_all(client: "Client") -> dict[str, Any]:
        listed = await client.list_tools()
        calls: dict[str, Any] = {"names": [tool.name for tool in listed.tools], "instructions": client.instructions}
        for name, arguments in (
            ("read_handoff", {}),
            ("report_progress", {"text": "The first coat is on.", "percent": 40}),
            ("create_subtask", {"name": "gate", "instructions": "Paint the gate."}),
            ("hand_off", {"to": "nobody"}),
            ("ask_operator", {"question": "Red or blue?", "choices": ["red", "blue"]}),
        ):
            calls[name] = await client.call_tool(name, arguments)
        return calls

    calls = talk(site, run, use_all)

    assert calls["names"] == ["ask_operator", "hand_off", "create_subtask", "report_progress", "read_handoff"]
    assert "ask_operator" in calls["instructions"]
    assert json.loads(said(calls["read_handoff"]))["run"] == run.id
    assert said(calls["report_progress"]) == "Recorded."
    assert calls["hand_off"].is_error
    assert "no specialist nobody" in said(calls["hand_off"])
    assert "End your turn now" in said(calls["ask_operator"])
    shown = last_run(daemon, "fence")
    assert shown.progress is not None
    assert (shown.progress.text, shown.progress.percent) == ("The first coat is on.", 40)
    assert shown.asked == ("Red or blue?\n- red\n- blue",)
    assert wait_until(lambda: daemon.client.task("gate"), "the subtask").parent_run == run.id
    assert "40%: The first coat is on." in typed(site, "show", "fence")
    assert f"run {run.id}" in typed(site, "show", "gate")
    daemon.client.cancel("fence")
    ended(daemon, "fence")


def test_the_answer_to_a_question_by_tool_resumes_the_run(site: Site) -> None:
    with held() as (address, let_go):
        script = (f"simulate: service={address}", "simulate: text=painted")
        daemon, run = begun(site, "fence", *script, working_dir=str(site.work))
        talk(site, run, lambda client: client.call_tool("ask_operator", {"question": "Red or blue?"}))
        let_go.set()
        task = in_state(daemon, "fence", "NEEDS_INPUT")
    assert (task.reason, task.reason_text) == ("question", "Red or blue?")
    daemon.client.answer("fence", AnswerRequest(text="Blue."))
    assert ended(daemon, "fence").result_text == "[simulated] painted"
    assert last_run(daemon, "fence").resumes == run.id


def test_a_call_waits_for_a_daemon_that_is_being_restarted_and_is_done_once(site: Site) -> None:
    daemon, run = begun(site, "fence")

    async def over_a_restart(client: "Client") -> Any:
        daemon.kill()
        call = asyncio.create_task(client.call_tool("create_subtask", {"name": "gate", "instructions": "Paint it."}))
        await asyncio.sleep(0)
        again = await asyncio.to_thread(lambda: site.start().ready())
        return again, await call

    again, result = talk(site, run, over_a_restart)

    assert not result.is_error, said(result)
    assert [task.name for task in again.client.all_tasks()].count("gate") == 1
    again.client.cancel("fence")
    ended(again, "fence")


def test_another_runs_token_and_one_that_is_made_up_are_good_for_nothing(site: Site) -> None:
    daemon, run = begun(site, "fence")
    site.drop("other.yaml", document(None, "Paint it.", SLEEPS, agent="simulated"))
    in_state(daemon, "other", "RUNNING")
    others = RunTokens((site.state / "token").read_text().strip()).of(last_run(daemon, "other").id)
    for token in (others, RunTokens("made-up").of(run.id), "cmr_", "x"):
        result = talk(site, run, lambda client: client.call_tool("report_progress", {"text": "Mine."}), token)
        assert result.is_error
    assert last_run(daemon, "fence").progress is None
    for name in ("fence", "other"):
        daemon.client.cancel(name)
        ended(daemon, name)
    late = talk(site, run, lambda client: client.call_tool("report_progress", {"text": "Late."}))
    assert late.is_error, "the token ended with the run"


def test_what_is_no_tool_is_an_error_of_the_protocol(site: Site) -> None:
    from mcp import MCPError

    daemon, run = begun(site, "fence")
    with pytest.raises((MCPError, ExceptionGroup), match=r"rm_rf|unhandled"):
        talk(site, run, lambda client: client.call_tool("rm_rf", {"path": "/"}))
    daemon.client.cancel("fence")
    ended(daemon, "fence")
