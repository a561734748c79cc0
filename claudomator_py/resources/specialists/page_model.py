"""What the pages of specialists show: the list, what a search finds, and one card."""

from collections.abc import Sequence

from claudomator_py.api.page.formatting import filter_url, short_line
from claudomator_py.domain.card import Authentication, Card, Scheme, Source, Transport, Visibility
from claudomator_py.domain.requests import TaskFilter
from claudomator_py.resources.specialists import FoundSpecialistView, SpecialistView
from claudomator_py.schema.cardfile import card_text
from claudomator_py.values import dataclass

OFFERED = 200
"""How many a field names in which one is named; any other can be typed."""
_TONES = {Visibility.PUBLIC: "good", Visibility.SHARED: "busy", Visibility.PRIVATE: "off"}
_SOURCES: dict[Source, str] = {
    "shipped": "comes with Claudomator",
    "file": "file",
    "api": "registered by hand",
    "hub": "connected agent",
}
_REACHED = {Transport.LOCAL: "agents of this daemon", Transport.HTTP: "HTTP", Transport.HUB: "hub"}


@dataclass(frozen=True, slots=True)
class SpecialistRow:
    """A line of the list."""

    id: str
    name: str
    url: str
    tone: str
    visibility: str
    line: str | None
    """Its description in a line."""
    score: str | None
    """How well it matches what was searched for; None: nothing was."""
    skill: str | None
    """Of what was searched for, the skill that matches best."""
    meta: tuple[str, ...]
    """What else there is to say, in words."""
    changed: str
    """An instant."""


@dataclass(frozen=True, slots=True)
class SkillShown:
    """A skill of the card."""

    id: str
    name: str
    description: str
    tags: tuple[str, ...]
    examples: tuple[str, ...]
    creator: str | None
    """To whom its cost is attributed, if that is another than the card's creator."""
    price: str | None


@dataclass(frozen=True, slots=True)
class SpecialistPage:
    """One specialist. tasks_url: where the tasks are listed that are for it."""

    id: str
    name: str
    url: str
    tasks_url: str
    version: int
    tone: str
    visibility: str
    exists_for: str
    """In a sentence."""
    description: str
    system_prompt: str
    expected_output: str | None
    facts: tuple[tuple[str, str], ...]
    skills: tuple[SkillShown, ...]
    keywords: tuple[str, ...]
    changed: str
    """An instant."""
    changeable: bool
    """Whether whoever looks may change it, if it follows no file."""
    file_path: str | None
    shipped: bool
    grants: tuple[str, ...]
    takes_grants: bool
    works_for: str
    """Whose work it may be given, in a sentence."""
    is_admitted: bool
    text: str
    """The whole card, as it is edited."""
    warnings: tuple[str, ...]
    """What is odd about it, without full stops."""


def url_of(specialist_id: str) -> str:
    """Return its page. An id needs no quoting in an address."""
    return f"/specialists/{specialist_id}"


def row_of(specialist: SpecialistView) -> SpecialistRow:
    """Return a line of the list."""
    return _row(specialist, None, None)


def search_row(found: FoundSpecialistView) -> SpecialistRow:
    """Return a line of what a search found."""
    skill = next((one.name for one in found.skills if one.id == found.best_skill_id), None)
    return _row(found.specialist, f"{found.score:.2f}", skill)


def choices_of(specialists: Sequence[SpecialistView]) -> tuple[tuple[str, str], ...]:
    """Return Id and name of each, for a field in which one is named."""
    return tuple((one.id, one.name) for one in specialists)


def page_of(specialist: SpecialistView) -> SpecialistPage:
    """Return the page of one specialist."""
    card = specialist.content
    return SpecialistPage(
        id=specialist.id,
        name=specialist.name,
        url=url_of(specialist.id),
        tasks_url=filter_url("/", TaskFilter(specialist=specialist.id)),
        version=specialist.version,
        tone=_TONES[specialist.visibility],
        visibility=specialist.visibility.value,
        exists_for=_exists_for(specialist),
        description=card.description,
        system_prompt=card.system_prompt,
        expected_output=card.expected_output,
        facts=_facts(specialist, card),
        skills=tuple(
            SkillShown(
                id=one.id,
                name=one.name,
                description=one.description,
                tags=one.tags,
                examples=one.examples,
                creator=one.creator,
                price=(one.pricing.text or None) if one.pricing is not None else None,
            )
            for one in card.skills
        ),
        keywords=card.keywords,
        changed=specialist.updated_at,
        changeable=specialist.changeable,
        file_path=specialist.file_path,
        shipped=specialist.source == "shipped",
        grants=specialist.grants,
        takes_grants=specialist.visibility is Visibility.SHARED,
        works_for=_works_for(specialist),
        is_admitted=specialist.admitted_by is not None,
        text=card_text(specialist.card),
        warnings=tuple(odd.text for odd in specialist.warnings),
    )


def _works_for(specialist: SpecialistView) -> str:
    if specialist.visibility is Visibility.PRIVATE:
        return "It does the work of its creator alone."
    if specialist.admitted_by is not None:
        return f"It may be given the work of all who see it: {specialist.admitted_by} admitted its card as it is."
    whose = specialist.organisation or "this daemon's own side"
    return f"It does the work of {whose} alone, and no permission of its card extends a task's: nobody has admitted it."


def _row(specialist: SpecialistView, score: str | None, skill: str | None) -> SpecialistRow:
    skills = len(specialist.content.skills)
    meta = (
        specialist.id if specialist.id != specialist.name else "",
        "1 skill" if skills == 1 else f"{skills} skills",
        specialist.creator if specialist.source != "shipped" else "",
        specialist.organisation or "",
        _SOURCES[specialist.source],
        "" if specialist.transport is Transport.LOCAL else _REACHED[specialist.transport],
    )
    return SpecialistRow(
        id=specialist.id,
        name=specialist.name,
        url=url_of(specialist.id),
        tone=_TONES[specialist.visibility],
        visibility=specialist.visibility.value,
        line=short_line(specialist.description),
        score=score,
        skill=skill,
        meta=tuple(one for one in meta if one),
        changed=specialist.updated_at,
    )


def _exists_for(specialist: SpecialistView) -> str:
    whose = specialist.organisation
    match specialist.visibility:
        case Visibility.PUBLIC:
            return "Everyone can see and use it."
        case Visibility.PRIVATE:
            return f"Only its creator, {specialist.creator}, can see and use it."
        case _ if whose is None:
            return "Everyone without an organisation, and everyone with a grant, can see and use it."
    return f"Everyone in {whose}, and everyone with a grant, can see and use it."


def _facts(specialist: SpecialistView, card: Card) -> tuple[tuple[str, str], ...]:
    allowed = card.permissions
    found = [
        ("Version", f"{card.version} (change {specialist.version})"),
        ("Agents", _listed(card.allowed_agents) or "all"),
        ("Tier", card.default_tier.value if card.default_tier is not None else None),
        ("Permissions", allowed.mode.value if allowed is not None else None),
        ("Tools", (_listed(allowed.tools) or "none") if allowed is not None and allowed.tools is not None else None),
        ("Allowed tools", _listed(allowed.allowed_tools) if allowed is not None else None),
        ("Denied tools", _listed(allowed.disallowed_tools) if allowed is not None else None),
        ("Risk", f"up to {card.risk_ceiling.value}"),
        ("Capabilities", _listed(card.capabilities)),
        ("Reached by", card.url or _REACHED[Transport.LOCAL]),
        ("Woken by", card.wake_url),
        ("Authentication", _authentication(card.authentication)),
        ("Price", card.pricing.text),
        ("Threshold", f"{card.threshold:.2f}" if card.threshold is not None else None),
        ("Fallback", card.fallback),
        ("Escalation", card.escalation),
        ("Owner", card.owner),
        ("Creator", specialist.creator),
        ("Organisation", specialist.organisation),
        ("Source", specialist.file_path or _SOURCES[specialist.source]),
    ]
    return tuple((name, value) for name, value in found if value)


def _listed(words: Sequence[str]) -> str | None:
    return ", ".join(words) or None


def _authentication(how: Authentication) -> str | None:
    """The scheme, and which variable holds the secret; None: there is none."""
    if how.scheme is Scheme.NONE:
        return None
    return how.scheme.value if how.secret is None else f"{how.scheme.value}, from ${how.secret}"
