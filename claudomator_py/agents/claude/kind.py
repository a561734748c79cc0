"""Claude Code: how it is started."""

import json
import os
from pathlib import Path

from claudomator_py.agents.claude import INFO
from claudomator_py.agents.claude.events import ClaudeEvents
from claudomator_py.agents.claude.use import rule_for
from claudomator_py.agents.event_kind import EventKind, zone_of
from claudomator_py.agents.fence import HOOK_SECONDS, hook_line, is_fenced
from claudomator_py.agents.programs import MCP_NAME, probe
from claudomator_py.domain.agent import AgentHealth, AgentSpec, OwnServers
from claudomator_py.domain.conversation import Conversations
from claudomator_py.domain.run import Launch, LaunchRequest
from claudomator_py.domain.task import PermissionMode, TaskSpec

REMEDY = "install it (npm install -g @anthropic-ai/claude-code), or set the agent's command in the configuration"

# By itself it asks ten times more: three minutes of waiting at a service that refuses a key or has no quota left, with
# the agent's slot taken and no other agent asked. Four bridge what is over in some eight seconds; for longer troubles
# the task waits in the queue, where it costs nothing and can be seen. The agent's env, or pass_env, may say otherwise.
MAX_RETRIES_NAME = "CLAUDE_CODE_MAX_RETRIES"
MAX_RETRIES = "4"
NO_BACKGROUND = {"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1", "CLAUDE_CODE_DISABLE_CRON": "1"}
"""Without these it goes on by itself after its last word, or promises what its exit breaks."""
BACKGROUND_TOOLS = ("CronCreate", "Monitor", "RemoteTrigger", "ScheduleWakeup", "SendMessage", "Workflow")
"""What those variables leave of such tools, as seen of 2.1.330, and had left in other versions."""
_MCP_PREFIX = "mcp__"
"""Of the name of a tool that a server offers."""
WITHOUT_HOOKS = ("--settings", "--bare", "--safe-mode")
"""Options with which it would have other settings, or no hooks."""
MODES_WITHOUT_HOOKS = {"CLAUDE_CODE_SIMPLE": "0", "CLAUDE_CODE_SAFE_MODE": "0"}
"""Variables that do the same; a task's own are replaced by these."""
_LEAST_USD = 0.000001
"""It refuses a budget of nothing."""

# As root it bypasses permissions only where this says that nothing is at stake.
SANDBOX_NAME = "IS_SANDBOX"


class Claude(EventKind):
    """The kind ``claude``."""

    kind = INFO.name
    conversations = Conversations.GIVEN

    def launch(self, request: LaunchRequest) -> Launch:
        """Return its command line. The prompt comes from a file on stdin: an open pipe would cost three seconds."""
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
            # Of a conversation that continues, what was used before does not count.
            argv += ["--max-budget-usd", f"{max(_LEAST_USD, request.usd_left):.6f}"]
        argv += agent.extra_args
        only = task.permissions.tools
        if only is not None:
            # It takes names alone: a tool with what it may be used for would not be there at all.
            argv += ["--tools", ",".join(dict.fromkeys(tool.partition("(")[0] for tool in only))]
        fenced = is_fenced(request) and self.unfenced(agent) is None
        if fenced:
            argv += ["--settings", json.dumps(_fence(request))]
        tools = list(task.permissions.allowed_tools)
        commands = (rule_for("Bash", {"command": command}) for command in request.granted_commands)
        tools += [rule for rule in commands if rule is not None and rule not in tools]
        if request.mcp_command:
            argv += ["--mcp-config", _mcp_config(request.mcp_command)]
            tools.append(f"{_MCP_PREFIX}{MCP_NAME}")
        # The option before is about its own tools only: servers that nothing is named of have to stay away.
        without_servers = only is not None and not any(tool.startswith(_MCP_PREFIX) for tool in only)
        if without_servers or agent.mcp.own_servers is OwnServers.NONE:
            argv.append("--strict-mcp-config")
        background = agent.background if task.background is None else task.background
        disallowed = [*task.permissions.disallowed_tools, *(() if background else BACKGROUND_TOOLS)]
        # These take any number of words: each is given one, and nothing that is not an option may follow them.
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
        """Return the hook is one of the settings that it is given."""
        flags = (flag for flag in WITHOUT_HOOKS if any(_is_flag(word, flag) for word in agent.extra_args))
        names = (name for name in MODES_WITHOUT_HOOKS if name in agent.env or name in agent.pass_env)
        found = next(flags, None) or next(names, None)
        return None if found is None else f"{found}, which it is started with, keeps the fence's hook from it"

    def events(self, request: LaunchRequest | None) -> ClaudeEvents:
        """Return what its events mean, with nothing taken yet."""
        if request is None:
            return ClaudeEvents()
        return ClaudeEvents(resumed=request.resume, prior_cost_usd=request.prior_cost_usd, zone=zone_of(request))

    def health(self, agent: AgentSpec, path: str) -> AgentHealth:
        """Return whether it is installed, and which version."""
        return probe(agent.command or INFO.command, path, REMEDY)

    def unsupported(self, task: TaskSpec, agent: AgentSpec) -> list[str]:
        """Return only what it refuses: it enforces all that a task can ask for."""
        as_root = os.geteuid() == 0
        # That it is in a sandbox is for the user to say.
        sandbox = {**agent.env, **task.env}.get(SANDBOX_NAME) == "1" or SANDBOX_NAME in agent.pass_env
        if task.permissions.mode is PermissionMode.BYPASS and as_root and not sandbox:
            refusal = f"{agent.name} refuses permissions.mode bypassPermissions when it runs as root"
            remedy = (
                f"run Claudomator as another user or, if this is a sandbox, set {SANDBOX_NAME}: '1' in the agent's env"
            )
            return [f"{refusal}; {remedy}"]
        return []


def _is_flag(word: str, flag: str) -> bool:
    return word == flag or word.startswith(f"{flag}=")


def _fence(request: LaunchRequest) -> dict[str, object]:
    """Settings with the hook. They count before those of the project and of the user, which could turn hooks off."""
    hook = {"type": "command", "command": hook_line(request, allows=True), "timeout": HOOK_SECONDS}
    return {"disableAllHooks": False, "hooks": {"PreToolUse": [{"matcher": "*", "hooks": [hook]}]}}


def _mcp_config(command: tuple[str, ...]) -> str:
    # Else the model is told no more than the names of its tools.
    server = {"type": "stdio", "command": command[0], "args": command[1:], "alwaysLoad": True}
    return json.dumps({"mcpServers": {MCP_NAME: server}})


KIND = Claude()
