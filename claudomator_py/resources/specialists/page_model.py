"""Models of the pages of specialists: the list, search results, and a single card."""

from collections.abc import Sequence

from claudomator_py.api.page.formatting import filter_url, short_line
from claudomator_py.domain.card import Authentication, Card, Scheme, Source, Transport, Visibility
from claudomator_py.domain.requests import TaskFilter
from claudomator_py.domain.units import counted
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

    view: SpecialistView
    tone: str
    line: str | None
    """Its description in one line."""
    meta: tuple[str, ...]
    """Further facts, as text."""
    score: float | None = None
    """Score in a search; None outside of searches."""
    skill: str | None = None
    """The best matching skill in a search."""


@dataclass(frozen=True, slots=True)
class SpecialistPage:
    """A specialist, and what the page says of it in words."""

    view: SpecialistView
    card: Card
    url: str
    tasks_url: str
    """The list of its tasks."""
    tone: str
    exists_for: str
    """Who can see it, in a sentence."""
    works_for: str
    """Whose work it may do, in a sentence."""
    facts: tuple[tuple[str, str], ...]
    text: str
    """The whole card, for editing."""


def url_of(specialist_id: str) -> str:
    """Return the URL of its page. Ids need no quoting."""
    return f"/specialists/{specialist_id}"


def row_of(specialist: SpecialistView, score: float | None = None, skill: str | None = None) -> SpecialistRow:
    """Return a line of the list, or of search results."""
    skills = len(specialist.content.skills)
    meta = (
        specialist.id if specialist.id != specialist.name else "",
        counted(skills, "skill"),
        specialist.creator if specialist.source != "shipped" else "",
        specialist.organisation or "",
        _SOURCES[specialist.source],
        "" if specialist.transport is Transport.LOCAL else _REACHED[specialist.transport],
    )
    line = short_line(specialist.description)
    return SpecialistRow(specialist, _TONES[specialist.visibility], line, tuple(filter(None, meta)), score, skill)


def search_row(match: FoundSpecialistView) -> SpecialistRow:
    """Return a line of search results."""
    skill = next((item.name for item in match.skills if item.id == match.best_skill_id), None)
    return row_of(match.specialist, match.score, skill)


def choices_of(specialists: Sequence[SpecialistView]) -> tuple[tuple[str, str], ...]:
    """Return id and name of each, as suggestions for a field."""
    return tuple((specialist.id, specialist.name) for specialist in specialists)


def page_of(specialist: SpecialistView) -> SpecialistPage:
    """Return the page of one specialist."""
    card = specialist.content
    return SpecialistPage(
        view=specialist,
        card=card,
        url=url_of(specialist.id),
        tasks_url=filter_url("/", TaskFilter(specialist=specialist.id)),
        tone=_TONES[specialist.visibility],
        exists_for=_exists_for(specialist),
        works_for=_works_for(specialist),
        facts=_facts(specialist, card),
        text=card_text(specialist.card),
    )


def _works_for(specialist: SpecialistView) -> str:
    if specialist.visibility is Visibility.PRIVATE:
        return "It does only its creator's work."
    if specialist.admitted_by is not None:
        return f"It may do the work of everyone who can see it: {specialist.admitted_by} admitted this card."
    whose = specialist.organisation or "this daemon's own side"
    return f"It does only work of {whose}, and its card adds no permissions to a task: nobody has admitted it."


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
