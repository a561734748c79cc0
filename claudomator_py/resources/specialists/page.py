"""The pages under /specialists: the list, search, a card, and the forms to change, remove and share it.

The forms to change and to remove a card send the version that they showed; if the card has changed meanwhile, nothing
is done and the form is shown again with the current version.
"""

from collections.abc import Mapping
from typing import Annotated

from fastapi import Form, Query
from fastapi.responses import RedirectResponse, Response

from claudomator_py.api.operation import Allowed, UnlistedRoutes
from claudomator_py.api.page.formatting import PART, Cursor, Ref, Version, read_fields
from claudomator_py.api.page.rendering import render
from claudomator_py.api.problem import status_of
from claudomator_py.domain.card import Card
from claudomator_py.domain.errors import Conflict, Invalid, Problem, ServiceError, StaleVersion
from claudomator_py.resources.routing import CORRECTIONS, ForgetRequest
from claudomator_py.resources.routing.page import corrections_of, standings_of
from claudomator_py.resources.routing.service import Routing
from claudomator_py.resources.session import Session
from claudomator_py.resources.specialists import MAX_QUERY_LENGTH, GrantRequest, SpecialistView
from claudomator_py.resources.specialists.page_model import page_of, row_of, search_row, url_of
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.schema.cardfile import parse_card_file

_MAX_FOUND = 20
_FILE = "card.yaml"
Text = Annotated[str, Query(max_length=MAX_QUERY_LENGTH)]
CardText = Annotated[str, Form(max_length=1_000_000)]
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
    return _page(granted, specialist_id)


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
    return _removal_form(granted, specialist_id)


@routes.post("/{specialist_id}/remove", "removeSpecialist")
def remove(granted: Allowed, specialist_id: Ref, version: Version) -> Response:
    try:
        granted[Specialists].remove(specialist_id, versions=[version])
    except (StaleVersion, Conflict) as refusal:
        return _removal_form(granted, specialist_id, refusal)
    return RedirectResponse("/specialists", 303)


@routes.get("/{specialist_id}/forget", "resetLearned")
def ask_to_forget(granted: Allowed, specialist_id: Ref) -> Response:
    return render("forget.html", {"page": page_of(granted[Specialists].get(specialist_id))}, granted)


@routes.post("/{specialist_id}/forget", "resetLearned")
def forget(granted: Allowed, specialist_id: Ref) -> Response:
    granted[Routing].forget(ForgetRequest(specialist=specialist_id))
    return RedirectResponse(url_of(specialist_id), 303)


@routes.post("/{specialist_id}/grant", "grantSpecialist")
def grant(granted: Allowed, specialist_id: Ref, grantee: Grantee = "") -> Response:
    try:
        wanted = read_fields(GrantRequest, {"grantee": grantee.strip()})
        return _to(granted[Specialists].grant(specialist_id, wanted), "#sharing")
    except (Conflict, Invalid) as refusal:
        return _page(granted, specialist_id, refusal, grantee)


@routes.post("/{specialist_id}/revoke", "revokeSpecialist")
def revoke(granted: Allowed, specialist_id: Ref, grantee: Grantee) -> Response:
    return _to(granted[Specialists].revoke(specialist_id, grantee), "#sharing")


@routes.post("/{specialist_id}/admit", "admitSpecialist")
def admit(granted: Allowed, specialist_id: Ref) -> Response:
    return _to(granted[Specialists].admit(specialist_id), "#sharing")


@routes.post("/{specialist_id}/dismiss", "dismissSpecialist")
def dismiss(granted: Allowed, specialist_id: Ref) -> Response:
    return _to(granted[Specialists].dismiss(specialist_id), "#sharing")


def _to(specialist: SpecialistView, place: str = "") -> Response:
    return RedirectResponse(url_of(specialist.id) + place, 303)


def _only_card(text: str) -> Card:
    """Return the only card in the text. Raises Invalid."""
    # Forms send CRLF line ends.
    parsed = parse_card_file(text.replace("\r\n", "\n").encode(), _FILE)
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


def _page(granted: Session, specialist_id: str, refusal: ServiceError | None = None, grantee: str = "") -> Response:
    specialist, learned = granted[Specialists].get(specialist_id), granted[Routing].all()
    values = {
        "page": page_of(specialist),
        "standings": standings_of(learned, specialist_id),
        "corrections": corrections_of(learned, specialist_id),
        "correction_table": CORRECTIONS,
        "refusal": refusal,
        "grantee": grantee,
    }
    return render("specialist.html", values, granted, status_of(refusal))


def _card_form(
    granted: Session, specialist: SpecialistView | None, text: str | None = None, refusal: ServiceError | None = None
) -> Response:
    """Return the form. specialist: None for a new one. text: the user's version of the card; None: the stored one."""
    page = None if specialist is None else page_of(specialist)
    values: Mapping[str, object] = {
        "page": page,
        "text": page.text if page is not None and text is None else text,
        "stale": isinstance(refusal, StaleVersion),
        "refusal": refusal,
    }
    return render("specialist_edit.html", values, granted, status_of(refusal))


def _removal_form(granted: Session, specialist_id: str, refusal: ServiceError | None = None) -> Response:
    page = page_of(granted[Specialists].get(specialist_id))
    return render("specialist_remove.html", {"page": page, "refusal": refusal}, granted, status_of(refusal))
