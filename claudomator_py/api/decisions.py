"""/v1/decisions: what was decided, why, and what became of it."""

from typing import Annotated

from fastapi import Path, Query

from claudomator_py.api.operation import Allowed, Operations
from claudomator_py.api.request import PageQuery
from claudomator_py.domain.views.base import Page
from claudomator_py.domain.views.decisions import DecisionFilter, RecordedDecisionView
from claudomator_py.queries.queries import Queries
from claudomator_py.surface.operation import READ

decisions = Operations("decisions")


class DecisionQuery(DecisionFilter, PageQuery):
    """What to list, and how much of it."""


@decisions.operation("GET /v1/decisions", "listDecisions", READ, "List decisions, newest first")
def list_decisions(granted: Allowed, query: Annotated[DecisionQuery, Query()]) -> Page[RecordedDecisionView]:
    """Decisions of every kind; all conditions count together. Those that are made meanwhile move nothing in later
    parts."""
    wanted = DecisionFilter(**query.model_dump(exclude={"cursor", "limit"}))
    return granted[Queries].decisions(wanted, query.cursor, query.limit)


@decisions.operation("GET /v1/decisions/{decision_id}", "getDecision", READ, "One decision", refuses=(404,))
def get_decision(
    granted: Allowed, decision_id: Annotated[str, Path(max_length=128, description="A decision's id.")]
) -> RecordedDecisionView:
    """The decision, with what superseded it and what became of its run."""
    return granted[Queries].decision(decision_id)
