"""What the prompt of a text is that names a command of the agent: the text alone, if nothing else has to be said."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from claudomator_py.agents.kinds import info_of
from claudomator_py.dispatch.run_context import RunContext
from claudomator_py.domain.handoff import SlashUse
from claudomator_py.domain.inputs import MARKER
from claudomator_py.domain.run import ResumedConversation
from claudomator_py.prompts.slash import SlashPlace
from claudomator_py.store.tables import Task
from tests.fakes.cards import card
from tests.fakes.steps import spec

REVIEWER = card("reviewer", system_prompt="You review.", expected_output="a verdict")


@pytest.fixture
def place(tmp_path: Path) -> SlashPlace:
    file = tmp_path / ".claude/commands/review.md"
    file.parent.mkdir(parents=True)
    file.write_text("Review $ARGUMENTS.")
    return SlashPlace(info_of("claude"), str(tmp_path), {}, fenced=False)


def prompted(place: SlashPlace, text: str, note: str | None = None, words: str = "", **fields: Any) -> tuple[str, str]:
    """How the text is used, and the prompt. words: what the operator adds."""
    resumed = {"run_id": "r", "agent": "claude", "kind": "claude", "tier": None, "revision": 1, "words": words}
    resumes = ResumedConversation.model_validate({**resumed, "given_up": True}).model_dump(mode="json")
    row = SimpleNamespace(id="t", resume=resumes if words else None, skill=None, organisation=None)
    given = spec("t", instructions=text, **fields)
    context = RunContext(cast(Task, row), given, known=given, card=REVIEWER)
    slash = context.slash(note, lambda: place)
    return "none" if slash is None else slash.use.value, context.prompt(note, converses=True, slash=slash)


def test_a_command_stands_alone_without_role_and_question(place: SlashPlace) -> None:
    alone = (SlashUse.COMMAND.value, "/review 12\n")
    assert prompted(place, "/review 12\n") == alone
    assert prompted(place, "/review 12", expected_output="a verdict") == alone, "that is the card's"


@pytest.mark.parametrize("more", [{"expected_output": "a list"}, {"note": "# Handoff"}, {"words": "Hurry."}])
def test_what_else_has_to_be_said_makes_it_a_text(place: SlashPlace, more: dict[str, Any]) -> None:
    use, prompt = prompted(place, "/review 12", **more)
    assert use == SlashUse.WITH_MORE.value
    assert prompt.startswith("# Your role")
    assert "\n\n/review 12\n" in prompt
    assert str(next(iter(more.values()))) in prompt


def test_another_text_keeps_its_role(place: SlashPlace) -> None:
    assert prompted(place, "/login redirects")[0] == SlashUse.UNKNOWN.value
    use, prompt = prompted(place, "Review 12.")
    assert use == "none"
    assert prompt.startswith("# Your role")
    assert MARKER in prompt
