"""Public facts about a kind of agent, independent of how it is started or read."""

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import StrEnum

from pydantic import BaseModel

from claudomator_py.values import dataclass


class Tier(StrEnum):
    """How strong a model a task gets; each agent maps tiers to models of its own."""

    FAST = "fast"
    BALANCED = "balanced"
    POWERFUL = "powerful"


TIERS = (Tier.FAST, Tier.BALANCED, Tier.POWERFUL)
"""All tiers, weakest first."""


class ModelChoice(BaseModel, frozen=True, extra="forbid"):
    """A model, by the name its CLI takes, and the reasoning effort if the CLI has that setting."""

    model: str
    effort: str | None = None


class UsageReporting(StrEnum):
    """What a program reports about a run's usage."""

    NOTHING = "nothing"
    TOKENS = "tokens"
    DOLLARS = "dollars"
    """Dollars and tokens."""
    DOLLARS_ALONE = "dollars_alone"
    """Dollars but no tokens."""


@dataclass(frozen=True, slots=True)
class LoginCaveat:
    """What may be wrong with an existing login. settled_by: a variable which, if set, rules this out. remedy: None if
    nothing needs to be done."""

    text: str
    settled_by: str
    remedy: str | None = None


def shared_login(variable: str) -> LoginCaveat:
    """Return the caveat for a login in the user's own folder. variable: moves that folder."""
    return LoginCaveat(f"two programs that refresh one login lose it: {variable} gives the daemon its own", variable)


@dataclass(frozen=True, slots=True)
class LoginFile:
    """Where a program keeps its login: a file in a folder named by a variable, or otherwise in one below the home."""

    file: str
    folder: str
    """Folder below the home, if the variable is not set."""
    variable: str = ""
    """Variable that moves the folder; empty if there is none."""
    setting: tuple[str, ...] = ()
    """Path of keys to the chosen login method in a JSON document that contains no key. Empty if the file is the
    login."""
    caveat: LoginCaveat | None = None


@dataclass(frozen=True, slots=True)
class Login:
    """Ways in which a program can log in."""

    variables: tuple[str, ...]
    """Variables that hold a key or a token; any one is enough."""
    files: tuple[LoginFile, ...]
    command: str
    """The command with which a person logs in."""


@dataclass(frozen=True, slots=True)
class CommandFiles:
    """Files in which a program looks for a command or skill that a prompt may begin with, as in ``/review-pr 12``."""

    folder: str
    """Folder below the working directory and the home."""
    patterns: tuple[str, ...]
    """Paths in it, with ``{}`` for the command's name."""
    variable: str = ""
    """Variable that moves the home's folder; empty if there is none."""
    moved_folder: str = ""
    """Folder below that of the variable, if it names the folder's parent."""
    home_folder: str = ""
    """Folder below the home, if it has another path there."""
    separator: str = ":"
    """What stands in a command's name between folders; empty: it does not look in folders."""
    looks_above: bool = False
    """Whether it looks in the folders above the working directory too, up to the top of the repository."""
    shell_marks: tuple[str, ...] = ()
    """Strings with which such a file has a shell run before a model is asked, and so outside any fence."""


def _always(_: tuple[str, ...]) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class NamedAgent:
    """An agent known by name, of a kind that covers many programs."""

    title: str
    command: tuple[str, ...]
    login: str = ""
    """How a person logs in; empty if unknown."""


@dataclass(frozen=True, slots=True)
class KindInfo:
    """One kind of agent. The defaults are those of an unknown kind."""

    name: str
    """Name in the configuration."""
    command: tuple[str, ...] = ()
    """Default command; empty if there is none."""
    named: Callable[[], Mapping[str, NamedAgent]] = dict
    """The agents of the kind that need no command when configured under these names."""
    models: Mapping[Tier, ModelChoice] = field(default_factory=dict)
    """Default models by tier; empty for the program's own choice."""
    provider: str | None = None
    """The provider of the models, as OpenTelemetry names providers; None if any."""
    login: Login | None = None
    """None if it needs none or nothing is known about it."""
    has_account: bool = True
    """True if a service with quotas stands behind it; each agent of other kinds has its own limits."""
    asks_model: bool = True
    """True if a model works on the task; otherwise the kind is open to balancing only if the configuration says so."""
    reads_task: Callable[[tuple[str, ...]], bool] = _always
    """From argv, returns whether the behaviour depends on a task's text, unless the configuration specifies it."""
    remote: bool = False
    """True if the work is done elsewhere, so that a run needs no processor here and only waits."""
    configured: bool = True
    """True if the configuration can contain agents of the kind; those of other kinds come from cards."""
    reports: UsageReporting = UsageReporting.TOKENS
    reports_windows: bool = False
    """True if it reports which share of its account's windows is used up."""
    mcp: bool = False
    """True if its CLI can be given an MCP server for one run, and gets Claudomator's."""
    mcp_alone: bool = False
    """True if it can be given that server and none of the user's own."""
    fences: bool = False
    """True if its CLI can be confined to a reach; see ``acts.Reach``."""
    background: bool = False
    """True if its CLI can continue by itself after a turn, and can be kept from that."""
    permission_variables: Mapping[str, str | None] = field(default_factory=dict)
    """Task variables through which its CLI takes permissions, with the one relevant value; None if any value is."""
    plain_output: bool = False
    """True if its output is plain text for people rather than events."""
    commands: tuple[CommandFiles, ...] = ()
    """Where it looks for commands that a prompt may begin with; empty if it expands none."""
    own_commands: frozenset[str] = frozenset()
    """Names that mean a command of its own even if there is such a file."""
    own_account: str | None = None
    """Name of a login without a label, for one of many programs that each have a login; None for the agent's own
    name."""
    by_command: "Callable[[tuple[str, ...]], KindInfo] | None" = None
    """For a kind that covers many programs, returns the description for an agent's command; None if there is no
    more."""

    def usual_command(self, name: str) -> tuple[str, ...]:
        """Return the default command of an agent of the kind with that name; empty if there is none."""
        if self.command:
            return self.command
        agent = self.named().get(name)
        return agent.command if agent is not None else ()

    def of(self, command: tuple[str, ...]) -> "KindInfo":
        """Return the description of an agent of the kind with that command."""
        return self if self.by_command is None else self.by_command(command)
