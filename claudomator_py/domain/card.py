"""A specialist's card: a role that tasks are given to, in the manner of an A2A agent card."""

import hashlib
import json
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from claudomator_py.domain.agent import Price, Tier
from claudomator_py.domain.errors import Problem, shown
from claudomator_py.domain.fields import (
    Count,
    Distinct,
    Flag,
    Line,
    Name,
    Number,
    OneOrMore,
    Prose,
    Strict,
    distinct,
    name_from,
    refusal,
)
from claudomator_py.domain.outcome import Outcome
from claudomator_py.domain.pricing import cost_usd
from claudomator_py.domain.remote import Authentication, Protocol, Remote, Scheme, http_url
from claudomator_py.domain.routing import Risk
from claudomator_py.domain.task import PermissionMode, Permissions
from claudomator_py.values import regex

__all__ = [
    "MAX_PROFILE_LENGTH",
    "Authentication",
    "Card",
    "Currency",
    "Pricing",
    "Registration",
    "Scheme",
    "Skill",
    "Transport",
    "Visibility",
]

MAX_PROFILE_LENGTH: Final = 20_000
"""Characters of a description."""
MAX_SYSTEM_PROMPT_LENGTH: Final = 200_000
"""Characters."""

NOT_APPLIED: Final = "agent_file"
"""Under which ``Card.extra`` has the fields of an agent file that nothing here follows."""

SHIPPER: Final = "claudomator"
"""The creator of the cards that come with Claudomator."""

TAKEN_IDS: Final = frozenset({"clarify", "default", "human_review", "reject", "search"})
"""Labels of routes, and a path of the API."""

_MAX_READABLE: Final = 64

WAYS_ON: Final = {"fallback": ("clarify", "default", "human_review"), "escalation": ("human_review",)}
"""Fields that say where a task goes from a specialist, and what each may be besides a specialist."""

REMOTE_AGENT: Final = regex(r"(?<![\w.-])(hub|http):([a-z0-9](?:[a-z0-9._-]*[a-z0-9])?)")
"""The name of the agent that a remote specialist is, wherever it is written: its transport, and its id."""

Source = Literal["shipped", "file", "api", "hub"]
"""How a card came into the registry."""


class Visibility(StrEnum):
    """For whom a card exists. Where it does not, it is neither listed, found, counted nor routed to."""

    PUBLIC = "public"
    """Everybody."""
    SHARED = "shared"
    """Its organisation, and whoever has a grant."""
    PRIVATE = "private"
    """Its creator alone."""


class Transport(StrEnum):
    """How a specialist is reached, by the scheme of its ``url``."""

    LOCAL = "local"
    """There is no url: an agent of this daemon does the work, under the card's system prompt."""
    HTTP = "http"
    """``https://``, or ``http://`` to this machine: A2A, or a plain POST."""
    HUB = "hub"
    """``ws-agent://ID``: an agent that has connected to the hub."""


class Currency(StrEnum):
    """What a price is in."""

    USD = "USD"


class Pricing(Strict):
    """What a piece of work costs, for budgets: per task, and per million tokens where the specialist reports them."""

    per_task: Number = Field(0.0, ge=0, le=1_000_000, description="Price of a task.")
    input: Number = Field(0.0, ge=0, le=1_000_000, description="Price of a million input tokens.")
    output: Number = Field(0.0, ge=0, le=1_000_000, description="Price of a million output tokens.")
    currency: Currency = Field(Currency.USD, description="Currency of the prices.")

    @property
    def text(self) -> str:
        """What is not free, in words; empty: all of it is."""
        parts = (
            (self.per_task, "a task"),
            (self.input, "a million input tokens"),
            (self.output, "a million output tokens"),
        )
        return ", ".join(f"{price:g} {self.currency.value} {what}" for price, what in parts if price)

    def usd(self, outcome: Outcome, *, is_done: bool) -> float:
        """Return what is asked for a run, in US dollars: for its tokens, where its agent has not told what they cost,
        and for the task where it ``is_done``."""
        tokens = None
        if not outcome.cost_usd:
            tokens = cost_usd(outcome.tokens, Price(input=self.input, output=self.output))
        return round((self.per_task if is_done else 0.0) + (tokens or 0.0), 6)


Tags = Annotated[tuple[Line, ...], Field(max_length=100), OneOrMore, Distinct]
Examples = Annotated[tuple[Annotated[Prose, Field(max_length=2_000)], ...], Field(max_length=200), OneOrMore]


class Skill(Strict):
    """One thing that a specialist does. Tasks are compared with skills: give each some examples."""

    id: Line = Field(max_length=100, description="Unique within the card.")
    name: Line = Field(max_length=200, description="What it is called.")
    description: Prose = Field("", max_length=MAX_PROFILE_LENGTH, description="What is done, in a sentence or two.")
    tags: Tags = Field((), description="Words to find it by.")
    examples: Examples = Field((), description="Tasks as somebody would write them. Three or more help most.")
    creator: Line | None = Field(None, description="To whom its cost is attributed. Default: the card's creator.")
    pricing: Pricing | None = Field(None, description="Default: the card's.")


_AT_HUB = regex(r"ws-agent://[^\s@#?]+")


def _url(value: str) -> str:
    # What passes here is what `transport` and the client of remote agents take: a card that neither takes would stop
    # the routing of all tasks.
    return value if _AT_HUB.fullmatch(value) else http_url(value, "write https://HOST/PATH or ws-agent://AGENT_ID")


def _wake_url(value: str) -> str:
    if _url(value).startswith("ws-agent:"):
        raise refusal("cannot wake anybody: it is an address of the hub", "write https://HOST/PATH")
    return value


def _free(value: str) -> str:
    if value in TAKEN_IDS:
        raise refusal(f"`{value}` is a word that Claudomator uses itself", "choose another id")
    return value


def _agents(value: tuple[str, ...]) -> tuple[str, ...]:
    remote = next((one for one in value if one.startswith(("hub:", "http:"))), None)
    if remote is not None:
        raise refusal(f"`{shown(remote)}` is a specialist, not an agent", "remove it, or name it as `fallback`")
    return value


_SIGNED: Final = regex(r"\w[+#]")


def id_from(name: str) -> str:
    """Return the id of a card that has only this name: its letters and digits, and where an id cannot have one of
    them, such as ``語`` and the signs of ``C#`` and ``C++``, or has none of its signs at all, digits that follow from
    the whole name. So names in any script have ids of their own."""
    found = name_from(name)
    readable = (found or "agent")[:_MAX_READABLE].rstrip("-._")
    lost = any(character.isalnum() and name_from(character) is None for character in name)
    lost = lost or (found is None and bool(name.strip())) or _SIGNED.search(name) is not None
    return f"{readable}-{digits_of(name)}" if lost or readable in TAKEN_IDS else readable


def digits_of(text: str) -> str:
    """Return eight hexadecimal digits that follow from the text, to tell ids apart."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


ALIASES: Final = {"display_name": "name", "prompt": "system_prompt", "allowed_backends": "allowed_agents"}
"""Keys of other programs' cards, and ours for the same."""


class Card(Strict):
    """A specialist, as its author writes it."""

    id: Annotated[Name, AfterValidator(_free)] = Field(
        description="How tasks name it: lower-case letters, digits, `-`, `_` and `.`."
    )
    name: Line | None = Field(None, max_length=200, description="Name shown to people. Default: `id`.")
    description: Prose = Field(
        min_length=1, pattern=r"\S", max_length=MAX_PROFILE_LENGTH, description="What it does, and what it is not for."
    )
    version: Line = Field("1.0.0", max_length=100, description="Version of the card, for people.")
    system_prompt: Prose = Field(
        "",
        max_length=MAX_SYSTEM_PROMPT_LENGTH,
        description="Instructions that every task of this specialist starts with.",
    )
    keywords: Tags = Field(
        (), description="Specific phrases that point to it, matched as whole words in any case; none of another card."
    )
    skills: Annotated[tuple[Skill, ...], Field(max_length=500)] = Field((), description="What it does.")
    capabilities: Tags = Field((), description="What a task may require of it, such as `gpu` or `production`.")
    allowed_agents: Annotated[Tags, AfterValidator(_agents)] = Field(
        (), description="Agents, or kinds, that may do its tasks. Default: all."
    )
    default_tier: Tier | None = Field(
        None, description="Model strength of its tasks where neither the task nor the classifier says."
    )
    permissions: Permissions | None = Field(
        None, description="What the agent may do. A task can restrict it, not extend it. Default: the task's."
    )
    restricts: Flag = Field(
        False,
        description="Whether what `permissions` forbid holds for tasks that address the specialist by `@`, too. It "
        "always holds where a person has named it, and never for a task that was only matched: a role adds to what a "
        "task asks for, and forbids nothing of it.",
    )
    risk_ceiling: Risk = Field(Risk.HIGH, description="The most risk a task may carry that is routed to it.")
    visibility: Visibility = Field(Visibility.PUBLIC, description="Who can see and use it.")
    organisation: Line | None = Field(
        None, description="Organisation that it belongs to. Default: that of its creator."
    )
    url: Annotated[Line, AfterValidator(_url)] | None = Field(
        None, description="Where a remote specialist is reached. Default: an agent of this daemon does the work."
    )
    protocol: Protocol = Field(
        Protocol.AUTO, description="What it speaks at `url`. Default: what the A2A card there says."
    )
    wake_url: Annotated[Line, AfterValidator(_wake_url)] | None = Field(
        None, description="URL that starts a hub specialist that is not connected."
    )
    authentication: Authentication = Field(Authentication(), description="How to authenticate with `url`.")
    deduplicates: Flag = Field(
        False, description="Whether it handles a message that is sent again under the same id only once."
    )
    max_concurrent: Count = Field(
        2, ge=1, le=1_000, description="Maximum number of concurrent tasks of a remote specialist."
    )
    pricing: Pricing = Field(Pricing(), description="What its work costs.")
    owner: Line | None = Field(None, description="Who answers for this route. Default: its creator.")
    expected_output: Prose | None = Field(
        None, max_length=MAX_PROFILE_LENGTH, description="What its tasks hand back, where the task does not say."
    )
    threshold: Number | None = Field(
        None,
        ge=0,
        le=1,
        description="Minimum score for a task to be routed to it. Default: the threshold of the encoder.",
    )
    lead: Number = Field(
        0.0,
        ge=0,
        le=5,
        description="How far ahead of the next specialist its score has to be for a task to be routed to it, as a "
        "share of the threshold. A role that has much in common with others is given what is clearly its own, and the "
        "default specialist the rest. Only with `routing.on_ambiguity: default`.",
    )
    fallback: Line | None = Field(
        None,
        description="Where a task goes at which it has failed twice: to another specialist, to the `default` one, to a "
        "person for `human_review`, or to one who is asked to `clarify` it.",
    )
    escalation: Line | None = Field(
        None, description="Whom its agent is told to hand a task to that it cannot do: a specialist, or `human_review`."
    )
    extra: dict[str, Any] = Field({}, description="The `x-*` keys, and what an imported card says beyond this.")

    @field_validator("skills")
    @classmethod
    def _with_ids_of_their_own(cls, value: tuple[Skill, ...]) -> tuple[Skill, ...]:
        distinct(tuple(skill.id for skill in value))
        return value

    @property
    def title(self) -> str:
        """The name shown to people."""
        return self.name or self.id

    @property
    def transport(self) -> Transport:
        """How it is reached."""
        if self.url is None:
            return Transport.LOCAL
        return Transport.HUB if self.url.startswith("ws-agent:") else Transport.HTTP

    def address_problems(self) -> list[Problem]:
        """Return what is wrong with its address, seen together with its id: agents connect to the hub under the id of
        their card, so an address there that names another id leads to nobody. A stored card may have one."""
        own = f"ws-agent://{self.id}"
        if self.url is None or self.transport is not Transport.HUB or self.url.rstrip("/") == own:
            return []
        message = f"`{shown(self.url)}` names another agent, and whoever connects to the hub does so as `{self.id}`"
        return [Problem(field="url", message=message, remedy=f"write {own}, or give the card the id of that agent")]

    @property
    def document(self) -> dict[str, Any]:
        """The card as JSON, without what is only a default."""
        return self.model_dump(mode="json", exclude_defaults=True)

    @property
    def content_hash(self) -> str:
        """SHA-256 of its canonical JSON: the same for cards that say the same, whichever defaults they write down."""
        canonical = json.dumps(self.document, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def remote(self) -> Remote:
        """Return how it is asked over HTTP. Raises ValueError for a card that has no such url."""
        if self.url is None or self.transport is not Transport.HTTP:
            raise ValueError(f"{self.id} is not reached over HTTP")
        return Remote(
            url=self.url,
            protocol=self.protocol,
            authentication=self.authentication,
            deduplicates=self.deduplicates,
        )

    @property
    def restricting(self) -> "Card":
        """The card with permissions that take something from a task, and give it nothing."""
        if self.permissions is None:
            return self
        mode = self.permissions.mode if self.permissions.mode is PermissionMode.PLAN else PermissionMode.DEFAULT
        permissions = self.permissions.model_copy(update={"mode": mode, "allowed_tools": ()})
        return self.model_copy(update={"permissions": permissions})

    def pricing_of(self, skill_id: str | None) -> Pricing:
        """Return the price of work by that skill; None: by no skill in particular."""
        skill = None if skill_id is None else self.skill(skill_id)
        return self.pricing if skill is None or skill.pricing is None else skill.pricing

    @property
    def not_applied(self) -> tuple[str, ...]:
        """Fields of the agent file that it was read from, which nothing here follows."""
        kept = self.extra.get(NOT_APPLIED)
        return tuple(kept) if isinstance(kept, dict) else ()

    def skill(self, skill_id: str) -> Skill | None:
        """Return the skill of that id; None: it has none."""
        return next((skill for skill in self.skills if skill.id == skill_id), None)


class Registration(BaseModel):
    """A card in the registry."""

    model_config = ConfigDict(frozen=True)

    card: Card
    creator: str
    """Id of the principal who registered it; nobody else takes it over."""
    organisation: str | None = None
    """Whose it is: the card's, or else its creator's."""
    source: Source
    """``shipped``: it comes with Claudomator; ``file``: of a watched folder; ``api``; ``hub``: of a connected agent."""
    file_path: str | None = None
    """The file that it follows."""
    grants: tuple[str, ...] = ()
    """Principals, or ``org:NAME``, for whom a shared card exists beside its organisation."""
    admitted_by: str | None = None
    """The administrator of the daemon who admitted the card as it is to the work of others; None: nobody has."""
    version: int = 1
    """Rises with each change."""
    content_hash: str = ""
    """Of the card."""
    created_ms: int = 0
    """In epoch milliseconds."""
    updated_ms: int = 0
    """See ``created_ms``."""
