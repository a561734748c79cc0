"""The configuration's agents: each entry under ``agents`` becomes an agent or problems."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field

from claudomator_py.agents.kinds import KINDS, info_of
from claudomator_py.domain.agent import (
    BY_NAME_KINDS,
    AgentMcp,
    AgentSpec,
    ExitCode,
    ModelChoice,
    OwnServers,
    Pattern,
    Price,
    ProgramOutput,
    ProgramResult,
    TellableReason,
    Tier,
)
from claudomator_py.domain.budget import AgentBudget
from claudomator_py.domain.errors import Lines, Problem, shown, suggestion
from claudomator_py.domain.fields import (
    Count,
    Distinct,
    Environment,
    EnvName,
    Flag,
    Line,
    Name,
    OneOrMore,
    Strict,
    Text,
    Words,
    refusal,
)
from claudomator_py.domain.host import LOCAL
from claudomator_py.domain.remote import Authentication, Protocol, Remote, RemoteUrl, Scheme
from claudomator_py.domain.report import unknown_to
from claudomator_py.schema.validation import described, key_suggestion, odd_values, problem_at, validate

MODEL_KINDS = tuple(name for name, info in KINDS.items() if info.asks_model)
FOUND_KINDS = tuple(name for name in MODEL_KINDS if KINDS[name].command)
"""Kinds with a program of their own, available without configuration if the program is on PATH."""
KNOWN_KINDS = tuple(KINDS)
"""All kinds, including those of remote agents, which configurations cannot contain."""
SUPPORTED_KINDS = (*MODEL_KINDS, *(name for name in BY_NAME_KINDS if KINDS[name].configured))

_NEED_COMMAND = ("acp", "command")


def _model(value: object) -> object:
    if value == "":
        raise refusal("is empty", "give it a value, or delete the line")
    return {"model": value} if isinstance(value, str) else value


Model = Annotated[ModelChoice, BeforeValidator(_model)]


class AgentEntry(Strict):
    """An agent as written in a file."""

    kind: Line | None = Field(
        None, description="The CLI that the agent uses. Default: the agent's name, if that is a kind."
    )
    account: Line = Field(
        "default",
        description="A label for the login it uses. Agents of one kind and account share limits; of kind `acp`, where "
        "no label is given, those of one program.",
    )
    command: Words | None = Field(None, description="Program and first arguments. Default: those of the kind.")
    extra_args: tuple[Text, ...] = Field(
        (), max_length=1_000, description="Arguments to append to those that Claudomator passes."
    )
    max_concurrent: Count = Field(2, ge=1, le=1_000, description="Maximum number of concurrent runs on this agent.")
    hosts: Annotated[tuple[Name, ...], Field(min_length=1, max_length=100), OneOrMore, Distinct] = Field(
        (LOCAL,),
        description="Where its runs may take place: `local` is this machine, others are those of `hosts`. A run goes "
        "where no job waits for a place, then to the least active, then by name.",
    )
    auto_select: Flag | None = Field(
        None,
        description="Whether balancing may choose it. Default: yes for kinds that use a model, no for `command`, "
        "`simulated` and `a2a`.",
    )
    models: dict[Tier, Model] | None = Field(
        None, description="Model for each tier, as a name or {model: ..., effort: ...}. Default: those of the kind."
    )
    prices: dict[Line, Price] = Field(
        {},
        max_length=1_000,
        description="US dollars per million tokens, by model, for an agent that does not report its cost.",
    )
    budget: AgentBudget = Field(AgentBudget(), description="Daily budget of the agent.")
    default_tier: Tier = Field(Tier.BALANCED, description="Tier for tasks that neither name one nor are classified.")
    fallback_model: Line | None = Field(
        None, description="Model for further attempts after `overloaded` or `invalid_model`, for every tier."
    )
    env: Environment = Field({}, max_length=200, description="Environment variables for the agent.")
    pass_env: Annotated[tuple[EnvName, ...], OneOrMore, Distinct] = Field(
        (),
        description="Environment variables of the daemon to pass on. The agent otherwise gets a minimal environment.",
    )
    mcp: AgentMcp = Field(AgentMcp(), description="Tools that the agent's runs get over MCP.")
    background: Flag = Field(
        False,
        description="Kind `claude` only: whether runs may leave commands and subagents in the background, and set "
        "themselves wake-ups. A task may say otherwise.",
    )
    reads_task: Flag | None = Field(
        None,
        description="Kind `command` only: whether the program does what a task's text says, so that the policy judges "
        "the text as an order. Default: yes for a command with `{prompt_file}`, for programs of agents, for shells and "
        "databases that read their standard input, and for scripts, behind other programs as well.",
    )
    exit_codes: Annotated[dict[ExitCode, TellableReason], Field(max_length=50)] = Field(
        {}, description="Kind `command` only: what exit codes mean, by reason code, such as `{75: rate_limited}`."
    )
    limit_text: Annotated[tuple[Pattern, ...], Field(max_length=50), OneOrMore] = Field(
        (),
        description="Kind `command` only: regular expressions. A line of its output or its errors that fits one tells "
        "of a limit, whatever the exit code is; a time in it is when that resets.",
    )
    result: ProgramResult | None = Field(
        None, description="Kind `command` only: where in the JSON that it prints its answer is, and what it has used."
    )
    script: Text | None = Field(None, description="Kind `simulated` only: what to do when the prompt does not say.")
    url: RemoteUrl | None = Field(
        None, description="Kind `a2a` only: https:// address of the remote agent, or of the host that its card is on."
    )
    protocol: Protocol = Field(
        Protocol.AUTO,
        description="Kind `a2a` only: what is spoken. Default: the version of A2A that the agent's card names.",
    )
    authentication: Authentication = Field(
        Authentication(), description="Kind `a2a` only: how requests to `url` prove who sends them."
    )
    deduplicates: Flag = Field(
        False,
        description="Kind `a2a` only: the agent does a message once that it is sent twice under one id, so one whose "
        "fate is unknown may be sent again.",
    )
    skill: Line | None = Field(None, description="Kind `a2a` only: id of the skill that the agent is asked to use.")


class _Named(Strict):
    name: Name


def parse_agents(value: object, lines: Lines) -> dict[str, AgentSpec] | list[Problem]:
    """Return the agents described by the mapping under ``agents``, by name, or everything wrong with it."""
    if not isinstance(value, Mapping):
        return [problem_at(lines, ("agents",), f"{described(value)}, but must be a mapping", "write {claude: {}}")]
    agents: dict[str, AgentSpec] = {}
    problems: list[Problem] = []
    for name, entry in value.items():
        odd = odd_values({name: None}, lines, ("agents",))
        if odd := odd or odd_values(entry, lines, ("agents", name), model=AgentEntry, at=2):
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
    problems += _odd_agent(entry, kind, lines, at)
    if problems or kind is None:
        return problems
    agent = AgentSpec(
        name=name,
        kind=kind,
        account=entry.account,
        command=_command(entry, kind, name),
        extra_args=entry.extra_args,
        max_concurrent=entry.max_concurrent,
        hosts=entry.hosts,
        auto_select=info_of(kind).asks_model if entry.auto_select is None else entry.auto_select,
        models=dict(info_of(kind).models) if entry.models is None else entry.models,
        prices=entry.prices,
        budget=entry.budget,
        default_tier=entry.default_tier,
        fallback_model=entry.fallback_model,
        env=entry.env,
        pass_env=_passed(entry),
        mcp=entry.mcp,
        background=entry.background,
        reads_task=_reads_task(entry, kind),
        script=entry.script,
        output=ProgramOutput(exit_codes=entry.exit_codes, limit_text=entry.limit_text, result=entry.result),
        remote=_remote(entry),
    )
    return _odd_budget(agent, lines, at) or agent


def _command(entry: AgentEntry, kind: str, name: str) -> tuple[str, ...]:
    """The agent's command: as configured, otherwise the kind's default, or that of the kind's agent with this name."""
    return entry.command or info_of(kind).usual_command(name)


def _reads_task(entry: AgentEntry, kind: str) -> bool:
    if entry.reads_task is not None:
        return entry.reads_task
    return info_of(kind).reads_task((*(entry.command or ()), *entry.extra_args))


def _remote(entry: AgentEntry) -> Remote | None:
    if entry.url is None:
        return None
    return Remote(
        url=entry.url,
        protocol=entry.protocol,
        authentication=entry.authentication,
        deduplicates=entry.deduplicates,
        skill=entry.skill,
    )


def _passed(entry: AgentEntry) -> tuple[str, ...]:
    """The variables passed on, including that of the secret, so that it is also known to be secret."""
    secret = entry.authentication.secret
    return entry.pass_env if secret is None or secret in entry.pass_env else (*entry.pass_env, secret)


def _odd_remote(entry: AgentEntry, kind: str, lines: Lines, at: tuple[str, ...]) -> list[Problem]:
    """Problems of a remote agent's keys: missing ones, and ones that do not belong to the kind."""
    if kind != "a2a":
        keys = [key for key in ("url", "protocol", "authentication", "deduplicates", "skill") if _is_set(entry, key)]
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


def _odd_budget(agent: AgentSpec, lines: Lines, at: tuple[str, ...]) -> list[Problem]:
    """A budget that cannot be enforced because what it counts would never be known."""
    problems = []
    for odd in unknown_to(agent.budget, agent):
        place = (*at, *(odd.field or "").split("."))
        problems.append(problem_at(lines, place, f"cannot be kept: {odd.message}", odd.remedy or "remove it"))
    if agent.budget.window is not None and not agent.info.reports_windows:
        message = f"has no meaning for kind `{agent.kind}`, which does not say how much of a window is used"
        problems.append(problem_at(lines, (*at, "budget", "window"), message, "remove it"))
    return problems


def _odd_agent(entry: AgentEntry, kind: str | None, lines: Lines, at: tuple[str, ...]) -> list[Problem]:
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
    odd = [key for key in ("exit_codes", "limit_text", "result") if kind != "command" and _is_set(entry, key)]
    problems += [problem_at(lines, (*at, key), f"has no meaning for kind `{kind}`", "remove it") for key in odd]
    if entry.background and not info_of(kind).background:
        problems.append(problem_at(lines, (*at, "background"), f"has no meaning for kind `{kind}`", "remove it"))
    problems += _odd_remote(entry, kind, lines, at)
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
