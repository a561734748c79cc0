"""What everybody may know of a kind of agent, without knowing how it is started or read."""

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from claudomator_py.values import dataclass


class Tier(StrEnum):
    """How strong a model a task gets; each agent maps a tier to a model of its own."""

    FAST = "fast"
    BALANCED = "balanced"
    POWERFUL = "powerful"


TIERS = (Tier.FAST, Tier.BALANCED, Tier.POWERFUL)
"""All tiers, weakest first."""


class ModelChoice(BaseModel):
    """A model by the name its CLI takes, and the reasoning effort where the CLI has one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str
    effort: str | None = None


class Reports(StrEnum):
    """What a program says of what a run has used."""

    NOTHING = "nothing"
    TOKENS = "tokens"
    DOLLARS = "dollars"
    """And tokens."""
    DOLLARS_ALONE = "dollars_alone"
    """And no tokens."""


@dataclass(frozen=True, slots=True)
class LoginCaveat:
    """What may be wrong with a login that is there. settled_by: a variable that, where it is set, says that it is not.
    remedy: None: it need not be done anything about."""

    text: str
    settled_by: str
    remedy: str | None = None


def shared_login(variable: str) -> LoginCaveat:
    """Return the caveat of a login in the user's own folder. variable: moves that folder."""
    return LoginCaveat(f"two programs that refresh one login lose it: {variable} gives the daemon its own", variable)


@dataclass(frozen=True, slots=True)
class LoginFile:
    """Where a program keeps its login: a file below a folder that a variable names, or below one in the home."""

    file: str
    folder: str
    """Below the home, where the variable is not set."""
    variable: str = ""
    """Empty: no variable moves the folder."""
    setting: tuple[str, ...] = ()
    """Keys that lead to the chosen way of logging in, in a JSON document without a key. Empty: the file is the
    login."""
    caveat: LoginCaveat | None = None


@dataclass(frozen=True, slots=True)
class Login:
    """What a program can log in by."""

    variables: tuple[str, ...]
    """With a key or a token, any of which will do."""
    files: tuple[LoginFile, ...]
    command: str
    """How a person logs in."""


def _always(_: tuple[str, ...]) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class NamedAgent:
    """An agent that is known by name, of a kind that takes many programs."""

    title: str
    command: tuple[str, ...]
    login: str = ""
    """How a person logs in; empty: that is not known."""


@dataclass(frozen=True, slots=True)
class KindInfo:
    """One kind of agent. The defaults are those of one that nothing is known of."""

    name: str
    """As the configuration has it."""
    command: tuple[str, ...] = ()
    """The command when none is configured; empty: there is none by default."""
    named: Callable[[], Mapping[str, NamedAgent]] = dict
    """The agents of the kind that need no command where they are configured by these names."""
    models: Mapping[Tier, ModelChoice] = field(default_factory=dict)
    """By tier, when none are configured; empty: the program's own choice."""
    provider: str | None = None
    """Whose models they are, as OpenTelemetry names providers; None: anybody's."""
    login: Login | None = None
    """None: it needs none, or nothing can be said of it."""
    has_account: bool = True
    """Whether a service with quotas stands behind it; each agent of any other kind has its limits for itself."""
    asks_model: bool = True
    """Whether a model works on the task; if not, the kind is open to balancing only where the configuration says so."""
    reads_task: Callable[[tuple[str, ...]], bool] = _always
    """From argv to whether what it does depends on a task's text, where the configuration does not say."""
    remote: bool = False
    """Whether its work is done elsewhere, so that a run needs no processor here, but waits."""
    configured: bool = True
    """Whether the configuration can have agents of the kind; those of any other come from cards."""
    reports: Reports = Reports.TOKENS
    reports_windows: bool = False
    """Whether it says which share of its account's windows is used up."""
    mcp: bool = False
    """Whether its CLI can be given an MCP server for one run, and is given Claudomator's."""
    mcp_alone: bool = False
    """Whether it can be given that one and none of the user's own."""
    fences: bool = False
    """Whether its CLI can be kept within a reach, see ``acts.reach``."""
    background: bool = False
    """Whether its CLI can go on by itself after a turn, and be kept from that."""
    permission_variables: Mapping[str, str | None] = field(default_factory=dict)
    """Variables of a task by which its CLI takes permissions, with the one value that counts; None: any does."""
    plain_output: bool = False
    """Whether its output is made for people as it is, rather than of events."""
    own_account: str | None = None
    """What a login without a label is called, of one of many programs with a login each; None: as the agent is."""
    by_command: "Callable[[tuple[str, ...]], KindInfo] | None" = None
    """From an agent's command to what is known of that one, of a kind that takes many programs; None: no more is."""

    def usual_command(self, name: str) -> tuple[str, ...]:
        """Return the command of an agent of the kind with that name, where none is configured; empty: there is none."""
        if self.command:
            return self.command
        agent = self.named().get(name)
        return agent.command if agent is not None else ()

    def of(self, command: tuple[str, ...]) -> "KindInfo":
        """Return what is known of an agent of the kind with that command."""
        return self if self.by_command is None else self.by_command(command)
