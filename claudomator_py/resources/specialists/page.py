"""The pages under /specialists: the list, search, a card, and the forms to change, remove and share it.

The forms to change and to remove a card send the version that they showed; if the card has changed meanwhile, nothing
is done and the form is shown again with the current version.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import Form, Query
from fastapi.responses import RedirectResponse, Response

from claudomator_py.api.operation import Allowed, UnlistedRoutes
from claudomator_py.api.page.formatting import LINES, PART, Cursor, Ref, Version, filter_url, short_line
from claudomator_py.api.page.rendering import button, render
from claudomator_py.domain.card import Authentication, Card, Scheme, Source, Transport, Visibility
from claudomator_py.domain.errors import Conflict, Invalid, Problem, ServiceError, StaleVersion
from claudomator_py.domain.requests import TaskFilter
from claudomator_py.domain.units import counted
from claudomator_py.resources.routing import CORRECTIONS, ForgetRequest
from claudomator_py.resources.routing.page import corrections_of, standings_of
from claudomator_py.resources.routing.service import Routing
from claudomator_py.resources.session import Session
from claudomator_py.resources.specialists import MAX_QUERY_LENGTH, FoundSpecialistView, SpecialistCalls, SpecialistView
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.schema.cardfile import card_text, parse_card_file
from claudomator_py.surface.table import figure
from claudomator_py.values import dataclass

_MAX_FOUND = 20
_FILE = "card.yaml"
Text = Annotated[str, Query(max_length=MAX_QUERY_LENGTH)]
CardText = Annotated[str, Form(max_length=1_000_000), LINES]
Grantee = Annotated[str, Form(max_length=200)]


routes = UnlistedRoutes("/specialists")


@routes.get("", "listSpecialists")
def show_all(granted: Allowed, q: Text = "", cursor: Cursor = None) -> Response:
    values: dict[str, object] = {"query": q, "degraded": False, "more": 0, "next_cursor": None}
    if q.strip():
        matches = granted[Specialists].search(q, _MAX_FOUND)
        rows = [search_row(item) for item in matches.items]
        values |= {"rows": rows, "more": matches.total - len(rows), "degraded": matches.degraded}
    else:
        part = granted[Specialists].page(cursor, PART)
        values |= {"rows": [row_of(item) for item in part.items], "next_cursor": part.next_cursor}
    return render("specialists.html", values, granted)


@routes.post("", "registerSpecialist")
def register(granted: Allowed, text: CardText = "") -> Response:
    try:
        return _to(granted[Specialists].register(_only_card(text)))
    except (Conflict, Invalid) as refusal:
        return _card_form(granted, None, text, refusal)


@routes.get("/{specialist_id}", "getSpecialist")
def show(granted: Allowed, specialist_id: Ref) -> Response:
    return _page(granted, {"specialist_id": specialist_id})


@routes.get("/{specialist_id}/edit", "changeSpecialist")
def ask_to_edit(granted: Allowed, specialist_id: Ref) -> Response:
    return _card_form(granted, granted[Specialists].get(specialist_id))


@routes.post("/{specialist_id}/edit", "changeSpecialist")
def edit(granted: Allowed, specialist_id: Ref, version: Version, text: CardText = "") -> Response:
    specialists = granted[Specialists]
    try:
        return _to(specialists.change(_card_of(specialist_id, text), versions=[version]))
    except (StaleVersion, Conflict, Invalid) as refusal:
        return _card_form(granted, specialists.get(specialist_id), text, refusal)


@routes.get("/{specialist_id}/remove", "removeSpecialist")
def ask_to_remove(granted: Allowed, specialist_id: Ref) -> Response:
    return _removal_form(granted, {"specialist_id": specialist_id})


@routes.get("/{specialist_id}/forget", "resetLearned")
def ask_to_forget(granted: Allowed, specialist_id: Ref) -> Response:
    values = {"specialist": granted[Specialists].get(specialist_id), "url": url_of(specialist_id)}
    return render("forget.html", values, granted)


@routes.post("/{specialist_id}/forget", "resetLearned")
def forget(granted: Allowed, specialist_id: Ref) -> Response:
    granted[Routing].forget(ForgetRequest(specialist=specialist_id))
    return RedirectResponse(url_of(specialist_id), 303)


@routes.post("/{specialist_id}/revoke", "revokeSpecialist")
def revoke(granted: Allowed, specialist_id: Ref, grantee: Grantee) -> Response:
    return _to(granted[Specialists].revoke(specialist_id, grantee), "#sharing")


def _to(specialist: SpecialistView, place: str = "") -> Response:
    return RedirectResponse(url_of(specialist.id) + place, 303)


def _only_card(text: str) -> Card:
    """Return the only card in the text. Raises Invalid."""
    parsed = parse_card_file(text.encode(), _FILE)
    problems = list(parsed.problems)
    if len(parsed.items) > 1:
        remedy = "send them one by one, or as a file: claudomator specialists add FILE"
        message = f"it contains {len(parsed.items)} cards, but exactly one is expected"
        problems = [Problem(message=message, remedy=remedy)]
    if problems:
        raise Invalid.of(problems)
    return parsed.items[0]


def _card_of(specialist_id: str, text: str) -> Card:
    """Return the only card in the text, which must have that id. Raises Invalid."""
    card = _only_card(text)
    if card.id != specialist_id:
        message = f"is {card.id}, but this is {specialist_id}"
        raise Invalid.of(
            [Problem(field="id", message=message, remedy="an id cannot be changed; register another specialist")]
        )
    return card


def _page(granted: Session, given: Mapping[str, Any], refusal: ServiceError | None = None) -> Response:
    specialist, learned = granted[Specialists].get(given["specialist_id"]), granted[Routing].all()
    values = {
        "specialist": specialist,
        "url": url_of(specialist.id),
        "tasks_url": filter_url("/", TaskFilter(specialist=specialist.id)),
        "tone": _TONES[specialist.visibility],
        "exists_for": exists_for(specialist),
        "works_for": _works_for(specialist),
        "facts": _facts(specialist, specialist.content),
        "text": card_text(specialist.card),
        "standings": standings_of(learned, specialist.id),
        "corrections": corrections_of(learned, specialist.id),
        "correction_table": CORRECTIONS,
        "grantee": given.get("grantee", ""),
    }
    return render("specialist.html", values, granted, refusal=refusal)


def _card_form(
    granted: Session, specialist: SpecialistView | None, text: str | None = None, refusal: ServiceError | None = None
) -> Response:
    """Return the form. specialist: None for a new one. text: the user's version of the card; None: the stored one."""
    stored = None if specialist is None else card_text(specialist.card)
    values: Mapping[str, object] = {
        "specialist": specialist,
        "url": None if specialist is None else url_of(specialist.id),
        "stored": stored,
        "text": stored if text is None else text,
        "stale": isinstance(refusal, StaleVersion),
    }
    return render("specialist_edit.html", values, granted, refusal=refusal)


def _removal_form(granted: Session, given: Mapping[str, Any], refusal: ServiceError | None = None) -> Response:
    specialist = granted[Specialists].get(given["specialist_id"])
    values: dict[str, object] = {"specialist": specialist, "url": url_of(specialist.id)}
    values |= {"tone": _TONES[specialist.visibility], "exists_for": exists_for(specialist)}
    return render("specialist_remove.html", values, granted, refusal=refusal)


_SHARING = "/specialists/{specialist_id}#sharing"
button(
    routes,
    "/{specialist_id}/remove",
    SpecialistCalls.remove_specialist,
    Specialists,
    "/specialists",
    again=_removal_form,
)
button(routes, "/{specialist_id}/grant", SpecialistCalls.grant_specialist, Specialists, _SHARING, again=_page)
button(routes, "/{specialist_id}/admit", SpecialistCalls.admit_specialist, Specialists, _SHARING)
button(routes, "/{specialist_id}/dismiss", SpecialistCalls.dismiss_specialist, Specialists, _SHARING)


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


def _works_for(specialist: SpecialistView) -> str:
    """Return whose work it may do, in a sentence."""
    if specialist.visibility is Visibility.PRIVATE:
        return "It does only its creator's work."
    if specialist.admitted_by is not None:
        return f"It may do the work of everyone who can see it: {specialist.admitted_by} admitted this card."
    whose = specialist.organisation or "this daemon's own side"
    return f"It does only work of {whose}, and its card adds no permissions to a task: nobody has admitted it."


def exists_for(specialist: SpecialistView) -> str:
    """Return who can see it, in a sentence."""
    whose = specialist.organisation
    match specialist.visibility:
        case Visibility.PUBLIC:
            return "Everyone can see and use it."
        case Visibility.PRIVATE:
            return f"Only its creator, {specialist.creator}, can see and use it."
        case _ if whose is None:
            return "Everyone without an organisation, and everyone with a grant, can see and use it."
    return f"Everyone in {whose}, and everyone with a grant, can see and use it."


def _facts(specialist: SpecialistView, card: Card) -> Sequence[tuple[str, str | None]]:
    allowed = card.permissions
    return [
        ("Version", f"{card.version} (change {specialist.version})"),
        ("Agents", ", ".join(card.allowed_agents) or "all"),
        ("Tier", card.default_tier.value if card.default_tier is not None else None),
        ("Permissions", allowed.mode.value if allowed is not None else None),
        ("Tools", (", ".join(allowed.tools) or "none") if allowed is not None and allowed.tools is not None else None),
        ("Allowed tools", ", ".join(allowed.allowed_tools) if allowed is not None else None),
        ("Denied tools", ", ".join(allowed.disallowed_tools) if allowed is not None else None),
        ("Risk", f"up to {card.risk_ceiling.value}"),
        ("Capabilities", ", ".join(card.capabilities)),
        ("Reached by", card.url or _REACHED[Transport.LOCAL]),
        ("Woken by", card.wake_url),
        ("Authentication", _authentication(card.authentication)),
        ("Price", card.pricing.text),
        ("Threshold", figure(card.threshold, ".2f")),
        ("Fallback", card.fallback),
        ("Escalation", card.escalation),
        ("Owner", card.owner),
        ("Creator", specialist.creator),
        ("Organisation", specialist.organisation),
        ("Source", specialist.file_path or _SOURCES[specialist.source]),
    ]


def _authentication(how: Authentication) -> str | None:
    """Return the scheme and the variable that holds the secret; None if there is none."""
    if how.scheme is Scheme.NONE:
        return None
    return how.scheme.value if how.secret is None else f"{how.scheme.value}, from ${how.secret}"
