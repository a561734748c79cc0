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
from claudomator_py.domain.fields import Flag, Line, OneOrMore, Strict, refusal
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

    exit_codes: Annotated[dict[ExitCode, TellableReason], Field(max_length=50)] = Field(default_factory=dict)
    limit_text: Annotated[tuple[Pattern, ...], Field(max_length=50), OneOrMore] = ()
    result: ProgramResult | None = None


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


class AgentSpec(BaseModel, frozen=True, extra="forbid"):
    """One configured agent."""

    name: str
    kind: str
    account: str = DEFAULT_ACCOUNT
    command: tuple[str, ...] = ()
    """Argv prefix (for kind ``command`` the whole argv template)."""
    extra_args: tuple[str, ...] = ()
    max_concurrent: int = 2
    hosts: tuple[str, ...] = (LOCAL,)
    """Hosts on which its runs may execute."""
    auto_select: bool = True
    """Open to balancing."""
    models: dict[Tier, ModelChoice] = Field(default_factory=dict)
    prices: dict[str, Price] = Field(default_factory=dict)
    """Prices by model, for an agent that does not report its cost."""
    budget: AgentBudget = AgentBudget()
    """Daily budget."""
    default_tier: Tier = Tier.BALANCED
    fallback_model: str | None = None
    """The model for a further attempt after the regular one was overloaded or unavailable."""
    env: dict[str, str] = Field(default_factory=dict)
    """Additional variables with their values."""
    pass_env: tuple[str, ...] = ()
    """Names of variables passed through from the daemon's environment."""
    mcp: AgentMcp = AgentMcp()
    background: bool = False
    """Whether runs may leave work in the background and wake themselves up, unless the task specifies it."""
    reads_task: bool = True
    """Whether its behaviour depends on the task's text, whose risk is then assessed."""
    script: str | None = None
    """Kind ``simulated`` only: the behaviour used when a prompt gives none."""
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
    meant = [agent.reads_task for agent in agents if agent_type in (agent.name, agent.kind)]
    return any(meant) if meant else info_of(agent_type).reads_task(())


def asks_no_model(agent_type: str | None, agents: Iterable[AgentSpec]) -> bool:
    """Return whether a task's ``agent.type`` refers only to agents that do what they are configured to do, whatever the
    text says.

    agents: the existing ones; a type that matches none of them may be a kind.
    """
    if agent_type is None:
        return False
    meant = {agent.kind for agent in agents if agent_type in (agent.name, agent.kind)}
    return (meant or {agent_type}) <= set(BY_NAME_KINDS)


class AgentHealth(BaseModel, frozen=True):
    """What checking the agent's program found. problem: why it cannot run, with the remedy; None if it can."""

    installed: bool
    program: str | None = None
    version: str | None = None
    problem: str | None = None
