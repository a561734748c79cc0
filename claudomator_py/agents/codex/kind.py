"""The kind ``codex``: start Codex."""

import json
from itertools import pairwise
from pathlib import Path

from claudomator_py.acts import Reach
from claudomator_py.agents.codex import INFO
from claudomator_py.agents.codex.events import NOTHING, CodexEvents
from claudomator_py.agents.event_kind import EventKind, zone_of
from claudomator_py.agents.fence import HOOK_SECONDS, hook_line, is_fenced
from claudomator_py.agents.programs import MCP_NAME, MCP_SECONDS
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.outcome import Tokens
from claudomator_py.domain.run import MCP_VARIABLES, Conversations, Launch, LaunchRequest
from claudomator_py.domain.task import PermissionMode, TaskSpec

# With analytics it waits five seconds at its end for a report that it cannot send.
NO_ANALYTICS = "analytics.enabled=false"

# It prints the reset of a limit to the minute; the log has the answer to the refused request, to the second. All other
# modules log errors only, which is the default.
LOG = {"RUST_LOG": "error,codex_http_client::client=debug"}

_MODES = {
    PermissionMode.ACCEPT_EDITS: ("--sandbox", "workspace-write"),
    PermissionMode.PLAN: ("--sandbox", "read-only"),
    PermissionMode.BYPASS: ("--dangerously-bypass-approvals-and-sandbox",),
}


class Codex(EventKind):
    """The kind ``codex``."""

    info = INFO
    package = "@openai/codex"
    conversations = Conversations.NAMED

    def launch(self, request: LaunchRequest) -> Launch:
        """Return the command line. The prompt is a file on stdin: Codex waits forever for a pipe to end.

        It names threads itself, so a new one gets no id. Whether a run may work outside a git repository is for
        workdir_roots to say.
        """
        agent, task = request.agent, request.task
        argv = [*(agent.command or INFO.command), "exec", "--json", "--skip-git-repo-check", "--config", NO_ANALYTICS]
        if request.model is not None:
            argv += ["--model", request.model.model]
            if request.model.effort is not None:
                argv += ["--config", f"model_reasoning_effort={json.dumps(request.model.effort)}"]
        argv += _MODES.get(task.permissions.mode, ())
        if request.mcp_command:
            argv += ["--config", _mcp_config(request.mcp_command)]
        for folder in task.add_dirs:
            argv += ["--add-dir", str(Path(folder).expanduser())]
        argv += agent.extra_args
        fenced = is_fenced(request) and self.unfenced(agent) is None
        if fenced:
            # Of two settings the last one holds: hooks of the user's own would replace the fence's.
            argv += _fence(request)
        if request.resume:
            argv += ["resume", request.conversation_id]
        # Denied calls are only in the log.
        return Launch((*argv, "-"), LOG, request.prompt, LOG if fenced else {})

    def unfenced(self, agent: AgentSpec) -> str | None:
        """Return why the agent's runs cannot be fenced: some options disable hooks wherever they stand, or leave the
        work to a server that was started without ours."""
        words = [*agent.command, *agent.extra_args]
        pairs = pairwise(words)
        if "--disable=hooks" in words or ("--disable", "hooks") in pairs:
            return "--disable hooks, which it is started with, disables the fence's hook"
        if any(word.partition("=")[0] == "--remote" for word in words):
            return "--remote, which it is started with, leaves its work to a server that has no hook of ours"
        return None

    def events(self, request: LaunchRequest | None) -> CodexEvents:
        if request is None:
            return CodexEvents()
        prior = _known(request.prior_tokens) if request.resume else NOTHING
        return CodexEvents(resumed=request.resume, prior=prior, zone=zone_of(request))

    def unsupported(self, task: TaskSpec, agent: AgentSpec) -> list[str]:
        """Return what the agent cannot keep to: a sandbox confines what its tools can do, but it has no list of
        tools."""
        permissions = task.permissions
        name = agent.name
        sentences = [
            f"{name} cannot keep to permissions.{field}: it has no list of tools; use permissions.mode"
            for field, tools in (
                ("tools", permissions.tools is not None),
                ("allowed_tools", permissions.allowed_tools),
                ("disallowed_tools", permissions.disallowed_tools),
            )
            if tools
        ]
        if task.max_turns is not None:
            sentences.append(f"{name} cannot count turns (max_turns); use timeout")
        if task.add_dirs and permissions.mode is PermissionMode.PLAN:
            sentences.append(f"{name} opens no add_dirs with permissions.mode plan, which makes everything read-only")
        return sentences


def _fence(request: LaunchRequest) -> list[str]:
    """Return the options that add the hook. Codex silently skips a hook that nobody has reviewed, unless told to trust
    it. Hooks of a project run only if a person trusts the project."""
    command = json.dumps(hook_line(request), ensure_ascii=False)  # as TOML, see `_mcp_config`
    hook = f'hooks.PreToolUse=[{{hooks=[{{type="command",command={command},timeout={HOOK_SECONDS}}}]}}]'
    argv = ["--dangerously-bypass-hook-trust", "--enable", "hooks", "--config", hook]
    # Its web search is no tool call, so no hook sees it.
    return [*argv, "--config", 'web_search="disabled"'] if request.reach is Reach.TREE else argv


def _mcp_config(command: tuple[str, ...]) -> str:
    """Return the server as TOML, whose strings and lists are written as in JSON. Codex waits for a required server, and
    passes on only the variables that are listed."""
    server = {
        "command": command[0],
        "args": command[1:],
        "env_vars": MCP_VARIABLES,
        "default_tools_approval_mode": "approve",
        "required": True,
        "tool_timeout_sec": MCP_SECONDS,
    }
    return f"mcp_servers.{MCP_NAME}={{{','.join(f'{key}={json.dumps(value)}' for key, value in server.items())}}}"


def _known(prior: Tokens) -> Tokens | None:
    return None if prior.input is None or prior.output is None else prior


KIND = Codex()
