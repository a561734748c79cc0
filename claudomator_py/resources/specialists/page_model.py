"""Models of the pages of specialists: the list, search results, and a single card."""

from collections.abc import Sequence

from claudomator_py.api.page.formatting import filter_url, short_line
from claudomator_py.domain.card import Authentication, Card, Scheme, Source, Transport, Visibility
from claudomator_py.domain.requests import TaskFilter
from claudomator_py.resources.specialists import FoundSpecialistView, SpecialistView
from claudomator_py.schema.cardfile import card_text
from claudomator_py.values import dataclass

OFFERED = 200
"""Number of specialists that a field suggests; others can be typed."""
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
    """Its description in one line."""
    score: str | None
    """Score in a search; None outside of searches."""
    skill: str | None
    """The best matching skill in a search."""
    meta: tuple[str, ...]
    """Further facts, as text."""
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
    """To whom its cost is attributed, if not to the card's creator."""
    price: str | None


@dataclass(frozen=True, slots=True)
class SpecialistPage:
    """A specialist. tasks_url: the list of its tasks."""

    id: str
    name: str
    url: str
    tasks_url: str
    version: int
    tone: str
    visibility: str
    exists_for: str
    """Who can see it, in a sentence."""
    description: str
    system_prompt: str
    expected_output: str | None
    facts: tuple[tuple[str, str], ...]
    skills: tuple[SkillShown, ...]
    keywords: tuple[str, ...]
    changed: str
    """An instant."""
    changeable: bool
    """Whether the viewer may change it, unless a file defines it."""
    file_path: str | None
    shipped: bool
    grants: tuple[str, ...]
    takes_grants: bool
    works_for: str
    """Whose work it may do, in a sentence."""
    is_admitted: bool
    text: str
    """The whole card, for editing."""
    warnings: tuple[str, ...]
    """Warnings about it, without full stops."""


def url_of(specialist_id: str) -> str:
    """Return the URL of its page. Ids need no quoting."""
    return f"/specialists/{specialist_id}"


def row_of(specialist: SpecialistView) -> SpecialistRow:
    """Return a line of the list."""
    return _row(specialist, None, None)


def search_row(match: FoundSpecialistView) -> SpecialistRow:
    """Return a line of search results."""
    skill = next((item.name for item in match.skills if item.id == match.best_skill_id), None)
    return _row(match.specialist, f"{match.score:.2f}", skill)


def choices_of(specialists: Sequence[SpecialistView]) -> tuple[tuple[str, str], ...]:
    """Return id and name of each, as suggestions for a field."""
    return tuple((specialist.id, specialist.name) for specialist in specialists)


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
                id=skill.id,
                name=skill.name,
                description=skill.description,
                tags=skill.tags,
                examples=skill.examples,
                creator=skill.creator,
                price=(skill.pricing.text or None) if skill.pricing is not None else None,
            )
            for skill in card.skills
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
        return "It does only its creator's work."
    if specialist.admitted_by is not None:
        return f"It may do the work of everyone who can see it: {specialist.admitted_by} admitted this card."
    whose = specialist.organisation or "this daemon's own side"
    return f"It does only work of {whose}, and its card adds no permissions to a task: nobody has admitted it."


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
        meta=tuple(line for line in meta if line),
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
    rows = [
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
    return tuple((name, value) for name, value in rows if value)


def _listed(words: Sequence[str]) -> str | None:
    return ", ".join(words) or None


def _authentication(how: Authentication) -> str | None:
    """Return the scheme and the variable that holds the secret; None if there is none."""
    if how.scheme is Scheme.NONE:
        return None
    return how.scheme.value if how.secret is None else f"{how.scheme.value}, from ${how.secret}"
