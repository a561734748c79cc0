"""The kind ``opencode``: start opencode."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from claudomator_py.agents.event_kind import EventKind, without_list_of_tools
from claudomator_py.agents.fence import FENCE_NAME, hook_line, is_fenced
from claudomator_py.agents.opencode import INFO
from claudomator_py.agents.opencode.events import OpencodeEvents
from claudomator_py.agents.programs import MCP_NAME, MCP_SECONDS
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.run import Conversations, Launch, LaunchRequest
from claudomator_py.domain.task import PLAIN_TOOL, PermissionMode, Permissions, TaskSpec

# Configuration as JSON, which overrides all files.
CONFIG_NAME = "OPENCODE_CONFIG_CONTENT"
# Permissions by tool, as JSON: "allow", "ask" (which ends an unattended run) or "deny".
PERMISSION_NAME = "OPENCODE_PERMISSION"
# It waits out limits without an event, and of some errors says only that they are in its log.
LOGS = ("--print-logs", "--log-level=ERROR")
# While it waits for a model, 1.18.33 uses up to 3 % of a processor.
IDLE_SHARE = 0.05
# It would update itself during a run.
QUIET = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    # For a plugin, such as the fence, it first installs one of its own. Without a registry, npm would wait 70 seconds
    # between its attempts.
    "npm_config_fetch_retry_mintimeout": "500",
    "npm_config_fetch_retry_maxtimeout": "2000",
}

# The plugin that has the fence judge each call.
FENCE = Path(__file__).with_name("fence.js")
PURE = "--pure"
UNFENCED = f"the fence is a plugin named in {CONFIG_NAME}, which already has a value that cannot be extended; remove it"

_MODES: dict[PermissionMode, dict[str, str]] = {
    PermissionMode.ACCEPT_EDITS: {"edit": "allow", "bash": "deny"},
    PermissionMode.PLAN: {"edit": "deny", "bash": "deny"},
}
_FLAGS = {PermissionMode.PLAN: ("--agent=plan",), PermissionMode.BYPASS: ("--auto",)}
# One permission covers all tools that change files.
_EDITS = ("write", "patch", "apply_patch", "multiedit")


class Opencode(EventKind):
    """The kind ``opencode``."""

    info = INFO
    package = "opencode-ai"
    conversations = Conversations.NAMED

    def launch(self, request: LaunchRequest) -> Launch:
        """Return the command line. The prompt is a file on stdin. With ``=``, no value can be taken for an option.

        It names sessions itself, so a new one gets no id. Raises ValueError for a folder that it would take for a
        pattern.
        """
        agent, task = request.agent, request.task
        if (folder := next(filter(_is_pattern, task.add_dirs), None)) is not None:
            raise ValueError(f"{agent.name} would take the further folder {folder} for a pattern; rename it")
        argv = [*(agent.command or INFO.command), "run", "--format=json", *LOGS]
        if request.resume:
            argv.append(f"--session={request.conversation_id}")
        if request.model is not None:
            argv.append(f"--model={request.model.model}")
            if request.model.effort is not None:
                argv.append(f"--variant={request.model.effort}")
        argv += [*_FLAGS.get(task.permissions.mode, ()), *agent.extra_args]
        permission = _permission(task.permissions, task.add_dirs)
        granted = {PERMISSION_NAME: json.dumps(permission)} if permission else {}
        return Launch(tuple(argv), {**QUIET, **granted}, request.prompt, _config(request), IDLE_SHARE)

    def unfenced(self, agent: AgentSpec) -> str | None:
        """Return why the agent's runs cannot be fenced: the hook is a plugin named in a configuration variable."""
        if PURE in agent.extra_args:
            return f"with {PURE} in extra_args it loads no plugins, and the fence is one; remove it"
        return None if _own_config(agent, {}) is not None else UNFENCED

    def events(self, request: LaunchRequest | None) -> OpencodeEvents:
        return OpencodeEvents(resumed=request is not None and request.resume)

    def unsupported(self, task: TaskSpec, agent: AgentSpec) -> list[str]:
        """Return what the agent cannot keep to: at its maximum of steps it ends as if it were done, and it takes
        permissions from one variable only."""
        name = agent.name
        sentences = without_list_of_tools(task, agent)
        if task.max_turns is not None:
            sentences.append(f"{name} cannot keep to max_turns: it would end as if it were done; use timeout")
        sentences += [
            f"{name} has no tool {tool!r}; write a tool's name alone, such as bash or webfetch"
            for tool in (*task.permissions.allowed_tools, *task.permissions.disallowed_tools)
            if not PLAIN_TOOL.fullmatch(tool)
        ]
        sentences += [
            f"{name} would take {folder!r} in add_dirs for a pattern, as it has a * or a ?"
            for folder in task.add_dirs
            if _is_pattern(folder)
        ]
        if PERMISSION_NAME in {*agent.env, *task.env} and _permission(task.permissions, task.add_dirs):
            sentences.append(f"{name} has {PERMISSION_NAME} in its env, which would replace the task's permissions")
        return sentences


def _is_fenced(request: LaunchRequest) -> bool:
    return is_fenced(request) and PURE not in request.agent.extra_args and CONFIG_NAME not in request.agent.pass_env


def _config(request: LaunchRequest) -> dict[str, str]:
    """Return configuration with Claudomator's server and fence, to both of which it passes its whole environment.
    Empty if the variable has a value that cannot be extended."""
    config = _own_config(request.agent, request.task.env)
    if config is None and _is_fenced(request):
        raise ValueError(f"{CONFIG_NAME} is not a JSON object, so the fence cannot be added to it; correct it")
    if config is None or not (request.mcp_command or _is_fenced(request)):
        return {}
    if request.mcp_command:
        server = {"type": "local", "command": request.mcp_command, "enabled": True, "timeout": MCP_SECONDS * 1_000}
        config = {**config, "mcp": {**config["mcp"], MCP_NAME: server}}
    if _is_fenced(request):
        config = {**config, "plugin": [*config["plugin"], FENCE.as_uri()]}
    fence = {FENCE_NAME: hook_line(request, dialect="plain")} if _is_fenced(request) else {}
    return {CONFIG_NAME: json.dumps({name: value for name, value in config.items() if value}), **fence}


def _own_config(agent: AgentSpec, env: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the agent's and the task's configuration, with servers and plugins; None: it cannot be extended."""
    if CONFIG_NAME in agent.pass_env:
        return None
    try:
        config = json.loads({**agent.env, **env}.get(CONFIG_NAME, "{}"))
        return {**config, "mcp": dict(config.get("mcp", {})), "plugin": list(config.get("plugin", []))}
    except (AttributeError, TypeError, ValueError):
        return None


def _permission(permissions: Permissions, add_dirs: tuple[str, ...]) -> dict[str, object]:
    """Return permissions by tool. Later ones win: mode, allowed tools, further folders, disallowed tools."""
    granted: dict[str, object] = dict(_MODES.get(permissions.mode, {}))
    granted |= {_key(tool): "allow" for tool in permissions.allowed_tools}
    if add_dirs:
        granted["external_directory"] = {f"{Path(folder).expanduser()}/**": "allow" for folder in add_dirs}
    return granted | {_key(tool): "deny" for tool in permissions.disallowed_tools}


def _is_pattern(folder: str) -> bool:
    return not {"*", "?"}.isdisjoint(folder)


def _key(tool: str) -> str:
    return "edit" if tool in _EDITS else tool


KIND = Opencode()
