"""A specialist's card: a role that tasks are given to, modelled on an A2A agent card."""

import hashlib
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, Field, field_validator

from claudomator_py.domain.agent import Price, Tier
from claudomator_py.domain.errors import Problem, shown
from claudomator_py.domain.fields import (
    Count,
    Flag,
    Line,
    LineList,
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
from claudomator_py.domain.remote import Authentication, Protocol, Remote, Scheme, http_url
from claudomator_py.domain.report import cost_usd
from claudomator_py.domain.routing import Risk
from claudomator_py.domain.task import PermissionMode, Permissions
from claudomator_py.domain.wording import Coded, WordedCode, WordedValue, refuse_unknown
from claudomator_py.texts import json_hash
from claudomator_py.values import regex

__all__ = [
    "MAX_PROFILE_LENGTH", "Authentication", "Card", "CardWarning", "CardWarningCode", "Currency", "Pricing",
    "Registration", "Scheme", "Skill", "Transport", "Visibility", "card_warning",
]  # fmt: skip

MAX_PROFILE_LENGTH: Final = 20_000
"""Maximum characters of a description."""
MAX_SYSTEM_PROMPT_LENGTH: Final = 200_000
"""Maximum characters of a system prompt."""

NOT_APPLIED: Final = "agent_file"
"""The key in ``Card.extra`` that holds fields of an agent file which are not applied."""

SHIPPER: Final = "claudomator"
"""The creator of the cards that come with Claudomator."""

RESERVED_IDS: Final = frozenset({"clarify", "default", "human_review", "reject", "search"})
"""Labels of routes, and a path of the API."""

_MAX_READABLE: Final = 64

SUCCESSOR_FIELDS: Final = {"fallback": ("clarify", "default", "human_review"), "escalation": ("human_review",)}
"""Fields that say where a task goes after a specialist, and their possible values other than specialists."""

REMOTE_AGENT: Final = regex(r"(?<![\w.-])(hub|http):([a-z0-9](?:[a-z0-9._-]*[a-z0-9])?)")
"""The agent name of a remote specialist, as it appears in text: transport and id."""

Source = Literal["shipped", "file", "api", "hub"]
"""How a card came into the registry."""


class Visibility(StrEnum):
    """Who can see a card. For anybody else it is not listed, found, counted or routed to."""

    PUBLIC = "public"
    """Everybody."""
    SHARED = "shared"
    """Its organisation, and principals with a grant."""
    PRIVATE = "private"
    """Only its creator."""


class Transport(StrEnum):
    """How a specialist is reached, by the scheme of its ``url``."""

    LOCAL = "local"
    """No url: an agent of this daemon does the work, under the card's system prompt."""
    HTTP = "http"
    """``https://``, or ``http://`` to this machine: A2A, or a plain POST."""
    HUB = "hub"
    """``ws-agent://ID``: an agent that has connected to the hub."""


class Currency(StrEnum):
    """Currency of a price."""

    USD = "USD"


class Pricing(Strict):
    """What work costs, for budgets: per task, and per million tokens if the specialist reports them."""

    per_task: Number = Field(0.0, ge=0, le=1_000_000, description="Price of a task.")
    input: Number = Field(0.0, ge=0, le=1_000_000, description="Price of a million input tokens.")
    output: Number = Field(0.0, ge=0, le=1_000_000, description="Price of a million output tokens.")
    currency: Currency = Field(Currency.USD, description="Currency of the prices.")

    @property
    def text(self) -> str:
        """The prices that are not zero, in words; empty if everything is free."""
        parts = (
            (self.per_task, "a task"),
            (self.input, "a million input tokens"),
            (self.output, "a million output tokens"),
        )
        return ", ".join(f"{price:g} {self.currency.value} {what}" for price, what in parts if price)

    def usd(self, outcome: Outcome, *, is_done: bool) -> float:
        """Return the price of a run in US dollars: for its tokens, unless its agent has reported their cost, and for
        the task if it ``is_done``."""
        tokens = None
        if not outcome.cost_usd:
            tokens = cost_usd(outcome.tokens, Price(input=self.input, output=self.output))
        return round((self.per_task if is_done else 0.0) + (tokens or 0.0), 6)


Examples = Annotated[tuple[Annotated[Prose, Field(max_length=2_000)], ...], Field(max_length=200), OneOrMore]


class Skill(Strict):
    """One thing that a specialist does. Tasks are compared with skills: give each some examples."""

    id: Line = Field(max_length=100, description="Unique within the card.")
    name: Line = Field(max_length=200, description="What it is called.")
    description: Prose = Field("", max_length=MAX_PROFILE_LENGTH, description="What is done, in a sentence or two.")
    tags: LineList = Field((), description="Words to find it by.")
    examples: Examples = Field((), description="Tasks as somebody would write them. Three or more help most.")
    creator: Line | None = Field(None, description="To whom its cost is attributed. Default: the card's creator.")
    pricing: Pricing | None = Field(None, description="Default: the card's.")


_HUB_URL = regex(r"ws-agent://[^\s@#?]+")


def _url(value: str) -> str:
    # Whatever passes here must be accepted by `transport` and by the client of remote agents: a card that either
    # rejects would stop the routing of all tasks.
    return value if _HUB_URL.fullmatch(value) else http_url(value, "write https://HOST/PATH or ws-agent://AGENT_ID")


def _wake_url(value: str) -> str:
    if _url(value).startswith("ws-agent:"):
        raise refusal("cannot wake anybody: it is an address of the hub", "write https://HOST/PATH")
    return value


def _not_reserved(value: str) -> str:
    if value in RESERVED_IDS:
        raise refusal(f"`{value}` is a word that Claudomator uses itself", "choose another id")
    return value


def _agents(value: tuple[str, ...]) -> tuple[str, ...]:
    remote = next((agent for agent in value if agent.startswith(("hub:", "http:"))), None)
    if remote is not None:
        raise refusal(f"`{shown(remote)}` is a specialist, not an agent", "remove it, or name it as `fallback`")
    return value


_LETTER_WITH_SIGN: Final = regex(r"\w[+#]")


def id_from(name: str) -> str:
    """Return an id for a card that has only this name: its letters and digits, followed by digits derived from the
    whole name if something is lost: characters an id cannot have, such as ``語`` or the signs of ``C#`` and ``C++``. So
    names in any script get distinct ids."""
    base = name_from(name)
    readable = (base or "agent")[:_MAX_READABLE].rstrip("-._")
    lost = any(character.isalnum() and name_from(character) is None for character in name)
    lost = lost or (base is None and bool(name.strip())) or _LETTER_WITH_SIGN.search(name) is not None
    return f"{readable}-{short_hash(name)}" if lost or readable in RESERVED_IDS else readable


def short_hash(text: str) -> str:
    """Return eight hexadecimal digits derived from the text, to tell ids apart."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


ALIASES: Final = {"display_name": "name", "prompt": "system_prompt", "allowed_backends": "allowed_agents"}
"""Keys used in other programs' cards, with our name for each."""


class Card(Strict):
    """A specialist, as its author writes it."""

    id: Annotated[Name, AfterValidator(_not_reserved)] = Field(
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
    keywords: LineList = Field(
        (), description="Specific phrases that point to it, matched as whole words in any case; none of another card."
    )
    skills: Annotated[tuple[Skill, ...], Field(max_length=500)] = Field((), description="What it does.")
    capabilities: LineList = Field((), description="What a task may require of it, such as `gpu` or `production`.")
    allowed_agents: Annotated[LineList, AfterValidator(_agents)] = Field(
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
        """How the specialist is reached."""
        if self.url is None:
            return Transport.LOCAL
        return Transport.HUB if self.url.startswith("ws-agent:") else Transport.HTTP

    def address_problems(self) -> list[Problem]:
        """Return what is wrong with the card's address in combination with its id: agents connect to the hub under the
        id of their card, so a hub address that names another id leads nowhere. Stored cards may have such an
        address."""
        own = f"ws-agent://{self.id}"
        if self.url is None or self.transport is not Transport.HUB or self.url.rstrip("/") == own:
            return []
        message = f"`{shown(self.url)}` names another agent, and whoever connects to the hub does so as `{self.id}`"
        return [Problem(field="url", message=message, remedy=f"write {own}, or give the card the id of that agent")]

    @property
    def document(self) -> dict[str, Any]:
        """The card as JSON, without default values."""
        return self.model_dump(mode="json", exclude_defaults=True)

    @property
    def content_hash(self) -> str:
        """SHA-256 of the canonical JSON: equal for cards that say the same, whichever defaults they spell out."""
        return json_hash(self.document)

    def remote(self) -> Remote:
        """Return how to call the specialist over HTTP. Raises ValueError for a card without such a url."""
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
        """The card with permissions that only restrict a task and grant it nothing."""
        if self.permissions is None:
            return self
        mode = self.permissions.mode if self.permissions.mode is PermissionMode.PLAN else PermissionMode.DEFAULT
        permissions = self.permissions.model_copy(update={"mode": mode, "allowed_tools": ()})
        return self.model_copy(update={"permissions": permissions})

    @property
    def fee_usd(self) -> float | None:
        """The price of a task in US dollars; None if it is free, or depends on the skill or on tokens."""
        prices = {self.pricing, *(skill.pricing for skill in self.skills if skill.pricing is not None)}
        price = next(iter(prices))
        return price.per_task or None if len(prices) == 1 and not (price.input or price.output) else None

    def pricing_of(self, skill_id: str | None) -> Pricing:
        """Return the price of work by that skill; None for no skill in particular."""
        skill = None if skill_id is None else self.skill(skill_id)
        return self.pricing if skill is None or skill.pricing is None else skill.pricing

    @property
    def not_applied(self) -> tuple[str, ...]:
        """Fields of the agent file from which the card was read that are not applied."""
        kept = self.extra.get(NOT_APPLIED)
        return tuple(kept) if isinstance(kept, dict) else ()

    def skill(self, skill_id: str) -> Skill | None:
        """Return the skill with that id; None if there is none."""
        return next((skill for skill in self.skills if skill.id == skill_id), None)


class Registration(BaseModel, frozen=True):
    """A card in the registry."""

    card: Card
    creator: str
    """Id of the principal who registered the card; nobody else can take it over."""
    organisation: str | None = None
    """The organisation that owns it: the card's, otherwise its creator's."""
    source: Source
    """``shipped``: comes with Claudomator; ``file``: from a watched folder; ``api``; ``hub``: from a connected
    agent."""
    file_path: str | None = None
    """The file that it follows."""
    grants: tuple[str, ...] = ()
    """Principals, or ``org:NAME``, that can see a shared card in addition to its organisation."""
    admitted_by: str | None = None
    """The administrator who admitted this version of the card to other people's work; None if nobody has."""
    version: int = 1
    """Increases with each change."""
    content_hash: str = ""
    """Hash of the card."""
    created_ms: int = 0
    """When it was registered, in epoch milliseconds."""
    updated_ms: int = 0
    """When it was last changed, in epoch milliseconds."""


class CardWarningCode(WordedCode):
    """What is odd, with its words: see ``wording.filled``. Part of the API: never rename values."""

    SHARED_KEYWORD = "shared_keyword", "its keyword `{keyword}` is one of {specialist}, too: it points to neither"
    GENERIC_KEYWORD = (
        "generic_keyword",
        "its keyword `{keyword}` is in what {specialists} do, too: choose a longer phrase",
    )
    NEAR_DUPLICATE = (
        "near_duplicate",
        "its skill {skill} is nearly {other} of {specialist}: tasks go to either by chance",
    )
    UNKNOWN_SPECIALIST = "unknown_specialist", "its `{field}` names {specialist}, and there is no such specialist"
    NOT_APPLIED = "not_applied", "its agent file says `{fields}`, which is kept and not applied"
    NOT_REACHED = "not_reached", "it is given no work: over HTTP only cards of the operator are reached"
    NEVER_ALLOWED = "never_allowed", "it allows {tools} in vain, as it forbids the same: remove one of the two"
    CIRCLE = "circle", "its `{field}` leads back to itself, by way of {specialists}"


class CardWarningParams(Coded):
    """The parameters of a code; the code determines which are set. JSON omits the others."""

    keyword: str | None = Field(None, description="The keyword of which it is said.")
    specialist: str | None = Field(None, description="The other specialist.")
    specialists: tuple[str, ...] = Field((), description="The other specialists.")
    skill: str | None = Field(None, description="The skill of this card.")
    other: str | None = Field(None, description="The skill of the other specialist.")
    field: str | None = Field(None, description="The field of the card.")
    fields: tuple[str, ...] = Field((), description="The fields of the file that it was read from.")
    tools: tuple[str, ...] = Field((), description="The tools that the card allows and forbids.")


class CardWarning(WordedValue):
    """Something odd about a card that is registered anyway."""

    code: CardWarningCode
    params: CardWarningParams = Field(default_factory=CardWarningParams)


def card_warning(code: CardWarningCode, **params: Any) -> CardWarning:
    """Return the value. Raises TypeError for a parameter that the code does not have."""
    refuse_unknown(code, params, code.parameters)
    return CardWarning(code=code, params=CardWarningParams(**params))
