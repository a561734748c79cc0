"""The vectors of cards' texts: made once, kept where that takes time, and let go of."""

from collections.abc import Sequence

import numpy as np
import pytest
from sqlalchemy import Connection

from claudomator_py.daemon.health import trouble_check
from claudomator_py.dispatch.card_vectors import KEPT_MS, SpecialistDirectory, TextVectors
from claudomator_py.dispatch.deciding import Decider
from claudomator_py.dispatch.policing import Policing
from claudomator_py.domain.card import Registration
from claudomator_py.domain.health import Trouble
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.embed import Hashed
from claudomator_py.policy.verdict import Policy
from claudomator_py.ports import EncoderFault
from claudomator_py.routing.calibration import Calibration, Weights, calibration_for
from claudomator_py.routing.profile import Request
from claudomator_py.routing.ranking import RoutingRules
from claudomator_py.routing.space import SparseRow, Vector
from claudomator_py.schema.routing_settings import Preset
from claudomator_py.store import specialist_rows
from claudomator_py.store.database import Database
from tests.fakes.cards import card
from tests.fakes.world import World

NOW_MS = 1_790_000_000_000


class Clock:
    now = NOW_MS

    def __call__(self) -> int:
        return self.now


class Lengths:
    """Tells texts apart by their length alone."""

    dimensions = 100

    def __init__(self, name: str = "lengths", *, immediate: bool = False) -> None:
        self.id = name
        self.immediate = self.weighs_rarity = immediate
        self.asked: list[str] = []
        self.broken = False

    def encode(self, texts: Sequence[str]) -> Vector:
        if self.broken:
            raise EncoderFault("gone")
        self.asked.extend(texts)
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[len(text)] = 2.5
        return rows

    def close(self) -> None:
        pass


def told(vectors: TextVectors, *texts: str) -> dict[str, int]:
    """By text, where its vector is not 0."""
    results = vectors.of({name: name for name in texts})
    return {name: int(np.flatnonzero(dense(row))[0]) for name, row in results.items()}


def dense(row: Vector | SparseRow) -> Vector:
    return row.dense if isinstance(row, SparseRow) else row


@pytest.mark.parametrize("immediate", [True, False])
def test_only_what_is_new_is_encoded(database: Database, immediate: bool) -> None:
    encoder = Lengths(immediate=immediate)
    vectors = TextVectors(database, encoder, Clock())
    assert told(vectors, "a", "bb") == {"a": 1, "bb": 2}
    assert told(vectors, "a", "bb", "ccc") == {"a": 1, "bb": 2, "ccc": 3}
    assert told(vectors, "a", "ccc") == {"a": 1, "ccc": 3}
    assert encoder.asked == ["a", "bb", "ccc"]
    assert dense(vectors.of({"a": "a"})["a"])[1] == 2.5


def test_what_takes_time_is_there_after_a_restart(database: Database) -> None:
    told(TextVectors(database, Lengths(), Clock()), "a", "bb")
    encoder = Lengths()
    assert told(TextVectors(database, encoder, Clock()), "a", "ccc") == {"a": 1, "ccc": 3}
    assert encoder.asked == ["ccc"]


def test_what_is_made_at_once_is_not_stored(database: Database) -> None:
    encoder = Lengths(immediate=True)
    told(TextVectors(database, encoder, Clock()), "a")
    assert database.read(lambda connection: specialist_rows.kept_vectors(connection, encoder.id, ["a"])) == {}


def test_a_row_that_no_card_needs_goes_in_a_week(database: Database) -> None:
    clock, encoder = Clock(), Lengths()
    vectors = TextVectors(database, encoder, clock)
    told(TextVectors(database, Lengths("former"), clock), "a", "bb")

    def rows(name: str) -> set[str]:
        return set(database.read(lambda connection: specialist_rows.kept_vectors(connection, name, ["a", "bb", "ccc"])))

    told(vectors, "a", "bb")
    told(vectors, "a")
    assert rows("lengths") == {"a", "bb"}
    clock.now = NOW_MS + KEPT_MS + 1
    told(vectors, "a", "ccc")
    assert (rows("lengths"), rows("former")) == ({"a", "ccc"}, {"a"})


def test_a_fault_loses_nothing(database: Database) -> None:
    encoder = Lengths()
    vectors = TextVectors(database, encoder, Clock())
    told(vectors, "a")
    encoder.broken = True
    with pytest.raises(EncoderFault):
        told(vectors, "a", "bb")
    assert told(vectors, "a") == {"a": 1}


def test_vectors_of_another_width_are_made_again(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a server that has another model under the same name now, and does not say so before it is asked."""
    told(TextVectors(database, Lengths(), Clock()), "a", "bb")
    encoder = Lengths()
    encoder.dimensions = 0
    usual = encoder.encode

    def learns(texts: Sequence[str]) -> Vector:
        encoder.dimensions = 50
        return usual(texts)

    monkeypatch.setattr(encoder, "encode", learns)
    result = TextVectors(database, encoder, Clock()).of({name: name for name in ("a", "bb", "ccc")})

    assert {len(vector) for vector in result.values()} == {50}


def test_a_task_that_cannot_be_compared_has_the_cards_encoded_again(database: Database) -> None:
    world, encoder = World(database), Lengths()
    world.specialists.register(card("plumber"))
    directory = SpecialistDirectory(database, encoder, calibration_for(Preset.CALIBRATED, "lengths"), world.clock)
    directory.roster()
    encoder.dimensions = 50

    assert directory.cosines("leaks")["plumber", None] >= 0


@pytest.mark.parametrize(("value", "problem"), [(0.0, "zero vectors"), (1.0, "the same vector for different texts")])
def test_an_encoder_that_tells_no_text_from_another_has_failed(database: Database, value: float, problem: str) -> None:
    encoder = Lengths()
    encoder.encode = lambda texts: np.full((len(texts), 100), value, dtype=np.float32)  # type: ignore[method-assign]
    vectors = TextVectors(database, encoder, Clock())
    with pytest.raises(EncoderFault, match=problem):
        vectors.of({text: text for text in "abcdefgh"})


def test_a_task_whose_vector_has_no_length_is_compared_by_words(database: Database) -> None:
    world, encoder = World(database), Lengths()
    world.specialists.register(card("plumber"))
    directory = SpecialistDirectory(database, encoder, calibration_for(Preset.CALIBRATED, "lengths"), world.clock)
    directory.roster()
    encoder.encode = lambda texts: np.zeros((len(texts), 100), dtype=np.float32)  # type: ignore[method-assign]
    with pytest.raises(EncoderFault, match="zero vectors"):
        directory.cosines("leaks")


def test_texts_that_differ_in_case_alone_may_have_one_vector(database: Database) -> None:
    vectors = TextVectors(database, Hashed(), Clock())
    rows = vectors.of({"a": "Mend the pipe", "b": "mend the pipe!"})
    assert isinstance(rows["a"], SparseRow)
    assert isinstance(rows["b"], SparseRow)
    assert np.array_equal(rows["a"].dense, rows["b"].dense)


def test_a_failing_encoder_is_told_of_until_it_answers(database: Database) -> None:
    world = World(database, routing=True)
    world.specialists.register(card("plumber"))
    decider = world.router.decider
    directory = decider._directory
    assert directory is not None
    look = directory.look

    def failing(*_: object) -> object:
        raise EncoderFault("connection refused")

    directory.look = failing  # type: ignore[method-assign, assignment]
    began_ms = world.now_ms
    for name in ("first", "second"):
        world.submit(name, instructions="Mend the pipe.")
        world.router.route()
        world.now_ms += 1_000
    assert decider.trouble == Trouble("connection refused", began_ms)
    (check,) = trouble_check("encoder", decider.trouble, "words are compared", "look at it")
    assert (check.ok, check.blocking) == (False, False)
    assert check.detail == "connection refused; since 2026-09-21 14:13 UTC words are compared"

    directory.look = look  # type: ignore[method-assign]
    world.submit("third", instructions="Mend the pipe.")
    world.router.route()
    assert trouble_check("encoder", decider.trouble, "words are compared", "look at it") == []


def test_a_card_that_changes_is_read_and_no_other(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    world, encoder = World(database), Hashed()
    for name in ("plumber", "painter", "mason"):
        world.specialists.register(card(name))
    calibration = calibration_for(Preset.CALIBRATED, encoder.id)
    directory = SpecialistDirectory(database, encoder, calibration, world.clock)
    directory.roster()
    read: list[str] = []
    usual = specialist_rows.seen

    def seen(connection: Connection, ids: Sequence[str]) -> Sequence[Registration]:
        read.extend(ids)
        return usual(connection, ids=ids)

    world.specialists.register(card("mason", description="Builds garden walls"))
    world.specialists.remove("painter")
    monkeypatch.setattr(specialist_rows, "seen", seen)
    roster = directory.roster()

    assert read == ["mason"]
    assert list(roster.cards) == ["mason", "plumber"]
    fresh = SpecialistDirectory(database, encoder, calibration, world.clock)
    monkeypatch.undo()
    asked = Request("a wall in the garden")
    compared = [entry.compare(entry.roster(), [asked])[0].likeness for entry in (directory, fresh)]
    assert dict(compared[0]) == dict(compared[1])


def test_words_are_compared_beside_an_encoder_as_its_calibration_says(database: Database) -> None:
    """To the encoder all texts of equal length are one; words tell them apart."""
    world, encoder, plain = World(database), Lengths(), Hashed()
    world.specialists.register(card("plumber", description="Mends dripping taps"))
    world.specialists.register(card("painter", description="Paints wooden doors"))
    weights = Weights(semantic=0.6, words=0.4)
    rules = RoutingRules(Calibration(encoder=encoder.id, weights=weights, threshold=0.1))
    by_words = RoutingRules(calibration_for(Preset.CALIBRATED, plain.id))
    directory = SpecialistDirectory(database, encoder, rules.calibration, world.clock)
    words = SpecialistDirectory(database, plain, by_words.calibration, world.clock)
    policing = Policing(Policy(()), world.budgets, world.clock, reviews=True)
    decider = Decider(database, world.registry, directory, words, rules, by_words, world.clock, policing)

    def parts(text: str) -> dict[str, dict[str, float]]:
        decided = decider.preview(Request(text), OPERATOR)
        assert decided is not None
        assert decided.record is not None
        return {
            specialist_candidate.specialist: specialist_candidate.parts
            for specialist_candidate in decided.record.specialist_candidates
        }

    results = parts("the tap in the kitchen drips")
    alone = words.compare(words.roster(), [Request("the tap in the kitchen drips")])[0].likeness
    assert {name: part["words"] for name, part in results.items()} == {
        name: pytest.approx(0.4 * entry.semantic, abs=1e-6) for name, entry in alone.items()
    }
    assert results["plumber"]["words"] > results["painter"]["words"]
