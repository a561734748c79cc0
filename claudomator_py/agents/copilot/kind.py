"""GitHub Copilot CLI: how it is started."""

import json

from claudomator_py.agents.copilot import INFO
from claudomator_py.agents.copilot.events import CopilotEvents
from claudomator_py.agents.event_kind import EventKind, zone_of
from claudomator_py.agents.programs import MCP_NAME, probe
from claudomator_py.domain.agent import AgentHealth, AgentSpec
from claudomator_py.domain.conversation import Conversations
from claudomator_py.domain.run import MCP_VARIABLES, Launch, LaunchRequest
from claudomator_py.domain.task import PermissionMode, TaskSpec

REMEDY = "install it (npm install -g @github/copilot), or set the agent's command in the configuration"

# It is to stay what it is while a run lasts, and asks nobody: a question is for Claudomator's own tools.
QUIET = ("--output-format=json", "--no-ask-user", "--no-auto-update")
_MODES = {
    PermissionMode.ACCEPT_EDITS: ("--allow-tool=write",),
    PermissionMode.PLAN: ("--deny-tool=write", "--deny-tool=shell"),
    PermissionMode.BYPASS: ("--allow-all",),
}


class Copilot(EventKind):
    """The kind ``copilot``."""

    kind = INFO.name
    conversations = Conversations.GIVEN

    def launch(self, request: LaunchRequest) -> Launch:
        """Return its command line. The prompt comes from a file on stdin. With `=`, no value can pass for an option."""
        agent, task = request.agent, request.task
        argv = [*(agent.command or INFO.command), *QUIET]
        argv.append(f"--{'resume' if request.resume else 'session-id'}={request.conversation_id}")
        if request.model is not None:
            argv.append(f"--model={request.model.model}")
            if request.model.effort is not None:
                argv.append(f"--reasoning-effort={request.model.effort}")
        argv += _MODES.get(task.permissions.mode, ())
        argv += [f"--available-tools={tool}" for tool in task.permissions.tools or ()]
        argv += [f"--allow-tool={tool}" for tool in task.permissions.allowed_tools]
        argv += [f"--deny-tool={tool}" for tool in task.permissions.disallowed_tools]
        argv += [f"--add-dir={folder}" for folder in task.add_dirs]
        return Launch((*argv, *_server(request), *agent.extra_args), {}, request.prompt)

    def events(self, request: LaunchRequest | None) -> CopilotEvents:
        """Return what its events mean, with nothing taken yet."""
        if request is None:
            return CopilotEvents()
        return CopilotEvents(resumed=request.resume, zone=zone_of(request), given=request.conversation_id)

    def health(self, agent: AgentSpec, path: str) -> AgentHealth:
        """Return whether it is installed, and which version."""
        return probe(agent.command or INFO.command, path, REMEDY)

    def unsupported(self, task: TaskSpec, agent: AgentSpec) -> list[str]:
        """Return what it cannot keep to: it cannot count turns, and takes a list of tools only if there is one in
        it."""
        sentences = []
        if task.max_turns is not None:
            sentences.append(f"{agent.name} cannot count turns (max_turns); use timeout")
        if task.permissions.tools == ():
            sentences.append(f"{agent.name} cannot be left without any tool; name one in permissions.tools")
        return sentences


def _server(request: LaunchRequest) -> list[str]:
    """Claudomator's own MCP server. It puts variables into these words by itself, so the token is in none of them."""
    if not request.mcp_command:
        return []
    program, *arguments = request.mcp_command
    server = {
        "type": "local",
        "command": program,
        "args": arguments,
        "env": {name: f"${{{name}}}" for name in MCP_VARIABLES},
        "tools": ["*"],
    }
    config = json.dumps({"mcpServers": {MCP_NAME: server}})
    return [f"--additional-mcp-config={config}", f"--allow-tool={MCP_NAME}"]


KIND = Copilot()
