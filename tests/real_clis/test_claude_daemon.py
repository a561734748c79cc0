"""Claude Code itself, run by the daemon from a dropped file, against a fake of its service: nothing leaves the machine.

It is looked for as in test_claude.py.
"""

import os
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from claudomator_py.core.views import AgentView
from tests.e2e.harness import Daemon, Site, open_site, wait_until
from tests.e2e.scenarios_support import document, ended, in_state, last_run, why
from tests.fakes.messages_api import (
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    MessagesApi,
    Text,
    ToolCall,
    unauthorized,
    used_up,
)

CLIS = Path(os.environ.get("CLAUDOMATOR_CLIS") or Path(__file__).parents[2] / "build" / "clis")
PROGRAM = Path(os.environ.get("CLAUDOMATOR_CLAUDE") or CLIS / "node_modules" / ".bin" / "claude")
END_S = 90.0
API_KEY = {"ANTHROPIC_API_KEY": "sk-ant-fake"}
LOGIN = {"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-fake"}
# Whatever does not go to the fake goes to a proxy that is not there.
NOWHERE = "http://127.0.0.1:9"
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "HTTPS_PROXY": NOWHERE,
    "HTTP_PROXY": NOWHERE,
    "NO_PROXY": "127.0.0.1",
}

pytestmark = [
    pytest.mark.real_clis,
    pytest.mark.timeout(240),
    pytest.mark.skipif(
        not PROGRAM.exists(),
        reason=f"no {PROGRAM}: set CLAUDOMATOR_CLAUDE, or npm install --prefix {CLIS} @anthropic-ai/claude-code",
    ),
]


@pytest.fixture
def api() -> Iterator[MessagesApi]:
    with MessagesApi() as opened:
        yield opened


@pytest.fixture
def place(tmp_path: Path, api: MessagesApi) -> Iterator[Site]:
    """A site with a git repository to work in, and Claude Code as the agent ``claude``, with an API key."""
    with open_site(tmp_path / "site") as site:
        bare = {"PATH": os.environ["PATH"], "HOME": str(site.root / "home")}
        subprocess.run(["git", "init", "-q", site.work], check=True, env=bare)
        with_claude(site, api, API_KEY)
        yield site


def with_claude(site: Site, api: MessagesApi, login: dict[str, str], **others: object) -> None:
    environment = {"ANTHROPIC_BASE_URL": api.url, "HOME": str(site.root / "home"), "TMPDIR": str(site.root), **QUIET}
    claude = {"kind": "claude", "command": [str(PROGRAM)], "env": {**environment, **login}}
    site.configure(agents={"claude": claude, **others}, limits={"grace": "5s", "min_free": "1MiB"})


def greet(site: Site, **fields: object) -> str:
    return document(
        None,
        "Write a greeting.",
        working_dir=str(site.work),
        **{"agent": None, "permissions": {"mode": "acceptEdits"}, **fields},
    )


def writes(site: Site) -> ToolCall:
    return ToolCall("Write", {"file_path": str(site.work / "hello.txt"), "content": "hello\n"})


def claude_of(daemon: Daemon) -> AgentView:
    return next(agent for agent in daemon.client.agents() if agent.name == "claude")


def test_it_edits_a_file_that_the_check_finds_and_its_use_is_known(place: Site, api: MessagesApi) -> None:
    api.script(writes(place), Text("I wrote it."))
    daemon = place.start().ready()
    assert claude_of(daemon).problem is None
    assert claude_of(daemon).version is not None

    place.drop("greet.yaml", greet(place, agent={"tier": "fast"}, check=["grep -qx hello hello.txt"]))

    task = ended(daemon, "greet", END_S)
    assert task.state == "COMPLETED", task
    assert (place.work / "hello.txt").read_text() == "hello\n"
    assert (task.agent, task.tier, task.model, task.attempts) == ("claude", "fast", "haiku", 1)
    assert task.result_text == "I wrote it."
    assert (task.tokens.input, task.tokens.output) == (2 * INPUT_TOKENS, 2 * OUTPUT_TOKENS)
    assert task.cost_usd is not None
    assert task.cost_usd > 0
    run = last_run(daemon, "greet")
    assert run.exit_code == 0
    assert "haiku" in api.loop_requests[0].body["model"]
    assert b'"type":"result"' in daemon.client.log(run.id).data


def test_a_failing_check_fails_the_run_of_a_contented_agent(place: Site, api: MessagesApi) -> None:
    api.script(Text("I wrote it, believe me."))
    daemon = place.start().ready()

    place.drop("greet.yaml", greet(place, check=["test -e hello.txt"], retry={"max_attempts": 1}))

    task = ended(daemon, "greet", END_S)
    assert (task.state, task.reason) == ("FAILED", "check_failed")
    assert task.result_text == "I wrote it, believe me."


def test_its_limit_holds_it_until_the_time_it_named_and_the_task_flows_on(place: Site, api: MessagesApi) -> None:
    with_claude(place, api, LOGIN, zimulated={"kind": "simulated", "auto_select": True})
    resets_at_s = int(time.time()) + 7_200
    api.script(used_up(resets_at_s))
    daemon = place.start().ready()

    place.drop("greet.yaml", greet(place))

    task = ended(daemon, "greet", END_S)
    assert (task.state, task.agent, task.attempts) == ("COMPLETED", "zimulated", 1)
    limited, done = daemon.client.runs("greet")
    assert (limited.agent, done.agent) == ("claude", "zimulated")
    assert limited.outcome is not None
    assert (limited.outcome.status, limited.outcome.reason) == ("limited", "rate_limited")
    assert (limited.outcome.limit, limited.outcome.provenance) == ("five_hour", "reported")
    held = claude_of(daemon)
    assert held.limited
    assert datetime.fromisoformat(str(held.limited_until)).timestamp() == resets_at_s
    assert "five_hour" in why(daemon, "greet")

    asked = len(api.requests)
    place.drop("next.yaml", greet(place))
    assert ended(daemon, "next", END_S).agent == "zimulated"
    assert len(api.requests) == asked, "it was asked although it is limited"


def test_a_key_that_is_not_accepted_holds_it_until_it_is_released(place: Site, api: MessagesApi) -> None:
    api.script(unauthorized())
    daemon = place.start().ready()
    place.drop("greet.yaml", greet(place))

    wait_until(lambda: claude_of(daemon).limited, "the hold", END_S)
    held = claude_of(daemon)
    assert "auth" in str(held.hold_reason)
    assert held.limited_until is None
    task = in_state(daemon, "greet", "QUEUED")
    assert task.attempts == 0
    assert "claudomator release claude" in str(task.reason_text)

    api.script(writes(place), Text("I wrote it."))
    daemon.client.release("claude")
    task = ended(daemon, "greet", END_S)
    assert (task.state, task.attempts) == ("COMPLETED", 1)


def sleeping(place: Site) -> ToolCall:
    return ToolCall("Bash", {"command": f"touch {place.work}/begun; sleep 611", "timeout": 600_000})


def bash_allowed(place: Site) -> str:
    return greet(place, permissions={"mode": "acceptEdits", "allowed_tools": ["Bash"]})


def test_a_cancel_in_the_middle_of_a_tool_leaves_nothing_alive(place: Site, api: MessagesApi) -> None:
    api.script(sleeping(place), Text("Slept."))
    daemon = place.start().ready()
    place.drop("greet.yaml", bash_allowed(place))
    wait_until((place.work / "begun").exists, "the tool to begin", END_S)
    run_id = last_run(daemon, "greet").id
    assert any("sleep 611" in command for command in place.processes().values())

    daemon.client.cancel("greet")

    assert ended(daemon, "greet", END_S).state == "CANCELLED"
    outcome = daemon.client.run(run_id).outcome
    assert outcome is not None
    assert outcome.status == "cancelled"
    assert not any("sleep 611" in command or "claude" in command.split()[0] for command in place.processes().values())
    assert daemon.stop() == 0
    place.no_processes()


def test_a_run_outlives_a_killed_daemon_and_is_adopted(place: Site, api: MessagesApi) -> None:
    wait = ToolCall("Bash", {"command": f"touch begun; until [ -e {place.root}/go ]; do sleep 0.1; done"})
    api.script(wait, writes(place), Text("I wrote it."))
    daemon = place.start().ready()
    place.drop("greet.yaml", greet(place, permissions={"mode": "acceptEdits", "allowed_tools": ["Bash"]}))
    wait_until((place.work / "begun").exists, "the tool to begin", END_S)
    run_id = last_run(daemon, "greet").id

    daemon.kill()
    daemon = place.start().ready()
    assert in_state(daemon, "greet", "RUNNING").runs == 1
    (place.root / "go").touch()

    task = ended(daemon, "greet", END_S)
    assert (task.state, task.runs, task.result_text) == ("COMPLETED", 1, "I wrote it.")
    assert [run.id for run in daemon.client.runs("greet")] == [run_id]
    assert (task.tokens.input, task.tokens.output) == (3 * INPUT_TOKENS, 3 * OUTPUT_TOKENS)
    assert len(api.loop_requests) == 3
