"""The kind ``claude``: start Claude Code."""

import json
import os
from pathlib import Path

from claudomator_py.agents.claude import INFO
from claudomator_py.agents.claude.events import ClaudeEvents
from claudomator_py.agents.claude.use import rule_for
from claudomator_py.agents.event_kind import EventKind, zone_of
from claudomator_py.agents.fence import HOOK_SECONDS, hook_line, is_fenced
from claudomator_py.agents.programs import MCP_NAME
from claudomator_py.domain.agent import AgentSpec, OwnServers
from claudomator_py.domain.routing import tool_name
from claudomator_py.domain.run import Conversations, Launch, LaunchRequest
from claudomator_py.domain.task import PermissionMode, TaskSpec

# Left alone it retries ten times more, and waits three minutes for a service that refuses a key or is out of quota,
# with the agent's slot taken and no other agent tried. Four retries bridge some eight seconds; for longer trouble the
# task waits in the queue, where that is free and visible. The agent's env or pass_env may set another number.
MAX_RETRIES_NAME = "CLAUDE_CODE_MAX_RETRIES"
MAX_RETRIES = "4"
NO_BACKGROUND = {"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1", "CLAUDE_CODE_DISABLE_CRON": "1"}
"""Without these it continues after its last answer, or promises work that its exit cancels."""
BACKGROUND_TOOLS = ("CronCreate", "Monitor", "RemoteTrigger", "ScheduleWakeup", "SendMessage", "Workflow")
"""Background tools that these variables leave enabled, as seen in 2.1.330, or left in other versions."""
_MCP_PREFIX = "mcp__"
"""Prefix of the name of an MCP server's tool."""
WITHOUT_HOOKS = ("--settings", "--bare", "--safe-mode")
"""Options that replace the settings or disable hooks."""
MODES_WITHOUT_HOOKS = {"CLAUDE_CODE_SIMPLE": "0", "CLAUDE_CODE_SAFE_MODE": "0"}
"""Variables that disable hooks; these values override a task's."""
_LEAST_USD = 0.000001
"""It refuses a budget of zero."""

# As root it bypasses permissions only if this variable says that it runs in a sandbox.
SANDBOX_NAME = "IS_SANDBOX"


class Claude(EventKind):
    """The kind ``claude``."""

    info = INFO
    package = "@anthropic-ai/claude-code"
    conversations = Conversations.GIVEN

    def launch(self, request: LaunchRequest) -> Launch:
        """Return the command line. The prompt is a file on stdin: an open pipe would cost three seconds."""
        agent, task = request.agent, request.task
        argv = [*(agent.command or INFO.command), "-p", "--output-format", "stream-json", "--verbose"]
        argv += ["--resume" if request.resume else "--session-id", request.conversation_id]
        if request.model is not None:
            argv += ["--model", request.model.model]
            if request.model.effort is not None:
                argv += ["--effort", request.model.effort]
        if task.permissions.mode is not PermissionMode.DEFAULT:
            argv += ["--permission-mode", task.permissions.mode.value]
        if task.max_turns is not None:
            argv += ["--max-turns", str(task.max_turns)]
        if request.usd_left is not None:
            # In a continued conversation, earlier runs do not count.
            argv += ["--max-budget-usd", f"{max(_LEAST_USD, request.usd_left):.6f}"]
        argv += agent.extra_args
        only = task.permissions.tools
        if only is not None:
            # It takes bare names: a tool with a pattern would be missing altogether.
            argv += ["--tools", ",".join(dict.fromkeys(tool_name(tool) for tool in only))]
        fenced = is_fenced(request) and self.unfenced(agent) is None
        if fenced:
            argv += ["--settings", json.dumps(_fence(request))]
        tools = list(task.permissions.allowed_tools)
        commands = (rule_for("Bash", {"command": command}) for command in request.granted_commands)
        tools += [rule for rule in commands if rule is not None and rule not in tools]
        if request.mcp_command:
            argv += ["--mcp-config", _mcp_config(request.mcp_command)]
            tools.append(f"{_MCP_PREFIX}{MCP_NAME}")
        # --tools concerns built-in tools only: if no server's tool is listed, the servers have to stay away.
        without_servers = only is not None and not any(tool.startswith(_MCP_PREFIX) for tool in only)
        if without_servers or agent.mcp.own_servers is OwnServers.NONE:
            argv.append("--strict-mcp-config")
        background = agent.background if task.background is None else task.background
        disallowed = [*task.permissions.disallowed_tools, *(() if background else BACKGROUND_TOOLS)]
        # These options take any number of values: give each one value, and let nothing but options follow.
        for option, words in (
            ("--allowedTools", tools),
            ("--disallowedTools", disallowed),
            ("--add-dir", tuple(str(Path(folder).expanduser()) for folder in task.add_dirs)),
        ):
            for word in words:
                argv += [option, word]
        variables = {MAX_RETRIES_NAME: MAX_RETRIES, **({} if background else NO_BACKGROUND)}
        set_by_user = {*agent.env, *agent.pass_env, *task.env}
        env = {name: value for name, value in variables.items() if name not in set_by_user}
        return Launch(tuple(argv), env, request.prompt, MODES_WITHOUT_HOOKS if fenced else {})

    def unfenced(self, agent: AgentSpec) -> str | None:
        """Return why the agent's runs cannot be fenced: the hook comes with settings that some options replace."""
        flags = (flag for flag in WITHOUT_HOOKS if any(word.partition("=")[0] == flag for word in agent.extra_args))
        names = (name for name in MODES_WITHOUT_HOOKS if name in agent.env or name in agent.pass_env)
        setting = next(flags, None) or next(names, None)
        return None if setting is None else f"{setting}, which it is started with, disables the fence's hook"

    def events(self, request: LaunchRequest | None) -> ClaudeEvents:
        if request is None:
            return ClaudeEvents()
        return ClaudeEvents(resumed=request.resume, prior_cost_usd=request.prior_cost_usd, zone=zone_of(request))

    def unsupported(self, task: TaskSpec, agent: AgentSpec) -> list[str]:
        """Return what it refuses; otherwise it enforces all that a task can ask for."""
        as_root = os.geteuid() == 0
        # Only the user can say that this is a sandbox.
        sandbox = {**agent.env, **task.env}.get(SANDBOX_NAME) == "1" or SANDBOX_NAME in agent.pass_env
        if task.permissions.mode is PermissionMode.BYPASS and as_root and not sandbox:
            refusal = f"{agent.name} refuses permissions.mode bypassPermissions when it runs as root"
            remedy = (
                f"run Claudomator as another user or, if this is a sandbox, set {SANDBOX_NAME}: '1' in the agent's env"
            )
            return [f"{refusal}; {remedy}"]
        return []


def _fence(request: LaunchRequest) -> dict[str, object]:
    """Return settings with the hook. They override the project's and the user's, which could disable hooks."""
    hook = {"type": "command", "command": hook_line(request, allows=True), "timeout": HOOK_SECONDS}
    return {"disableAllHooks": False, "hooks": {"PreToolUse": [{"matcher": "*", "hooks": [hook]}]}}


def _mcp_config(command: tuple[str, ...]) -> str:
    # Without alwaysLoad, the model gets only the names of the tools.
    server = {"type": "stdio", "command": command[0], "args": command[1:], "alwaysLoad": True}
    return json.dumps({"mcpServers": {MCP_NAME: server}})


KIND = Claude()
