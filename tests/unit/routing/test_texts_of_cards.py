"""Who does a task, from its text and the texts of the cards: what of both is compared, and what is alike."""

import re
from pathlib import Path

import pytest

from claudomator_py.domain.card import Card
from claudomator_py.domain.learning import LabelVerdict
from claudomator_py.embed import Hashed
from claudomator_py.lab.evaluation import space_of
from claudomator_py.routing.calibration import CLASSIC, SHIPPED
from claudomator_py.routing.lessons import (
    NO_PERFORMANCE,
    SpecialistStats,
    moved,
)
from claudomator_py.routing.profile import Request, profile_of, text_hash
from claudomator_py.routing.ranking import (
    RoutingRules,
    decide,
    rank,
    topic_of,
)
from claudomator_py.routing.space import Space, Vector
from claudomator_py.scheduler.records import Route
from claudomator_py.schema.cardfile import shipped_cards, shipped_files
from tests.fakes.cards import card

ENCODER = Hashed()

CARDS = (
    card(
        "database-administrator",
        description="Runs databases.",
        skills=[{"id": "backup", "name": "Backups", "examples": ["Restore last night's dump of the orders database"]}],
    ),
    card(
        "technical-writer",
        description="Writes documentation.",
        skills=[
            {"id": "guide", "name": "Guides", "examples": ["Write a tutorial for the command line"]},
            {"id": "notes", "name": "Release notes", "examples": ["Summarise what changed since version 2"]},
        ],
    ),
)


def space(cards: tuple[Card, ...], own_share: float = 0.35) -> Space:
    profiles = [profile_of(card) for card in cards]
    texts = sorted({text for profile in profiles for text in profile.texts})
    vectors: dict[str, Vector] = dict(zip(map(text_hash, texts), ENCODER.encode(texts), strict=True))
    return Space(profiles, vectors, weighs_rarity=True, own_share=own_share)


@pytest.mark.parametrize(
    ("text", "specialist", "skill"),
    [
        ("restore the dump of the customers database", "database-administrator", "backup"),
        ("a tutorial for the command line, please", "technical-writer", "guide"),
        ("sumarize wat changed since version three", "technical-writer", "notes"),
    ],
)
def test_a_task_goes_to_whom_it_is_most_like(text: str, specialist: str, skill: str) -> None:
    likeness = space(CARDS).likeness(ENCODER.encode([Request(text).compared])[0])
    calibration = SHIPPED[ENCODER.id]

    record = decide(
        rank(Request(text), CARDS, likeness, calibration),
        {card.id: card for card in CARDS},
        RoutingRules(calibration, default="generalist"),
    )

    assert (record.route, record.specialist, record.skill) == (Route.SPECIALIST, specialist, skill)
    assert record.specialist_candidates[0].parts["semantic"] == record.confidence


@pytest.mark.parametrize("name", ["", "fix-login", "task-17", "login redirect"])
def test_the_first_task_of_the_readme_gets_no_role_that_minds_it(name: str) -> None:
    readme = (Path(__file__).parents[3] / "README.md").read_text("utf-8")
    match = re.search(r"^instructions: \|\n((?:  .*\n)+)", readme, re.MULTILINE)
    assert match is not None
    request, calibration = Request(match[1], name=name), SHIPPED[ENCODER.id]
    cards = [card for card in shipped_cards(shipped_files()) if card.skills]
    likeness = space_of(cards, ENCODER, calibration).likeness(ENCODER.encode([request.compared])[0])

    record = decide(
        rank(request, cards, likeness, calibration),
        {card.id: card for card in cards},
        RoutingRules(calibration, default="generalist"),
    )

    assert record.specialist in ("generalist", "frontend-engineer", "backend-engineer")


def test_a_card_without_skills_is_compared_by_what_it_says() -> None:
    bare = (card("gardener", description="Plants trees and cuts hedges.", skills=[]), *CARDS)
    likeness = space(bare).likeness(ENCODER.encode(["cut the hedges"])[0])

    assert max(likeness, key=lambda name: likeness[name].semantic) == "gardener"
    assert likeness["gardener"].skill is None


def test_without_cards_and_without_words_nothing_is_alike() -> None:
    assert space(()).likeness(ENCODER.encode(["anything"])[0]) == {}
    assert {entry.semantic for entry in space(CARDS).likeness(ENCODER.encode(["?"])[0]).values()} == {0.0}


def test_the_one_vector_of_a_card_is_of_its_system_prompt_too() -> None:
    entry = card("one", description="Mends.", system_prompt="Be careful with pipes.", keywords=["tap leaks"], skills=[])

    assert profile_of(entry).texts == ("one Mends. tap leaks",)
    assert profile_of(entry).as_one.weighed == ("one Mends. tap leaks\nBe careful with pipes.",)


def test_a_card_of_one_vector_still_says_what_a_task_is_about() -> None:
    taps = {"id": "taps", "name": "Taps", "description": "Mends taps.", "examples": ["Mend the dripping tap."]}
    drains = {"id": "drains", "name": "Drains", "description": "Clears.", "examples": ["Clear the blocked drain."]}
    cards = [card("plumber", skills=[taps, drains]), card("other", skills=[])]
    tap = ENCODER.encode(["the tap drips"])

    results = space_of(cards, ENCODER, CLASSIC).likeness(tap[0])

    without = [
        card("plumber", description=profile_of(cards[0]).as_one.own.removeprefix("plumber "), skills=[]),
        card("other", skills=[]),
    ]
    assert results["plumber"].skill == "taps"
    plain = space_of(without, ENCODER, CLASSIC).likeness(tap[0])
    assert {name: entry.semantic for name, entry in results.items()} == {
        name: entry.semantic for name, entry in plain.items()
    }


def test_an_override_in_one_topic_does_not_move_another_in_classic() -> None:
    taps = {"id": "taps", "name": "Taps", "description": "Mends taps.", "examples": ["Mend the dripping tap."]}
    drains = {"id": "drains", "name": "Drains", "description": "Clears.", "examples": ["Clear the blocked drain."]}
    cards = [card("plumber", skills=[taps, drains]), card("other", skills=[])]
    overridden = moved(NO_PERFORMANCE, LabelVerdict.NEGATIVE, 0.5)
    standings = {("plumber", "taps"): SpecialistStats(overridden, None)}

    results = {}
    for text in ("the tap drips", "the drain is blocked"):
        likeness = space_of(cards, ENCODER, CLASSIC).likeness(ENCODER.encode([text])[0])
        topic = topic_of(cards, likeness)
        before, after = (
            {
                specialist_candidate.specialist: specialist_candidate.parts["performance"]
                for specialist_candidate in rank(Request(text), cards, likeness, CLASSIC, standings=known, topic=topic)
            }
            for known in ({}, standings)
        )
        assert before["other"] == after["other"]
        results[topic] = round(after["plumber"] - before["plumber"], 6)

    assert results == {"taps": round(CLASSIC.weights.performance * (overridden - NO_PERFORMANCE), 6), "drains": 0.0}


def test_a_name_that_says_something_is_part_of_the_text() -> None:
    assert Request("Do it.", "fix login", ("web",)).compared == "fix login\nDo it.\nweb"
    assert Request("Do it.", "task 17").compared == Request("Do it.").compared == "Do it."


@pytest.mark.parametrize(
    "name", ["task 17", "ev d028", "SHOP 412", "kanban 7", "gh1234", "q3 12", "2026 11 29", "0001"]
)
def test_a_name_that_is_a_key_changes_nothing(name: str) -> None:
    assert Request("Restore the dump.", name).compared == "Restore the dump."


@pytest.mark.parametrize("name", ["login timeout 2", "pg16 upgrade", "3 slow queries", "invoices"])
def test_a_name_of_words_is_compared_though_there_is_a_number_in_it(name: str) -> None:
    assert Request("Restore the dump.", name).compared == f"{name}\nRestore the dump."
