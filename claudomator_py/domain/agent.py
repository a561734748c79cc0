"""An agent: a configured backend that runs work. Two logins of one CLI are two agents.

For a plain program, the configuration says what its output and its exit codes mean.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, StrictInt

from claudomator_py.agents.kinds import KINDS, info_of
from claudomator_py.domain.budget import AgentBudget
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
from claudomator_py.domain.kind import TIERS, KindInfo, ModelChoice, Tier, UsageReporting
from claudomator_py.domain.remote import Remote

BY_NAME_KINDS = tuple(name for name, info in KINDS.items() if not info.asks_model)
"""Kinds that are open to balancing only if the configuration says so; otherwise a task must name them."""

TellableReason = Literal[
    "rate_limited",
    "overloaded",
    "network",
    "auth",
    "no_credit",
    "invalid_model",
    "context_too_long",
    "refused",
    "turn_limit",
    "bad_invocation",
    "no_answer",
]
"""Reason codes that a program can know. The others are detected from outside."""


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise refusal(f"is not a regular expression: {error}", "correct it, or put it in single quotes") from None
    return text


def _number(code: object) -> object:
    """Return the number that a document's key spells out."""
    return int(code) if isinstance(code, str) and code.isascii() and code.isdigit() else code


ExitCode = Annotated[StrictInt, BeforeValidator(_number), Field(ge=1, le=255)]
Pattern = Annotated[Line, AfterValidator(_pattern)]


class ResultFormat(StrEnum):
    """What a program prints."""

    JSON = "json"
    JSONL = "jsonl"


class ProgramResult(Strict):
    """Where a program's output contains its answer and its usage. A path consists of keys and indexes separated by
    dots."""

    format: ResultFormat = Field(
        ResultFormat.JSONL, description="One JSON document, or one a line, of which the last with a value counts."
    )
    text: Line = Field(description="Path of the answer, such as `result` or `message.content.0.text`.")
    usage: Line | None = Field(
        None,
        description="Path of the object with what was used: `input_tokens` and `output_tokens` (or `inputTokens`, "
        "`prompt_tokens` and the like), and `cost_usd`.",
    )


class ProgramOutput(Strict):
    """Meaning of exit codes and output."""

    exit_codes: Annotated[dict[ExitCode, TellableReason], Field(max_length=50)] = Field(
        {}, description="Kind `command` only: what exit codes mean, by reason code, such as `{75: rate_limited}`."
    )
    limit_text: Annotated[tuple[Pattern, ...], Field(max_length=50), OneOrMore] = Field(
        (),
        description="Kind `command` only: regular expressions. A line of its output or its errors that fits one tells "
        "of a limit, whatever the exit code is; a time in it is when that resets.",
    )
    failure_text: Annotated[tuple[Pattern, ...], Field(max_length=50), OneOrMore] = Field(
        (),
        description="Kind `command` only: regular expressions. A line that fits one tells of a failure, whatever the "
        "exit code is. The reason follows from its words, such as `auth` for a refused key, or is `agent_error`.",
    )
    result: ProgramResult | None = Field(
        None, description="Kind `command` only: where in the JSON that it prints its answer is, and what it has used."
    )


__all__ = ["DEFAULT_ACCOUNT", "TIERS", "AgentHealth", "AgentSpec", "ModelChoice", "Price", "Tier"]


DEFAULT_ACCOUNT = "default"
PERMISSION_VARIABLES = {name: value for info in KINDS.values() for name, value in info.permission_variables.items()}
"""The permission variables of all kinds."""


class Price(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """US dollars per million tokens."""

    input: float = Field(strict=True, ge=0, le=1_000_000)
    output: float = Field(strict=True, ge=0, le=1_000_000)


class OwnServers(StrEnum):
    """Whether the MCP servers that the agent's user configured for its CLI are used."""

    KEEP = "keep"
    NONE = "none"


class AgentMcp(Strict):
    """What the agent's CLI gets in addition to its own tools."""

    enabled: Flag = Field(True, description="Whether runs get Claudomator's tools, such as `ask_operator`.")
    own_servers: OwnServers = Field(
        OwnServers.KEEP,
        description="MCP servers from the CLI's own configuration: use them, or not. `none` for kinds `claude` and "
        "`gemini` only.",
    )


def _model(value: object) -> object:
    if value == "":
        raise refusal("is empty", "give it a value, or delete the line")
    return {"model": value} if isinstance(value, str) else value


Model = Annotated[ModelChoice, BeforeValidator(_model)]


class AgentFields(Strict):
    """What a file says about an agent of any kind. None: it says nothing, and the default follows from the kind."""

    kind: Line | None = Field(
        None, description="The CLI that the agent uses. Default: the agent's name, if that is a kind."
    )
    account: Line = Field(
        DEFAULT_ACCOUNT,
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
    script: Text | None = Field(None, description="Kind `simulated` only: what to do when the prompt does not say.")


class AgentSpec(AgentFields):
    """One configured agent."""

    name: str
    kind: str
    command: tuple[str, ...] = ()
    """Argv prefix (for kind ``command`` the whole argv template)."""
    auto_select: bool = True
    """Open to balancing."""
    models: dict[Tier, ModelChoice] = Field(default_factory=dict)
    reads_task: bool = True
    """Whether its behaviour depends on the task's text, whose risk is then assessed."""
    output: ProgramOutput = ProgramOutput()
    """Kind ``command`` only: the meaning of exit codes and output."""
    remote: Remote | None = None
    """Kind ``a2a`` only, and always set there: how to reach it."""
    specialist: str | None = None
    """The remote specialist that this agent is. It does only that specialist's tasks, which cannot be obtained by
    naming the agent. None for a configured agent."""
    fee_usd: float | None = None
    """What a task costs on the remote specialist, in US dollars; None if that is not known beforehand."""

    @property
    def info(self) -> KindInfo:
        """What is known about its kind and its program."""
        info = info_of(self.kind).of(self.command)
        tells = self.output.result is not None and self.output.result.usage is not None
        return replace(info, reports=UsageReporting.DOLLARS) if tells else info

    def goes_by(self, agent_type: str | None) -> bool:
        """Return whether that is its name or its kind, to which a task's ``agent.type`` may refer."""
        return agent_type in (self.name, self.kind)

    def limited_by_login(self, environ: Mapping[str, str]) -> "AgentSpec":
        """Return the agent limited to one slot if its runs may go to several machines and log in through a file: two
        runs that refresh such a login at the same time lose it. environ: the daemon's variables, some of which are
        passed to the agent."""
        how = self.info.login
        if self.hosts == (LOCAL,) or how is None or not how.files:
            return self
        if any(name in self.env or (name in self.pass_env and environ.get(name)) for name in how.variables):
            return self
        return self.model_copy(update={"max_concurrent": 1})

    @property
    def quota_account(self) -> str:
        """The account whose quota it uses. A program without an account behind it counts as an account of its own."""
        info = info_of(self.kind)
        if self.account != DEFAULT_ACCOUNT or (info.has_account and info.by_command is None):
            return self.account
        return info.of(self.command).own_account or self.name


def reads_task(agent_type: str | None, agents: Iterable[AgentSpec]) -> bool:
    """Return whether any agent that a task's ``agent.type`` refers to acts on the task's text. agents: see
    ``asks_no_model``."""
    if agent_type is None:
        return True
    meant = [agent.reads_task for agent in agents if agent.goes_by(agent_type)]
    return any(meant) if meant else info_of(agent_type).reads_task(())


def asks_no_model(agent_type: str | None, agents: Iterable[AgentSpec]) -> bool:
    """Return whether a task's ``agent.type`` refers only to agents that do what they are configured to do, whatever the
    text says. agents: the existing ones; a type that matches none of them may be a kind."""
    if agent_type is None:
        return False
    meant = {agent.kind for agent in agents if agent.goes_by(agent_type)}
    return (meant or {agent_type}) <= set(BY_NAME_KINDS)


class AgentHealth(BaseModel, frozen=True):
    """What checking the agent's program found. problem: why it cannot run, with the remedy; None if it can."""

    installed: bool
    program: str | None = None
    version: str | None = None
    problem: str | None = None
