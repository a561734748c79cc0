"""The page of the labels that decisions are made of, from the enumerations and records that are stored."""

import re
from collections.abc import Iterator
from enum import StrEnum

from claudomator_py.api.openapi import member_words
from claudomator_py.domain.channel import SkipReason, TriageReason
from claudomator_py.domain.decision import Fallback
from claudomator_py.domain.rationale import RationaleCode, RationaleParams
from claudomator_py.domain.routing import Risk
from claudomator_py.domain.shape import View
from claudomator_py.resources.decisions import (
    DecidedHandoffView,
    DecidedShadowView,
    DecidedTriageView,
    DecidedVerdictView,
    DecisionView,
    PlacementView,
    SelectionView,
)
from claudomator_py.scheduler.classification import Cause
from claudomator_py.scheduler.records import RECORDS, DecisionKind, PolicyVerdict, Record, Route
from docs.reference.markdown import code, first_sentence, page, table

_INTRODUCTION = """
A decision is a row that is never changed: what was chosen, from which candidates, and why. `GET /v1/decisions`,
`claudomator decisions export` and the page show all of it ([how](../how-to/decisions.md)). Labels on this page are
never renamed or removed, and keep their meaning; new ones may be added.
"""
_REASONS = """
The `rationale` of a decision, or for not choosing a specialist, is a code with parameters; `reason` and `rejected`
express it in words. In the words, `{name}` is a parameter, `[a|b]` is the first alternative whose parameters are known,
and a single text in brackets is omitted if its parameters are unknown. [These codes](obstacles.md) say why an agent was
not chosen.
"""
_FIELDS = """
Decisions of all kinds have the fields of the first table, and each kind has its own as well. If a field has another
name in the API, or is inside another field, the last column says so. The [shape of the API](api.md#decisionview) also
contains the outcome of the decision.
"""
_SHOWN = {
    "candidates": "agents",
    "specialist_candidates": "specialists",
    "reason": "rationale",
    "asked": "handoff",
    "rules": "verdict",
    "fallback": "placement.fallback_code",
    "overridden": "placement.overridden_hint",
}
"""Fields that the API calls otherwise."""
_INSIDE: dict[str, type[View]] = {
    "placement": PlacementView,
    "selection": SelectionView,
    "verdict": DecidedVerdictView,
    "handoff": DecidedHandoffView,
    "triage": DecidedTriageView,
    "shadow": DecidedShadowView,
}
"""Fields of the API that have others in them."""
_OF_KIND = {
    DecisionKind.PLACEMENT: "placement",
    DecisionKind.SPECIALIST: "selection",
    DecisionKind.POLICY: "verdict",
    DecisionKind.HANDOFF: "handoff",
    DecisionKind.TRIAGE: "triage",
    DecisionKind.SHADOW: "shadow",
}
"""Which of them a kind has."""


def decisions() -> str:
    """The labels, and the fields."""
    kinds = [(code(kind), first_sentence(record.__doc__)) for kind, record in RECORDS.items()]
    reasons = [(code(one), one.words) for one in RationaleCode]
    parameters = [(code(name), field.description or "") for name, field in RationaleParams.model_fields.items()]
    return page(
        "Decisions",
        _INTRODUCTION,
        table(("kind", "what is decided"), kinds),
        "## Routes",
        "`route` of a decision on a specialist or a handoff; that of a placement is where its task was routed.",
        _labels(Route),
        "## Verdicts",
        "`verdict` of a decision of the policy.",
        _labels(PolicyVerdict),
        "## Risk",
        "`low` is the least. Who may do a task of medium or high risk is never left to a default.",
        table(("risk",), [(code(risk),) for risk in Risk]),
        "## Why it was decided so",
        _REASONS,
        table(("code", "words"), reasons),
        table(("parameter", "meaning"), parameters),
        "## Where the tier comes from",
        "`cause` of a classification says why there was no answer.",
        _labels(Cause),
        "`placement.fallback_code` says why a run started where it should not have.",
        table(("code", "words"), [(code(one), one.words) for one in Fallback]),
        "## Who answers a message",
        "`rule` of a triage is one of [these rules](mentions.md):",
        _labels(TriageReason),
        "`skipped` says who is not asked after all, and why:",
        _labels(SkipReason),
        "## What is recorded",
        _FIELDS,
        _fields(Record, frozenset(), None),
        *_of_kinds(),
    )


def _labels(kind: type[StrEnum]) -> str:
    told = member_words(kind)
    return table(("label", "meaning"), [(code(one.value), told[one.name]) for one in kind])


def _of_kinds() -> Iterator[str]:
    common = frozenset(Record.model_fields)
    for kind, record in RECORDS.items():
        yield f"### {kind.value.capitalize()}"
        yield _fields(record, common, _OF_KIND.get(kind))


def _fields(record: type[Record], without: frozenset[str], inside: str | None) -> str:
    told = member_words(record)
    rows = [
        (code(name), _meaning(told.get(name) or _of_type(name, field.annotation)), _shown(name, inside))
        for name, field in record.model_fields.items()
        if name not in without
    ]
    return table(("field", "meaning", "in the API"), rows)


def _of_type(name: str, kind: object) -> str:
    """What the type says of itself, of a field that adds nothing to it. Raises ValueError for one that is not ours."""
    if not isinstance(kind, type) or not kind.__module__.startswith("claudomator_py"):
        raise ValueError(f"the field {name} has no docstring")
    return first_sentence(kind.__doc__)


def _meaning(docstring: str) -> str:
    """For whoever reads JSON, and no code."""
    return re.sub(r",? see `[\w.]+`", "", docstring).replace("None:", "null:")


def _shown(name: str, inside: str | None) -> str:
    """The name in the API, where it is another one."""
    shown = _SHOWN.get(name, name)
    if inside is not None and name in _INSIDE[inside].model_fields and not shown.startswith(f"{inside}."):
        return code(f"{inside}.{name}")
    if shown.partition(".")[0] not in DecisionView.model_fields:
        raise KeyError(f"the API does not show {name}")
    return "" if shown == name else code(shown)
