"""The kind ``acp``: start the client of an agent that speaks ACP."""

import json
from typing import Any

from claudomator_py.agents.acp import INFO
from claudomator_py.agents.acp.events import AcpEvents
from claudomator_py.agents.acp.profiles import AcpProfile, profile_of
from claudomator_py.agents.acp_client import TurnOrder
from claudomator_py.agents.event_kind import EventKind, without_list_of_tools, zone_of
from claudomator_py.agents.fence import fence_order, is_fenced
from claudomator_py.agents.programs import found, own_program
from claudomator_py.domain.agent import AgentHealth, AgentSpec
from claudomator_py.domain.run import MCP_VARIABLES, Conversations, Launch, LaunchRequest
from claudomator_py.domain.task import PermissionMode, TaskSpec

SILENCE_SHARE = 0.9
"""Of the stall timeout. The client ends a silent run first, as it knows more about the silence than the supervisor."""
_ASKED = frozenset({"execute", "edit", "delete", "move", "fetch"})
"""Kinds of tools that agents ask about; for others they need not."""


class Acp(EventKind):
    """The kind ``acp``."""

    info = INFO
    conversations = Conversations.NAMED

    def launch(self, request: LaunchRequest) -> Launch:
        """Return the client's command. Its order is in argv, where no variable of a task can change it. Raises
        ValueError for an agent without a command."""
        agent = request.agent
        if not agent.command:
            raise ValueError(f"agents.{agent.name}.command is empty; write the program and its arguments")
        profile = profile_of(agent.command)
        order = {key: value for key, value in _order(request, profile).items() if value not in ("", (), [], {}, None)}
        argv = (*own_program("acp"), f"--order={json.dumps(order)}")
        own = {name: value for name, value in profile.env.items() if name not in {*agent.env, *request.task.env}}
        if profile.turns_variable and request.task.max_turns is not None:
            own[profile.turns_variable] = str(request.task.max_turns)
        return Launch(argv, own, request.prompt)

    def events(self, request: LaunchRequest | None) -> AcpEvents:
        if request is None:
            return AcpEvents()
        return AcpEvents(
            resumed=request.resume,
            zone=zone_of(request),
            profile=profile_of(request.agent.command).name,
            prior=request.prior_tokens,
            prior_cost_usd=request.prior_cost_usd,
        )

    def unfenced(self, agent: AgentSpec) -> str | None:
        """Return why the agent's runs cannot be kept within a reach: only what an agent asks about can be denied."""
        profile = profile_of(agent.command)
        if profile.fences:
            return None
        return "it is not known to ask before every command" if profile.asks else "it does not ask before it acts"

    def health(self, agent: AgentSpec, path: str) -> AgentHealth:
        """Return whether the agent's program is installed."""
        profile = profile_of(agent.command)
        return found(agent, path, f"install it ({profile.install})" if profile.install else "install it")

    def unsupported(self, task: TaskSpec, agent: AgentSpec) -> list[str]:
        """Return what of the task the agent cannot keep to; ACP has no list of tools, no turns, no further folders."""
        profile, permissions, name = profile_of(agent.command), task.permissions, agent.name
        sentences = without_list_of_tools(task, agent)
        if task.max_turns is not None and not profile.turns_variable:
            sentences.append(f"{name} cannot keep to max_turns; use timeout")
        if task.add_dirs:
            sentences.append(f"{name} cannot be given add_dirs")
        restricts = permissions.mode is PermissionMode.PLAN or bool(permissions.disallowed_tools)
        if not profile.asks:
            if restricts or permissions.allowed_tools or permissions.mode is PermissionMode.ACCEPT_EDITS:
                sentences.append(f"{name} does not ask before it acts, so permissions cannot hold it")
            return sentences
        if permissions.mode is PermissionMode.PLAN and "plan" not in profile.modes:
            sentences.append(f"{name} is not known to have a planning mode")
        odd = [tool for tool in permissions.disallowed_tools if tool not in _ASKED]
        if odd:
            known = ", ".join(sorted(_ASKED))
            sentences.append(f"{name} can be denied kinds of tools only ({known}), and not {', '.join(odd)}")
        unasked = [tool for tool in permissions.disallowed_tools if tool in profile.unasked]
        if unasked:
            sentences.append(f"{name} may use {', '.join(unasked)} without asking, so permissions cannot deny it")
        return sentences


def _order(request: LaunchRequest, profile: AcpProfile) -> dict[str, Any]:
    """Return the order that ``acp_client.order_of`` reads."""
    agent, task, model = request.agent, request.task, request.model
    of_profile = {name: getattr(profile, name) for name in TurnOrder._fields if name in AcpProfile.model_fields}
    return of_profile | {
        "command": (*agent.command, *agent.extra_args),
        "session": request.conversation_id if request.resume else "",
        "mode": task.permissions.mode.value,
        "allowed": task.permissions.allowed_tools,
        "disallowed": task.permissions.disallowed_tools,
        "model": model.model if model is not None else "",
        "effort": (model.effort or "") if model is not None else "",
        "silence_s": SILENCE_SHARE * task.stall_timeout / 1_000,
        "mcp_command": request.mcp_command,
        "mcp_variables": MCP_VARIABLES if request.mcp_command else (),
        "fence": fence_order(request) if is_fenced(request) else {},
        "profile": profile.name,
    }


KIND = Acp()
