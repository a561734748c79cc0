"""The configuration's agents: each entry under ``agents`` becomes an agent or problems."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel

from claudomator_py.agents.kinds import KINDS, info_of
from claudomator_py.domain.agent import (
    BY_NAME_KINDS,
    AgentFields,
    AgentSpec,
    ModelChoice,
    OwnServers,
    ProgramOutput,
    Tier,
)
from claudomator_py.domain.errors import Lines, Problem, shown, suggestion
from claudomator_py.domain.fields import Name, Strict
from claudomator_py.domain.remote import Remote, RemoteSettings, Scheme
from claudomator_py.domain.report import unknown_to
from claudomator_py.schema.validation import described, key_suggestion, problem_at, validate, value_problems

MODEL_KINDS = tuple(name for name, info in KINDS.items() if info.asks_model)
FOUND_KINDS = tuple(name for name in MODEL_KINDS if KINDS[name].command)
"""Kinds with a program of their own, available without configuration if the program is on PATH."""
KNOWN_KINDS = tuple(KINDS)
"""All kinds, including those of remote agents, which configurations cannot contain."""
SUPPORTED_KINDS = (*MODEL_KINDS, *(name for name in BY_NAME_KINDS if KINDS[name].configured))

_NEED_COMMAND = ("acp", "command")


class AgentEntry(RemoteSettings, ProgramOutput, AgentFields):
    """An agent as written in a file."""


class _Named(Strict):
    name: Name


def parse_agents(value: object, lines: Lines) -> dict[str, AgentSpec] | list[Problem]:
    """Return the agents described by the mapping under ``agents``, by name, or everything wrong with it."""
    if not isinstance(value, Mapping):
        return [problem_at(lines, ("agents",), f"{described(value)}, but must be a mapping", "write {claude: {}}")]
    agents: dict[str, AgentSpec] = {}
    problems: list[Problem] = []
    for name, entry in value.items():
        odd = value_problems({name: None}, lines, ("agents",))
        if odd := odd or value_problems(entry, lines, ("agents", name), model=AgentEntry, at=2):
            problems += odd
            continue
        agent = _agent(name, {} if entry is None else entry, lines)
        if isinstance(agent, AgentSpec):
            agents[name] = agent
        else:
            problems += agent
    return problems or agents


def default_agent(kind: str) -> AgentSpec:
    """Return the agent of that kind without configuration. Raises ValueError for a kind that requires some."""
    agent = _agent(kind, {}, {})
    if isinstance(agent, list):
        raise ValueError(agent[0].render())
    return agent


class KnownAgent(BaseModel, frozen=True):
    """An agent whose program is known."""

    name: str
    title: str
    command: tuple[str, ...]
    entry: str = ""
    """The configuration entry that adds it; empty if it needs none."""
    login: str = ""
    """How a person logs in."""
    program: str | None = None
    """Path of the program; None if it was not found or not searched for."""
    configured: tuple[str, ...] = ()
    """Names of the agents of a configuration that use the program."""

    def among(self, agents: Mapping[str, AgentSpec]) -> Self:
        """Return it as these configured agents leave it: the only ones that are used."""
        names = tuple(name for name, agent in agents.items() if self._is_used_by(agent))
        return self.model_copy(update={"configured": names, "entry": self.entry or f"{self.name}: {{}}"})

    def _is_used_by(self, agent: AgentSpec) -> bool:
        if not self.entry:
            return agent.kind == self.name
        return bool(agent.command) and (agent.command[0].rpartition("/")[2], *agent.command[1:]) == self.command


def known_agents() -> list[KnownAgent]:
    """Return all known agents: those with a kind of their own first, then those of kinds that cover many programs."""
    own = [KINDS[kind] for kind in FOUND_KINDS]
    known = [
        KnownAgent(
            name=info.name,
            title=info.name,
            command=info.command,
            login=info.login.command if info.login is not None else "",
        )
        for info in own
    ]
    programs = {info.command[0] for info in own}
    for kind, info in KINDS.items():
        for name, agent in info.named().items():
            if agent.command[0] in programs:  # the program's own kind knows more about it
                continue
            # The name of a kind is reserved: an agent with that name would be of that kind.
            called = f"{name}-{kind}" if name in KINDS else name
            command = f", command: [{', '.join(agent.command)}]" if called != name else ""
            entry = f"{called}: {{kind: {kind}{command}}}"
            known.append(
                KnownAgent(name=called, title=agent.title, command=agent.command, entry=entry, login=agent.login)
            )
    return known


def usual_models(kind: str) -> Mapping[Tier, ModelChoice]:
    """Return the default models of an agent of that kind; empty if there are none or the kind is unknown."""
    return info_of(kind).models


def no_agent_message(path: str) -> str:
    """Return the message for a PATH without any agent's program."""
    return f"no agent found on PATH: none of {', '.join(FOUND_KINDS)} is in {path}"


def _agent(name: str, value: object, lines: Lines) -> AgentSpec | list[Problem]:
    at = ("agents", name)
    if not isinstance(value, Mapping):
        return [problem_at(lines, at, f"{described(value)}, but must be a mapping", "write {kind: ...}")]
    named = validate(_Named, {"name": name}, lines)
    problems = [problem_at(lines, at, bad.message, bad.remedy) for bad in named] if isinstance(named, list) else []
    fields: dict[str, object] = {}
    known = AgentEntry.model_fields
    for key, item in value.items():
        if key not in known:
            problems.append(problem_at(lines, (*at, key), "is not a known key", key_suggestion(key, known)))
        else:
            fields[key] = item
    entry = validate(AgentEntry, fields, lines, at)
    if isinstance(entry, list):
        return problems + entry
    kind = entry.kind or (name if name in SUPPORTED_KINDS else None)
    problems += _agent_problems(entry, kind, lines, at)
    if problems or kind is None:
        return problems
    filled = {
        "name": name,
        "kind": kind,
        "command": _command(entry, kind, name),
        "auto_select": info_of(kind).asks_model if entry.auto_select is None else entry.auto_select,
        "models": info_of(kind).models if entry.models is None else entry.models,
        "pass_env": _passed(entry),
        "reads_task": _reads_task(entry, kind),
        "output": ProgramOutput(**_part(entry, ProgramOutput)),
        "remote": None if entry.url is None else Remote(**_part(entry, RemoteSettings)),
    }
    agent = AgentSpec(**_part(entry, AgentFields) | filled)
    return _budget_problems(agent, lines, at) or agent


def _part(entry: AgentEntry, of: type[BaseModel]) -> dict[str, Any]:
    return {field: getattr(entry, field) for field in of.model_fields}


def _command(entry: AgentEntry, kind: str, name: str) -> tuple[str, ...]:
    """The agent's command: as configured, otherwise the kind's default, or that of the kind's agent with this name."""
    return entry.command or info_of(kind).usual_command(name)


def _reads_task(entry: AgentEntry, kind: str) -> bool:
    if entry.reads_task is not None:
        return entry.reads_task
    return info_of(kind).reads_task((*(entry.command or ()), *entry.extra_args))


def _passed(entry: AgentEntry) -> tuple[str, ...]:
    """The variables passed on, including that of the secret, so that it is also known to be secret."""
    secret = entry.authentication.secret
    return entry.pass_env if secret is None or secret in entry.pass_env else (*entry.pass_env, secret)


def _remote_problems(entry: AgentEntry, kind: str, lines: Lines, at: tuple[str, ...]) -> list[Problem]:
    """Problems of a remote agent's keys: missing ones, and ones that do not belong to the kind."""
    if kind != "a2a":
        keys = [key for key in RemoteSettings.model_fields if _is_set(entry, key)]
        return [problem_at(lines, (*at, key), f"has no meaning for kind `{kind}`", "remove it") for key in keys]
    problems = []
    if entry.url is None:
        problems.append(problem_at(lines, (*at, "url"), "is missing", "write https://HOST/PATH"))
    keys = [key for key in ("command", "extra_args", "models", "fallback_model") if _is_set(entry, key)]
    problems += [problem_at(lines, (*at, key), "has no meaning for a remote agent", "remove it") for key in keys]
    authentication, where = entry.authentication, (*at, "authentication")
    if authentication.scheme is not Scheme.NONE and authentication.secret is None:
        message = f"names no variable for scheme `{authentication.scheme}`"
        problems.append(problem_at(lines, where, message, "add `secret`, the name of the variable that holds it"))
    if authentication.scheme is Scheme.NONE and authentication.secret is not None:
        message = "does not say how the secret is sent"
        problems.append(problem_at(lines, where, message, "add `scheme: bearer` or `scheme: apiKey`"))
    if authentication.header is not None and authentication.scheme is not Scheme.API_KEY:
        problems.append(problem_at(lines, (*where, "header"), "is for scheme `apiKey` only", "remove it"))
    if authentication.secret is not None and authentication.secret in entry.env:
        message = f"has {authentication.secret}, which is taken from the daemon's environment"
        problems.append(problem_at(lines, (*at, "env"), message, "remove it there"))
    return problems


def _is_set(entry: AgentEntry, key: str) -> bool:
    return bool(getattr(entry, key) != AgentEntry.model_fields[key].get_default())


def _budget_problems(agent: AgentSpec, lines: Lines, at: tuple[str, ...]) -> list[Problem]:
    """A budget that cannot be enforced because what it counts would never be known."""
    problems = []
    for odd in unknown_to(agent.budget, agent):
        place = (*at, *(odd.field or "").split("."))
        problems.append(problem_at(lines, place, f"cannot be kept: {odd.message}", odd.remedy or "remove it"))
    if agent.budget.window is not None and not agent.info.reports_windows:
        message = f"has no meaning for kind `{agent.kind}`, which does not say how much of a window is used"
        problems.append(problem_at(lines, (*at, "budget", "window"), message, "remove it"))
    return problems


def _agent_problems(entry: AgentEntry, kind: str | None, lines: Lines, at: tuple[str, ...]) -> list[Problem]:
    """Problems that only arise from combinations of keys."""
    if kind is None:
        return [problem_at(lines, (*at, "kind"), "is missing", f"write one of {', '.join(SUPPORTED_KINDS)}")]
    if kind in KINDS and kind not in SUPPORTED_KINDS:
        remedy = "remove it: agents of that kind connect to the hub by themselves"
        return [problem_at(lines, (*at, "kind"), f"`{kind}` is not a kind that can be configured", remedy)]
    if kind not in SUPPORTED_KINDS:
        remedy = "write `a2a`" if kind == "remote" else suggestion(kind, SUPPORTED_KINDS)
        return [problem_at(lines, (*at, "kind"), f"`{shown(kind)}` is not a known kind", remedy)]
    problems: list[Problem] = []
    if not _command(entry, kind, at[-1]) and kind in _NEED_COMMAND:
        problems.append(problem_at(lines, (*at, "command"), "is missing", "write [program, argument]"))
    if kind != "simulated" and entry.script is not None:
        problems.append(problem_at(lines, (*at, "script"), f"has no meaning for kind `{kind}`", "remove it"))
    if kind != "command" and entry.reads_task is not None:
        problems.append(problem_at(lines, (*at, "reads_task"), f"has no meaning for kind `{kind}`", "remove it"))
    odd = [key for key in ProgramOutput.model_fields if kind != "command" and _is_set(entry, key)]
    problems += [problem_at(lines, (*at, key), f"has no meaning for kind `{kind}`", "remove it") for key in odd]
    if entry.background and not info_of(kind).background:
        problems.append(problem_at(lines, (*at, "background"), f"has no meaning for kind `{kind}`", "remove it"))
    problems += _remote_problems(entry, kind, lines, at)
    info = info_of(kind).of(_command(entry, kind, at[-1]))
    if _is_set(entry, "mcp") and not info.mcp:
        message = f"has no meaning for kind `{kind}`, whose runs get no tools over MCP"
        problems.append(problem_at(lines, (*at, "mcp"), message, "remove it"))
    elif entry.mcp.own_servers is OwnServers.NONE and not info.mcp_alone:
        message = f"is `none`, but a CLI of kind `{kind}` cannot leave out the servers of its own configuration"
        problems.append(problem_at(lines, (*at, "mcp", "own_servers"), message, "disable them there, and remove it"))
    if entry.models and entry.default_tier not in entry.models:
        message = f"has no model for the default tier, {entry.default_tier}"
        problems.append(problem_at(lines, (*at, "models"), message, "add one, or set `default_tier`"))
    twice = sorted(set(entry.env) & set(entry.pass_env))
    return problems + [problem_at(lines, (*at, "env", n), "is in `pass_env`, too", "remove one of them") for n in twice]
