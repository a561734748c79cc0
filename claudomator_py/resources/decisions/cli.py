"""``decisions``: what was decided, why, and what came of it; also exported as JSON lines."""

from collections.abc import Set
from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli import completion
from claudomator_py.cli.connect import Client, connected, with_client
from claudomator_py.cli.output import fields, note, out, out_json_line, table_text, write, wrote_json
from claudomator_py.cli.times import past_time, time_option
from claudomator_py.domain.requests import DecisionFilter
from claudomator_py.domain.units import format_instant
from claudomator_py.domain.verdict import constraint_sentences
from claudomator_py.resources.decisions import DecisionView
from claudomator_py.schema.validation import validate
from claudomator_py.surface.table import Column, Table, ago, figure
from claudomator_py.texts import one_line

if TYPE_CHECKING:
    from pydantic import BaseModel

    from claudomator_py.resources.routing import RouteCandidateView

_DECISIONS = Table[DecisionView](
    Column("KIND", lambda row: row.kind),
    Column("ABOUT", lambda row: row.subject, flexible=True),
    Column("ROUTE", lambda row: row.route),
    Column("TO", lambda row: row.specialist or row.agent or row.tier, flexible=True),
    Column("CONF", lambda row: figure(row.confidence, ".2f"), right=True),
    Column("WHY", lambda row: one_line(row.reason), flexible=True),
    Column("RUN", lambda row: None if row.run is None else row.run.ended_as or row.run.state),
    Column("MADE", lambda row: ago(row.at)),
    Column("TASK ID", lambda row: row.task_id, wide=True),
    Column("ID", lambda row: row.id, wide=True),
)
_PARTS = {
    "placement": "",
    "selection": "",
    "verdict": "",
    "handoff": "handoff ",
    "triage": "",
    "shadow": "shadow ",
    "classification": "tier ",
    "run": "run ",
}
"""The prefix of the names of each part's fields."""
_IN_WORDS = {"rationale", "fallback_code", "stands_in"}
"""Values that another field puts into words."""
_IN_ROWS = {"policy_checks", "specialists", "agents", "constraints", *_PARTS, *_IN_WORDS}
"""What is shown in its own rows, or not at all."""

KindOption = Annotated[
    str | None,
    typer.Option("--kind", metavar="KIND", help="placement, tier, specialist, policy, handoff, triage or shadow."),
]
TaskOption = Annotated[
    str | None,
    completion.TASKS.option("Only decisions about this task: its id, id prefix or name.", "--task", metavar="TASK"),
]
SpecialistOption = Annotated[
    str | None, completion.SPECIALISTS.option("Only decisions for this specialist.", "--specialist", metavar="ID")
]
AgentOption = Annotated[
    str | None, completion.AGENTS.option("Only decisions with a run on this agent.", "--agent", metavar="NAME")
]
RouteOption = Annotated[
    str | None, typer.Option("--route", metavar="ROUTE", help="specialist, default, clarify, human_review or reject.")
]


def _time(text: str) -> str:
    return format_instant(past_time(text))


ReasonOption = Annotated[
    str | None, typer.Option("--reason", metavar="CODE", help="Only decisions with this reason code.")
]
RiskOption = Annotated[str | None, typer.Option("--risk", metavar="RISK", help="low, medium or high.")]
OverriddenOption = Annotated[
    bool | None, typer.Option("--overridden/--kept", help="Only decisions an operator has overridden, or has not.")
]
SinceOption = Annotated[
    str | None,
    time_option("Only decisions at or after this time, such as 22:00, 12h or 2026-11-27.", "--since", parser=_time),
]
UntilOption = Annotated[str | None, time_option("Only decisions before this time.", "--until", parser=_time)]


def _filter(**given: object) -> DecisionFilter:
    query = validate(DecisionFilter, {name: value for name, value in given.items() if value is not None}, {})
    if isinstance(query, list):
        first = query[0]
        problem = first.model_copy(update={"field": None})
        raise typer.BadParameter(str(problem), param_hint=f"--{first.field}")
    return query


@connected
def list_(
    client: Client,
    kind: KindOption = None,
    task: TaskOption = None,
    specialist: SpecialistOption = None,
    agent: AgentOption = None,
    route: RouteOption = None,
    reason: ReasonOption = None,
    risk: RiskOption = None,
    overridden: OverriddenOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many to list at most, newest first.")] = 30,
) -> None:
    """List decisions, newest first."""
    wanted = _filter(
        kind=kind,
        task=task,
        specialist=specialist,
        agent=agent,
        route=route,
        reason=reason,
        risk=risk,
        overridden=overridden,
        since=since,
        until=until,
    )
    page = client.decisions(wanted, limit=limit)
    if wrote_json(page):
        return
    if not page.items:
        note("No decision matches.")
        return
    out(table_text(_DECISIONS, page.items))
    if page.next_cursor is not None:
        note("There are more: narrow the list, or export all with `claudomator decisions export`.")


@connected
def show(
    client: Client,
    decision: Annotated[str, completion.DECISIONS.argument("ID", "The decision's id.")],
) -> None:
    """Show one decision with everything recorded about it, and what came of it."""
    view = client.decision(decision)
    write(view, lambda: decision_text(view))


def decision_text(decision: DecisionView) -> str:
    """Return everything recorded, a line for each field."""
    rows = _rows("", decision, _IN_ROWS)
    rows += [
        (f"rule {check.rule}", " ".join(filter(None, (_verdict(check.matched), check.effect, check.detail))))
        for check in decision.policy_checks
    ]
    rows += [(f"compared {candidate.specialist}", _compared(candidate)) for candidate in decision.specialists]
    rows += [(f"agent {agent.agent}", agent.rejected_because or "picked") for agent in decision.agents]
    for part, prefix in _PARTS.items():
        rows += _rows(prefix, getattr(decision, part), {*_IN_WORDS, "given"})
    rows += _rows("given ", None if decision.placement is None else decision.placement.given, {"slash"})
    rows += [("left open", sentence) for sentence in constraint_sentences(decision.constraints)]
    return fields(rows)


@with_client
def export(client: Client, kind: KindOption = None, since: SinceOption = None, until: UntilOption = None) -> None:
    """Write decisions as JSON lines, newest first."""
    for decision in client.all_decisions(_filter(kind=kind, since=since, until=until)):
        out_json_line(decision)


COMMANDS = {"list": list_, "show": show, "export": export}


def _compared(candidate: "RouteCandidateView") -> str:
    parts = ", ".join(f"{name} {value:.3f}" for name, value in candidate.parts.items())
    return f"{candidate.score:.3f}{f' ({parts})' if parts else ''}, {candidate.rejected or 'chosen'}"


def _rows(prefix: str, shape: "BaseModel | None", without: Set[str] = frozenset()) -> list[tuple[str, str]]:
    shown = {} if shape is None else shape.model_dump(mode="json", exclude_defaults=True, exclude=set(without))
    return [(f"{prefix}{name.replace('_', ' ')}", _listed(value)) for name, value in shown.items()]


def _listed(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {item}" for name, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _verdict(matched: bool | None) -> str:
    return {True: "applies", False: "does not apply", None: "has an error"}[matched]
