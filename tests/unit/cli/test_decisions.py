"""``decisions``: listing, showing and exporting what was decided."""

import json

import pytest

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.units import format_instant
from claudomator_py.domain.verdict import ConstraintsView
from claudomator_py.resources.decisions import (
    CandidateView,
    ChosenView,
    ClassificationView,
    DecidedHandoffView,
    DecidedShadowView,
    DecisionView,
    SelectionView,
)
from claudomator_py.resources.decisions.cli import decision_text
from claudomator_py.resources.routing import RouteCandidateView
from tests.fakes.cards import card
from tests.fakes.command import Command

MESSAGES = 3


@pytest.fixture
def command(command: Command) -> Command:
    """The command where it was decided who answers some messages."""
    assert command("specialists", "add", "-", stdin=json.dumps(card("cook").document)).returncode == 0
    assert command("channel", "create", "kitchen", "cook").returncode == 0
    for number in range(MESSAGES):
        assert command("channel", "post", "kitchen", f"@cook soup {number}").returncode == 0
    return command


def test_they_are_listed_and_shown(command: Command) -> None:
    listed = command("decisions", "list", "--kind", "triage")
    lines = listed.stdout.splitlines()
    assert lines[0].split()[:3] == ["KIND", "ABOUT", "TO"]
    assert len(lines) == 1 + MESSAGES
    assert all(" in kitchen " in line for line in lines[1:])
    # What the wide list names can be shown.
    wide = command("decisions", "list", "--kind", "triage", "-o", "wide").stdout.splitlines()
    assert command("decisions", "show", wide[1].split()[-1]).returncode == 0
    result = json.loads(command("decisions", "list", "--limit", "1", "-o", "json").stdout)["items"][0]
    shown = command("decisions", "show", result["id"]).stdout
    assert "triage" in shown
    assert result["reason"] in shown
    rows = [line.split() for line in shown.splitlines()]
    assert ["rule", "direct_mention"] in rows
    assert ["agents", "cook"] in rows


def test_a_decision_is_about_a_task_by_its_name_while_there_is_one() -> None:
    placed = PLACED.model_copy(update={"task_id": "8b0f2a70-93a5-4c73-8d0a-0a53a1b3f4c1", "task_name": "wall"})
    assert placed.subject == "wall"
    assert placed.model_copy(update={"task_name": None}).subject == "task 8b0f2a70"


def test_a_deleted_channel_leaves_its_decisions(command: Command) -> None:
    deleted = command("channel", "delete", "kitchen")
    assert (deleted.returncode, deleted.stderr) == (0, "kitchen was deleted with its messages; its tasks stay.\n")
    assert command("channel", "show", "kitchen").returncode == 1
    lines = command("decisions", "list", "--kind", "triage").stdout.splitlines()[1:]
    assert len(lines) == MESSAGES
    assert all("a message in a deleted channel" in line for line in lines)


PLACED = DecisionView(
    id="d1",
    kind="placement",
    at=format_instant(1_790_000_000_000),
    reason="least active",
    specialists=(RouteCandidateView(specialist="cook", score=0.4, parts={"semantic": 0.3}, rejected="a weaker match"),),
    agents=(CandidateView(agent="codex", active=2, max_concurrent=2, eligible=False, rejected_because="has no slot"),),
    classification=ClassificationView(source="kept", clamped_from=Tier.POWERFUL),
    constraints=ConstraintsView(tier_ceiling=Tier.FAST),
    handoff=DecidedHandoffView(accepted=True, to="cook", hop=1, max_handoffs=2, reason="soup", files=("a", "b")),
    selection=SelectionView(escalation=("cook", "human_review")),
    shadow=DecidedShadowView(about="placement", beside="d0", actual=ChosenView(agent="codex"), differs=True),
)


@pytest.mark.parametrize(
    "line",
    [
        "compared cook 0.400 (semantic 0.300), a weaker match",
        "agent codex has no slot",
        "tier source kept",
        "tier clamped from powerful",
        "left open Tier from fast to fast.",
        "handoff reason soup",
        "handoff files a, b",
        "escalation cook, human_review",
        "shadow differs True",
        "shadow actual agent: codex",
    ],
)
def test_all_that_was_recorded_is_shown(line: str) -> None:
    assert line in [" ".join(shown.split()) for shown in decision_text(PLACED).splitlines()]


def test_all_are_exported_as_lines(command: Command) -> None:
    lines = [json.loads(line) for line in command("decisions", "export").stdout.splitlines()]
    assert len(lines) == MESSAGES
    assert {line["kind"] for line in lines} == {"triage"}
    for until in ("2020-01-01T00:00:00Z", "2020-01-01", "100d"):
        assert command("decisions", "export", "--until", until).stdout == "", until


def test_what_cannot_be_meant_is_refused(command: Command) -> None:
    for option, value, remedy in (
        ("--kind", "tirage", "did you mean `triage`?"),
        ("--since", "yesterday", "'yesterday' is not a time; write 22:00, 12h, 2026-11-27"),
        ("--route", "nowhere", "is not one of specialist"),
    ):
        done = command("decisions", "list", option, value)
        assert done.returncode == 2
        text = " ".join(done.stderr.split())
        assert option in text
        assert remedy in text
        assert "Value error" not in text


def test_none_is_said(command: Command) -> None:
    assert "No decision matches" in command("decisions", "list", "--risk", "high").stderr
