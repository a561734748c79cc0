"""The cards that come with Claudomator: valid, distinct, and found by the tasks that are meant for them."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.card import Card
from claudomator_py.domain.task import Permissions, TaskSpec
from claudomator_py.embed import Hashed
from claudomator_py.lab.evaluation import space_of
from claudomator_py.routing.calibration import SHIPPED
from claudomator_py.routing.profile import Request, profile_of, text_hash
from claudomator_py.routing.ranking import RoutingRules, decide, rank
from claudomator_py.routing.role import done_by
from claudomator_py.routing.space import Space, Vector
from claudomator_py.scheduler.records import SpecialistRecord
from claudomator_py.schema.agent_settings import MODEL_KINDS
from claudomator_py.schema.cardfile import files_hash, shipped_cards, shipped_files
from claudomator_py.schema.routing_settings import RoutingSettings

LABELLED = Path(__file__).parents[2] / "data/routing/tasks.jsonl"
LEAST = 0.6
"""The share that has to find its specialist: well below what is measured, and far above chance."""

ENCODER = Hashed()
CALIBRATION = SHIPPED[ENCODER.id]
FILES = shipped_files()
CARDS = {card.id: card for card in shipped_cards(FILES)}
WITH_SKILLS = [card for card in CARDS.values() if card.skills]
KNOWN: dict[str, Vector] = {}


def space(cards: list[Card]) -> Space:
    profiles = [profile_of(card) for card in cards]
    new = sorted({text for profile in profiles for text in profile.texts if text_hash(text) not in KNOWN})
    KNOWN.update(zip(map(text_hash, new), ENCODER.encode(new), strict=True))
    return Space(
        profiles, KNOWN, weighs_rarity=True, own_share=CALIBRATION.own_share, card_share=CALIBRATION.card_share
    )


def routed(request: Request, cards: list[Card], among: Space) -> SpecialistRecord:
    likeness = among.likeness(ENCODER.encode([request.compared])[0])
    rules = RoutingRules(CALIBRATION, default=RoutingSettings().default_specialist)
    ranked = rank(request, cards, likeness, CALIBRATION)
    return decide(ranked, {card.id: card for card in cards}, rules)


def without(card: Card, example: str) -> Card:
    """The card as if nobody had thought of the example."""
    skills = [
        skill.model_copy(update={"examples": tuple(entry for entry in skill.examples if entry != example)})
        for skill in card.skills
    ]
    return card.model_copy(update={"skills": tuple(skills)})


def test_each_file_has_the_card_of_its_name() -> None:
    assert list(CARDS) == sorted(FILES)
    assert RoutingSettings().default_specialist in CARDS


def test_the_hash_changes_with_a_name_or_a_letter() -> None:
    name, content = next(iter(FILES.items()))
    others = {key: value for key, value in FILES.items() if key != name}
    messages = {files_hash(FILES), files_hash({**FILES, name: content + b"#"}), files_hash({"new": content, **others})}
    assert len(messages) == 3


def test_no_keyword_is_shared_or_a_single_word() -> None:
    counter = Counter(keyword.casefold() for card in CARDS.values() for keyword in card.keywords)
    assert set(counter.values()) == {1}
    assert all(" " in keyword for keyword in counter)


@pytest.mark.parametrize("card", WITH_SKILLS, ids=lambda card: card.id)
def test_a_card_says_enough_to_be_found_and_to_be_worked_by(card: Card) -> None:
    assert 4 <= len(card.keywords) <= 6
    assert [len(set(skill.examples)) for skill in card.skills] == [5] * 4
    assert 4 <= len(card.system_prompt.splitlines()) <= 8
    assert "Not for" in card.description or "not for" in card.description


def test_no_example_is_given_twice() -> None:
    examples = Counter(text for card in CARDS.values() for skill in card.skills for text in skill.examples)
    assert set(examples.values()) == {1}


@pytest.mark.parametrize("card", CARDS.values(), ids=lambda card: card.id)
@pytest.mark.parametrize("kind", MODEL_KINDS)
def test_every_kind_of_agent_can_keep_to_the_permissions(card: Card, kind: str) -> None:
    task = done_by(TaskSpec(name="t", instructions="do it"), card)
    assert AGENT_KINDS[kind].unsupported(task, AgentSpec(name="a", kind=kind)) == []


@pytest.mark.parametrize("card", WITH_SKILLS, ids=lambda card: card.id)
def test_examples_are_most_like_the_other_examples_of_their_card(card: Card) -> None:
    examples = [example for skill in card.skills for example in skill.examples]
    first = []
    for example in examples:
        cards = [without(entry, example) if entry is card else entry for entry in CARDS.values()]
        first.append(routed(Request(example), cards, space(cards)).specialist_candidates[0].specialist)
    # Security is a matter of what every other role works on as well.
    least = 0.5 if card.id == "security-auditor" else LEAST
    assert first.count(card.id) >= least * len(examples), Counter(first)


def test_tasks_of_other_subjects_are_most_like_their_specialist_and_go_to_no_other() -> None:
    """By what the labelled tasks expect. What is not clearly for one of them goes to the default specialist."""
    cards = list(CARDS.values())
    among, nearest, expected, wrong = space_of(cards, ENCODER, CALIBRATION), Counter[str](), Counter[str](), []
    for line in LABELLED.read_text().splitlines():
        task = json.loads(line)
        wanted = task["expected"]["specialist"]
        record = routed(Request(task["instructions"], task["name"].replace("-", " ")), cards, among)
        expected[wanted] += 1
        others = [
            specialist_candidate.specialist
            for specialist_candidate in record.specialist_candidates
            if specialist_candidate.specialist != "generalist"
        ]
        nearest[wanted] += wanted in (others[0], "generalist")
        if record.specialist not in (wanted, "generalist"):
            wrong.append((task["id"], record.specialist))
    assert set(expected) == set(CARDS)
    assert all(nearest[name] >= LEAST * count for name, count in expected.items()), nearest
    assert wrong == []


_FORBIDS = re.compile(
    r"\b(?:do not|don't|never|nothing|no file|only|instead|must not|refuse|without being asked)\b", re.IGNORECASE
)
_NOT_OF_THE_TASK = ("Never print a secret", "invent nothing")
"""What no task asks for anyway."""


@pytest.mark.parametrize("card", CARDS.values(), ids=lambda card: card.id)
def test_a_role_says_how_and_forbids_nothing_that_a_task_may_ask_for(card: Card) -> None:
    lines = [line for line in card.system_prompt.splitlines() if not any(words in line for words in _NOT_OF_THE_TASK)]
    assert [line for line in lines if _FORBIDS.search(line)] == []
    assert card.permissions == Permissions()
    assert card.owner is not None
    assert card.escalation == "human_review"
    if card.id == "generalist":
        assert card.system_prompt == ""
    else:
        assert (card.fallback, card.expected_output is not None, card.lead > 0) == ("default", True, True)


@pytest.mark.parametrize("name", ["slow", "fix it", "nice", "task 17", "todo", "2026 11 27", "job a3f9c2"])
def test_a_name_that_could_be_about_anything_changes_nothing(name: str) -> None:
    cards = list(CARDS.values())
    among = space_of(cards, ENCODER, CALIBRATION)
    assert routed(Request("Write the README", name), cards, among) == routed(Request("Write the README"), cards, among)
