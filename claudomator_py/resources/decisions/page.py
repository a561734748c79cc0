"""/decisions: what was decided and why; and one decision with everything known about it."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, get_args

from fastapi import Depends, Request
from fastapi.responses import Response

from claudomator_py.api.operation import Allowed, UnlistedRoutes
from claudomator_py.api.page.formatting import (
    PART,
    Cursor,
    Ref,
    address,
    model_text,
    read_fields,
    read_times,
    time_field,
    tokens_text,
)
from claudomator_py.api.page.rendering import render
from claudomator_py.domain.budget import cost_text
from claudomator_py.domain.errors import Invalid, Problem
from claudomator_py.domain.outcome import Tokens
from claudomator_py.domain.rationale import RationaleCode
from claudomator_py.domain.requests import DecisionFilter, DecisionKindName, RouteName
from claudomator_py.domain.routing import Risk
from claudomator_py.domain.units import format_instant, short_id
from claudomator_py.resources.channels.page import url_of as channel_url
from claudomator_py.resources.decisions import DecisionView
from claudomator_py.resources.decisions.service import Decisions, Explained
from claudomator_py.resources.report.night import Nights
from claudomator_py.resources.specialists.page import url_of as specialist_url
from claudomator_py.surface.table import Link
from claudomator_py.texts import one_line

_CHOICES = {
    "kinds": get_args(DecisionKindName),
    "routes": get_args(RouteName),
    "risks": tuple(risk.value for risk in Risk),
    "reasons": tuple(code.value for code in RationaleCode),
}
"""The choices of the filters."""
_ENDINGS = {"succeeded": "good", "failed": "bad", "lost": "bad", "limited": "ask", "needs_input": "ask"}


def _filters(request: Request) -> dict[str, str]:
    return {name: request.query_params.get(name, "") for name in DecisionFilter.model_fields}


Filters = Annotated[dict[str, str], Depends(_filters)]
"""The filters in the address; see ``DecisionFilter``. Empty: any; ``overridden`` is ``yes`` or ``no``."""


def _filter(filters: Mapping[str, str], times: Mapping[str, int]) -> DecisionFilter:
    """Return the decisions that the filters ask for. times: of ``since`` and ``until``. Raises Invalid."""
    given = {name: value.strip() for name, value in filters.items()}
    query = read_fields(DecisionFilter, given | {name: format_instant(at_ms) for name, at_ms in times.items()})
    if query.since is not None and query.until is not None and query.since >= query.until:
        message = "is not after `since`, so there is no time between them"
        raise Invalid.of([Problem(field="until", message=message, remedy="choose a later one")])
    return query


routes = UnlistedRoutes("/decisions")


@routes.get("", "listDecisions")
def show_all(granted: Allowed, filters: Filters, cursor: Cursor = None) -> Response:
    values: dict[str, Any] = {"given": filters, "filtered": any(filters.values()), "rows": (), "more_url": None}
    values |= _CHOICES
    now_ms, zone = granted[Nights].clock(), granted[Nights].zone()
    given = {name: filters[name].strip() for name in ("since", "until")}
    values |= {"fields": dict.fromkeys(given), "zone": str(zone)}
    try:
        times = read_times(given, now_ms, zone)
        values["fields"] = {name: time_field(times.get(name), zone) for name in given}
        part = granted[Decisions].page(_filter(filters, times), cursor, PART)
    except Invalid as refusal:
        return render("decisions.html", values, granted, refusal=refusal)
    values["rows"] = [
        (decision, decision.subject, one_line(decision.reason), _links(decision)) for decision in part.items
    ]
    if part.next_cursor is not None:
        values["more_url"] = address("/decisions", **filters, cursor=part.next_cursor)
    return render("decisions.html", values, granted)


@routes.get("/{decision_id}", "getDecision")
def show(granted: Allowed, decision_id: Ref) -> Response:
    explained = granted[Decisions].explained(decision_id)
    decision = explained.decision
    values = {
        "explained": explained,
        "decision": decision,
        "title": f"{decision.kind} of {decision.subject}",
        "facts": _facts(decision),
        "outcome": _outcome(explained),
        "tone": "busy" if decision.run is None else _ENDINGS.get(decision.run.ended_as or "", "busy"),
    }
    return render("decision.html", values, granted)


# A session is only for pages, so a page has to offer the document.
@routes.get("/{decision_id}/json", "getDecision")
def download(granted: Allowed, decision_id: Ref) -> Response:
    decision = granted[Decisions].get(decision_id)
    headers = {"Content-Disposition": f'attachment; filename="decision-{decision.id}.json"'}
    return Response(decision.model_dump_json(indent=2) + "\n", media_type="application/json", headers=headers)


def url_of(decision_id: str) -> str:
    """Return the path of its page. An id needs no quoting."""
    return f"/decisions/{decision_id}"


def _links(decision: DecisionView) -> Sequence[Link]:
    """Return what a row of the list says below its title. The route of a placement is that of its task."""
    is_placement = decision.kind == "placement"
    words = (
        decision.agent,
        model_text(decision.tier, decision.model),
        None if decision.route is None or is_placement else f"route {decision.route.replace('_', ' ')}",
        None if decision.confidence is None or is_placement else f"confidence {decision.confidence:.2f}",
        None if decision.risk is None else f"{decision.risk.value} risk",
        "overridden" if decision.overridden else None,
        "replaced by a later one" if decision.superseded_by is not None else None,
    )
    links = (_task(decision), _run(decision), _specialist(decision), *(Link(word) for word in words if word))
    return [link for link in links if link is not None]


def _task(decision: DecisionView) -> Link | None:
    if decision.task_id is None:
        return None
    if decision.task_state is None:
        return Link(f"task {short_id(decision.task_id)}, removed")
    return Link(f"task {short_id(decision.task_id)}", f"/tasks/{decision.task_id}")


def _message(decision: DecisionView) -> Link | None:
    if decision.channel_id is None:
        return None
    words = f"message {decision.message_id} in {decision.channel_name}"
    return Link(words, f"{channel_url(decision.channel_id)}#message-{decision.message_id}")


def _run(decision: DecisionView) -> Link | None:
    if decision.run_id is None:
        return None
    words = f"run {short_id(decision.run_id)}"
    there = decision.task_id is not None and decision.task_state is not None
    return Link(words, f"/tasks/{decision.task_id}?run={decision.run_id}#log" if there else None)


def _specialist(decision: DecisionView) -> Link | None:
    whom = decision.specialist
    return None if whom is None else Link(whom, specialist_url(whom))


def _given(decision: DecisionView) -> list[tuple[str, str | None]]:
    """Return what the run may do, and what it is to return."""
    if decision.placement is None or (given := decision.placement.given) is None:
        return []
    return [
        ("Permission mode", given.mode),
        ("Only tools", None if given.tools is None else ", ".join(given.tools) or "none"),
        ("May use without asking", ", ".join(given.allowed_tools)),
        ("May not use", ", ".join(given.forbidden_tools)),
        ("Returns", given.expected_output),
    ]


def _facts(decision: DecisionView) -> Sequence[tuple[str, Link | str | None]]:
    threshold = "" if decision.threshold is None else f", with a threshold of {decision.threshold:.2f}"
    return [
        ("Task", _task(decision)),
        ("Message", _message(decision)),
        ("Run", _run(decision)),
        ("Specialist", _specialist(decision)),
        ("Skill", decision.skill),
        ("Route", None if decision.route is None else decision.route.replace("_", " ")),
        ("Agent", decision.agent),
        ("Tier and model", model_text(decision.tier, decision.model)),
        ("Confidence", None if decision.confidence is None else f"{decision.confidence:.2f}{threshold}"),
        ("Risk", None if decision.risk is None else decision.risk.value),
        ("Intent", decision.intent),
        ("Topic", decision.topic),
        *_given(decision),
        ("Required capabilities", ", ".join(decision.required_capabilities)),
        ("After restart", None if decision.generation in (None, 1) else str(decision.generation - 1)),
        ("Beside", None if decision.shadow is None else Link("the decision made", url_of(decision.shadow.beside))),
        ("Decided by", decision.by or "the daemon"),
        ("Took", None if decision.latency_ms is None else f"{decision.latency_ms:,} ms"),
        ("Cost", cost_text(decision.cost_usd)),
        ("Input", decision.input_ref),
        ("Snapshot", decision.snapshot),
        ("Reason code", None if decision.rationale is None else decision.rationale.code.value),
        ("Id", decision.id),
    ]


def _outcome(explained: Explained) -> Sequence[tuple[str, Link | str | None]]:
    """Return what became of it, without the end of its run."""
    decision, run = explained.decision, explained.decision.run
    rows: list[tuple[str, Link | str | None]] = []
    if run is not None:
        tokens = Tokens(input=run.input_tokens, output=run.output_tokens)
        rows += [
            ("Reason", run.reason),
            ("Tokens", tokens_text(tokens)),
            ("Cost of the run", cost_text(run.cost_usd)),
        ]
    state, later, earlier = decision.task_state, decision.superseded_by, decision.supersedes
    rows += [
        ("Task is now", None if state is None else state.replace("_", " ").lower()),
        ("Overridden", "an operator gave the task to another specialist" if decision.overridden else None),
        ("Replaced by", None if later is None else Link(f"decision {short_id(later)}", url_of(later))),
    ]
    if earlier is not None:
        kept = explained.supersedes_kept
        words = f"decision {short_id(earlier)}" + ("" if kept else ", removed for its age")
        rows.append(("Replaces", Link(words, url_of(earlier) if kept else None)))
    return [(name, value) for name, value in rows if value]
