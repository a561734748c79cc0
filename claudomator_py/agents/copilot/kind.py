"""The kind ``copilot``: start GitHub Copilot CLI."""

import json

from claudomator_py.agents.copilot import INFO
from claudomator_py.agents.copilot.events import CopilotEvents
from claudomator_py.agents.event_kind import EventKind, zone_of
from claudomator_py.agents.programs import MCP_NAME
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.run import MCP_VARIABLES, Conversations, Launch, LaunchRequest
from claudomator_py.domain.task import PermissionMode, TaskSpec

# It must not update itself during a run, nor ask the user: Claudomator's own tool is there for questions.
QUIET = ("--output-format=json", "--no-ask-user", "--no-auto-update")
_MODES = {
    PermissionMode.ACCEPT_EDITS: ("--allow-tool=write",),
    PermissionMode.PLAN: ("--deny-tool=write", "--deny-tool=shell"),
    PermissionMode.BYPASS: ("--allow-all",),
}


class Copilot(EventKind):
    """The kind ``copilot``."""

    info = INFO
    package = "@github/copilot"
    conversations = Conversations.GIVEN

    def launch(self, request: LaunchRequest) -> Launch:
        """Return the command line. The prompt is a file on stdin. With ``=``, no value can be taken for an option."""
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
        if request is None:
            return CopilotEvents()
        return CopilotEvents(resumed=request.resume, zone=zone_of(request), given=request.conversation_id)

    def unsupported(self, task: TaskSpec, agent: AgentSpec) -> list[str]:
        """Return what the agent cannot keep to: turns, and an empty list of tools."""
        sentences = []
        if task.max_turns is not None:
            sentences.append(f"{agent.name} cannot count turns (max_turns); use timeout")
        if task.permissions.tools == ():
            sentences.append(f"{agent.name} cannot be left without any tool; name one in permissions.tools")
        return sentences


def _server(request: LaunchRequest) -> list[str]:
    """Return the options for the run's MCP server. The CLI expands the variables, so no token is in its argv."""
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
