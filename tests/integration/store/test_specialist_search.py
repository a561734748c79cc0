"""What specialists are found by: words in any form, whatever text is asked for, and vectors that are kept."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from claudomator_py.store import full_text, specialist_rows
from claudomator_py.store.database import Database
from tests.fakes.cards import card
from tests.integration.store.registry import ANN, NOW, Registry


@pytest.fixture
def registry(database: Database) -> Registry:
    return Registry(database)


def test_words_are_found_in_any_form_in_names_descriptions_tags_and_examples(registry: Registry) -> None:
    skill = {"id": "leaks", "name": "Leaks", "description": "Finds it.", "tags": ["wet"], "examples": ["A sink drips"]}
    registry.register(card("plumber", name="Pipe Doctor", keywords=["burst pipe"], skills=[skill]))
    for query in ("leaking", "WET", "dripping sinks", "find"):
        assert registry.found_by(query) == {("plumber", "leaks")}, query
    for query in ("doctor", "bursts", "plumber"):
        assert registry.found_by(query) == {("plumber", None)}, query


def test_words_that_say_nothing_are_left_out(registry: Registry) -> None:
    registry.register(card("plumber", description="The one who is there for you."))
    assert full_text.words_of("Please, the one for YOU; one!") == ("one",)
    assert registry.found_by("the is there for you") == set()
    assert full_text.words_of(" ".join(f"w{n}" for n in range(100)))[-1] == "w31"


SYNTAX = [
    *('"', '""', "'", "AND", "OR NOT", "NEAR(a b)", "title:plumber", "plumber*", "^plumber", "-plumber", "+plumber"),
    *("plumber)", "(", "{title body}: plumber", "a\0b", "&|!", "<->", ":*", "\\", "%", "_", "';--", "NULL", "\ud800"),
]


@pytest.mark.parametrize("query", SYNTAX)
def test_no_text_is_syntax(registry: Registry, query: str) -> None:
    registry.register(card("plumber"))
    results = registry.found_by(query)
    assert results == ({("plumber", None), ("plumber", "plumber-work")} if "plumber" in query else set())


@pytest.mark.parametrize("database_kind", ["sqlite", "postgresql"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text(max_size=40))
def test_any_text_can_be_searched_for(registry: Registry, query: str) -> None:
    registry.found_by(query)


@pytest.mark.parametrize("database_kind", ["sqlite"])
def test_the_index_of_sqlite_is_whole_after_every_kind_of_change(registry: Registry) -> None:
    registry.ship(card("generalist"))
    registry.register(card("plumber"), ANN)
    registry.register(card("plumber", description="Fixes pipes."), ANN)
    registry.change(card("generalist", description="Ours."))
    registry.remove("generalist")
    registry.remove("plumber", ANN)
    check = text("INSERT INTO specialist_text (specialist_text, rank) VALUES ('integrity-check', 1)")
    registry.write(lambda connection: connection.execute(check))


def test_vectors_are_kept_by_text_and_encoder(database: Database) -> None:
    entry, other = np.array([1.0, 2.5], dtype=np.float32), np.array([0.0, -1.0], dtype=np.float32)
    database.write(lambda connection: specialist_rows.keep_vectors(connection, "e1", {"a": entry, "b": other}, NOW))
    database.write(lambda connection: specialist_rows.keep_vectors(connection, "e1", {"b": entry}, NOW))
    database.write(lambda connection: specialist_rows.keep_vectors(connection, "e2", {"a": other}, NOW))

    def kept(encoder: str) -> dict[str, list[float]]:
        results = database.read(lambda connection: specialist_rows.kept_vectors(connection, encoder, ["a", "b", "c"]))
        return {text_hash: vector.tolist() for text_hash, vector in results.items()}

    assert kept("e1") == {"a": [1.0, 2.5], "b": [1.0, 2.5]}
    assert kept("e2") == {"a": [0.0, -1.0]}
    assert database.read(lambda connection: specialist_rows.texts_encoded_before(connection, NOW)) == []
    assert database.read(lambda connection: specialist_rows.texts_encoded_before(connection, NOW + 1)) == ["a", "b"]
    database.write(lambda connection: specialist_rows.drop_vectors(connection, ["a", "c"]))
    assert (kept("e1"), kept("e2")) == ({"b": [1.0, 2.5]}, {})
