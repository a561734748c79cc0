"""/decisions: what was decided, of every kind, and why; one decision with all that is known of it."""

from dataclasses import asdict, dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from fastapi.responses import Response

from claudomator_py.api.guard.asking import Asking
from claudomator_py.api.page import decision_model
from claudomator_py.api.page.rendering import render
from claudomator_py.api.page.wanted import read_fields
from claudomator_py.api.section import guarded
from claudomator_py.domain.errors import Invalid, Problem
from claudomator_py.domain.views.decisions import DecisionFilter
from claudomator_py.service.access import Access

_PART = 50
Cursor = Annotated[str | None, Query(max_length=500)]
DecisionId = Annotated[str, Path(max_length=128)]
Field = Annotated[str, Query(max_length=200)]


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters as the address has them; empty: any."""

    kind: Field = ""
    """See ``DecisionFilter``, as for the others."""
    task: Field = ""
    specialist: Field = ""
    agent: Field = ""
    route: Field = ""
    reason: Field = ""
    risk: Field = ""
    overridden: Field = ""
    """``yes`` or ``no``."""
    since: Field = ""
    until: Field = ""

    def wanted(self) -> DecisionFilter:
        """Which decisions they mean. Raises Invalid."""
        found = read_fields(DecisionFilter, {name: value.strip() for name, value in asdict(self).items()})
        if found.since is not None and found.until is not None and found.since >= found.until:
            message = "is not after `since`, so there is no time between them"
            raise Invalid.of([Problem(field="until", message=message, remedy="choose a later one")])
        return found


def router(access: Access) -> APIRouter:
    """The routes."""
    routes = guarded("/decisions")

    @routes.get("")
    def show_all(by: Asking, filters: Annotated[Filters, Depends()], cursor: Cursor = None) -> Response:
        given = asdict(filters)
        values = {
            "given": given,
            "filtered": any(given.values()),
            "kinds": decision_model.KINDS,
            "routes": decision_model.ROUTES,
            "risks": decision_model.RISKS,
            "reasons": decision_model.REASONS,
            "rows": (),
            "more_url": None,
            "refusal": None,
        }
        try:
            part = access.as_(by).queries.decisions(filters.wanted(), cursor, _PART)
        except Invalid as refusal:
            return render("decisions.html", values | {"refusal": refusal}, 422, by=by)
        more = part.next_cursor
        values["rows"] = [decision_model.row_of(one) for one in part.items]
        values["more_url"] = None if more is None else decision_model.list_url(given, more)
        return render("decisions.html", values, by=by)

    @routes.get("/{decision_id}")
    def show(by: Asking, decision_id: DecisionId) -> Response:
        explained = access.as_(by).queries.explained(decision_id)
        return render("decision.html", {"page": decision_model.page_of(explained)}, by=by)

    # A session is for pages alone, so the page has the document, too.
    @routes.get("/{decision_id}/json")
    def download(by: Asking, decision_id: DecisionId) -> Response:
        found = access.as_(by).queries.decision(decision_id)
        headers = {"Content-Disposition": f'attachment; filename="decision-{found.id}.json"'}
        return Response(found.model_dump_json(indent=2) + "\n", media_type="application/json", headers=headers)

    return routes
