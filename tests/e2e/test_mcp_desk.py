"""The server that any agent may start: from the official client of the protocol to tasks, their results and changes."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from claudomator_py.cli import mcp_tools
from claudomator_py.domain.task import AgentHint, TaskSpec
from claudomator_py.resources.access import GivenRole, TokenRequest
from tests.e2e.daemon import Daemon
from tests.e2e.repositories import COMMIT, repository
from tests.e2e.scenarios_support import in_state
from tests.e2e.site import REPOSITORY, Site

if TYPE_CHECKING:
    from mcp import Client

TOOLS = ["submit_task", "task_status", "list_tasks", "read_result", "read_changes"]
PAINTS = "simulate: text=painted"


def talk(
    site: Site,
    say: "Callable[[Client], Awaitable[Any]]",
    *,
    cwd: Path | None = None,
    mode: Literal["auto", "legacy"] = "auto",
    command: Sequence[str] | None = None,
    **variables: str,
) -> Any:
    """What comes of talking to the server, started where an agent works. command: stands for `claudomator`."""
    from mcp import Client, StdioServerParameters

    env = site.environ(PYTHONPATH=str(REPOSITORY), **variables)
    program, *words = command or site.command.words
    words += ["mcp", "--state-dir", str(site.state)]
    server = StdioServerParameters(command=program, args=words, env=env, cwd=cwd or site.work)

    async def session() -> Any:
        async with Client(server, read_timeout_seconds=90, mode=mode) as client:
            return await say(client)

    return asyncio.run(session())


def said(result: Any) -> str:
    return "\n".join(part.text for part in result.content)


@pytest.fixture
def shop(site: Site) -> Path:
    return repository(site.root / "shop")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_task_is_handed_over_awaited_and_read(site: Site, shop: Path, mode: Literal["auto", "legacy"]) -> None:
    """By the newest version of the protocol, which shakes no hands, and by those before it."""
    site.start().ready()
    does = f"do: echo more >> readme; git add . && {COMMIT}; echo I have painted."

    async def delegate(client: "Client") -> dict[str, Any]:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        submitted = await client.call_tool(
            "submit_task", {"name": "paint", "instructions": does, "isolation": "worktree", "timeout": "5m"}
        )
        stands = await client.call_tool("task_status", {"task": "paint", "wait_s": 50})
        listed = await client.call_tool("list_tasks", {"state": "COMPLETED"})
        result = await client.call_tool("read_result", {"task": "paint"})
        changes = await client.call_tool("read_changes", {"task": "paint"})
        patch = await client.call_tool("read_changes", {"task": "paint", "patch": True})
        return {"tools": tools, "version": client.protocol_version, "instructions": client.instructions} | {
            "calls": [said(entry) for entry in (submitted, stands, listed, result, changes, patch)]
        }

    record = talk(site, delegate, cwd=shop, mode=mode, command=(sys.executable, "-W", "error", "-m", "claudomator_py"))

    submitted, stands, listed, result, changes, patch = record["calls"]
    assert record["tools"] == TOOLS
    assert all(tool in record["instructions"][:250] for tool in TOOLS)
    assert record["version"] == {"auto": "2026-07-28", "legacy": "2025-11-25"}[mode]
    assert json.loads(submitted)["working_dir"] == str(shop), "where the agent works"
    assert json.loads(stands)["state"] == "COMPLETED"
    assert json.loads(stands)["why"]
    assert [task["name"] for task in json.loads(listed)["tasks"]] == ["paint"]
    assert result == "paint is COMPLETED.\n\nI have painted."
    (run,) = json.loads(changes)["runs"]
    assert run["summary"] == "1 commit, 1 file (+1 -0)"
    assert "+more" in patch


REFUSED: list[tuple[str, dict[str, object], tuple[str, ...]]] = [
    ("submit_task", {"instructions": "x", "tries": 3}, ("tries",)),
    ("submit_task", {"instructions": "x", "agent": {"tier": "huge"}}, ("agent.tier", "fast")),
    ("submit_task", {"instructions": ""}, ("instructions",)),
    ("submit_task", {"instructions": 7}, ("instructions",)),
    ("submit_task", {}, ("instructions", "missing")),
    ("submit_task", {"instructions": "x", "depends_on": {"a": 1}}, ("depends_on",)),
    ("submit_task", {"instructions": "x", "working_dir": 7}, ("working_dir", "text")),
    ("task_status", {"task": "nobody"}, ("nobody", "`old`")),
    ("task_status", {"task": ["a"]}, ("task",)),
    ("task_status", {"task": "old", "wait_s": 3_600}, ("wait_s", "50")),
    ("task_status", {"task": "old", "wait": 1}, ("wait", "wait_s")),
    ("list_tasks", {"state": "DONE"}, ("state", "COMPLETED")),
    ("list_tasks", {"limit": "all"}, ("limit",)),
    ("read_result", {"task": "../../token"}, ("token",)),
    ("read_result", {"task": "old", "offset": -1}, ("offset",)),
    ("read_changes", {"task": "old", "run": 9}, ("run",)),
]
"""Tools with arguments that they do not take, and words of the refusal."""


def test_a_refusal_says_where_and_what_to_do(place: tuple[Site, Daemon]) -> None:
    """In one session, which each of them leaves as it was."""

    async def each(client: "Client") -> list[Any]:
        return [await client.call_tool(tool, arguments) for tool, arguments, _ in REFUSED]

    for (tool, arguments, expected), result in zip(REFUSED, talk(place[0], each), strict=True):
        assert result.is_error, (tool, arguments)
        assert all(word in said(result) for word in expected), (tool, arguments, said(result))


def test_what_is_taken_with_a_warning_says_so(place: tuple[Site, Daemon]) -> None:
    asked = {"instructions": "x", "working_dir": "/not/there"}
    result = talk(place[0], lambda client: client.call_tool("submit_task", asked))
    assert not result.is_error
    assert "/not/there does not exist" in said(result)


@pytest.fixture
def place(site: Site) -> tuple[Site, Daemon]:
    """A daemon with a task that has ended."""
    daemon = site.start().ready()
    daemon.client.submit(TaskSpec(name="old", instructions=f"Paint it.\n{PAINTS}", agent=AgentHint(type="simulated")))
    in_state(daemon, "old", "COMPLETED")
    return site, daemon


def token(daemon: Daemon, name: str, role: GivenRole) -> str:
    made = daemon.client.create_token(TokenRequest(name=name, role=role))
    return made.token


def test_it_may_do_what_its_token_may(place: tuple[Site, Daemon]) -> None:
    site, daemon = place
    reader, worker = token(daemon, "reader", "read"), token(daemon, "worker", "operate")

    async def both(client: "Client") -> tuple[Any, Any]:
        handed = await client.call_tool("submit_task", {"name": "new", "instructions": "x"})
        return handed, await client.call_tool("read_result", {"task": "old"})

    refused, read = talk(site, both, CLAUDOMATOR_TOKEN=reader)
    assert refused.is_error
    assert "role" in said(refused)
    assert "painted" in said(read)
    accepted, read = talk(site, both, CLAUDOMATOR_TOKEN=worker)
    assert not accepted.is_error, said(accepted)
    assert daemon.client.task("new").creator == "worker"
    unknown, read = talk(site, both, CLAUDOMATOR_TOKEN="made-up")
    assert unknown.is_error
    assert read.is_error
    for token_said in (reader, worker, "made-up"):
        assert token_said not in said(unknown)


def test_a_daemon_that_is_started_again_is_found_by_the_same_session(place: tuple[Site, Daemon]) -> None:
    site, daemon = place

    async def over_a_restart(client: "Client") -> tuple[Any, Any, Any]:
        before = await client.call_tool("task_status", {"task": "old"})
        daemon.kill()
        between = await client.call_tool("task_status", {"task": "old"})
        await asyncio.to_thread(lambda: site.start().ready())
        return before, between, await client.call_tool("task_status", {"task": "old"})

    before, between, after = talk(site, over_a_restart)
    assert json.loads(said(before)) == json.loads(said(after))
    assert between.is_error
    assert "claudomator serve" in said(between)


def test_a_long_text_comes_in_parts_that_make_the_whole() -> None:
    text = "".join(f"{number} " for number in range(40_000))
    parts, offset = [], 0
    while True:
        part = mcp_tools.part_of(text, {"offset": offset})
        body, _, more = part.partition("\n\n[")
        parts.append(body)
        if not more:
            break
        offset = int(more.rpartition(" ")[2].removesuffix(".]"))
    assert "".join(parts) == text
    assert max(map(len, parts)) == mcp_tools.MAX_TEXT
