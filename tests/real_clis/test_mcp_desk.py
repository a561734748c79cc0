"""Real agent CLIs, started by a person, hand tasks over with the tools of ``claudomator mcp``."""

import json
import subprocess
import sys

from tests.e2e.scenarios_support import in_state
from tests.e2e.site import REPOSITORY
from tests.fakes.http_api import Text, ToolCall
from tests.patience import PATIENCE_S
from tests.real_clis.clis import CLAUDE, CODEX, Cli, bare, each
from tests.real_clis.place import Place

PREFIXES = {"claude": "mcp__tasks__", "codex": "mcp__tasks/"}
SIMULATED = {"type": "simulated"}


def call(cli: Cli, tool: str, **arguments: object) -> ToolCall:
    return ToolCall(f"{PREFIXES[cli.kind]}{tool}", arguments)


def words(place: Place, *options: str) -> list[str]:
    """The CLI, with the server beside it. options: of the server."""
    command = ["-m", "claudomator_py", "mcp", *options]
    program = [str(place.cli.program), *place.cli.words]
    if place.cli is CLAUDE:
        started = {"command": sys.executable, "args": command, "env": {"PYTHONPATH": str(REPOSITORY)}}
        configured = json.dumps({"mcpServers": {"tasks": started}})
        return [*program, "--print", "--mcp-config", configured, "--allowedTools", "mcp__tasks", "--", "Delegate."]
    # Codex begins without a server that is not there yet, unless it is told to wait.
    fields = {"command": sys.executable, "args": command, "default_tools_approval_mode": "approve", "required": True}
    path = f"env={{PYTHONPATH={json.dumps(str(REPOSITORY))}}}"
    server = ",".join([*(f"{key}={json.dumps(value)}" for key, value in fields.items()), path])
    server_option = ("--config", f"mcp_servers.tasks={{{server}}}")
    return [*program, "exec", *place.cli.extra_args(place.api.origin), *server_option, "Delegate."]


@each(CLAUDE, CODEX)
def test_it_hands_a_task_over_and_reads_what_came_of_it(place: Place, cli: Cli) -> None:
    place.site.configure(agents={"simulated": {"kind": "simulated", "auto_select": True}})
    daemon = place.site.start().ready()
    place.api.script(
        call(cli, "submit_task", name="paint", instructions="Paint it.\nsimulate: text=painted", agent=SIMULATED),
        call(cli, "task_status", task="paint", wait_s=40),
        call(cli, "read_result", task="paint"),
        call(cli, "submit_task", name="wrong", instructions="x", agent={"tier": "huge"}),
        Text("All is done."),
    )
    home = place.site.root / "home"
    environment = {**bare(home), **cli.env(place.api.origin), **cli.key}

    ended = subprocess.run(
        words(place, "--state-dir", str(place.site.state)),
        cwd=place.site.work,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE_S,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    assert "All is done." in ended.stdout
    heard = json.dumps(place.api.requests[-1].body)
    assert "COMPLETED" in heard, heard[-4_000:]
    task = in_state(daemon, "paint", "COMPLETED")
    assert (task.source, task.working_dir) == ("api", str(place.site.work))
    assert "[simulated] painted" in heard
    assert "agent.tier" in heard, "what is wrong, where"
    assert [task.name for task in daemon.client.all_tasks()] == ["paint"]
