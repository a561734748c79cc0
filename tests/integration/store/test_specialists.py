"""The registry of specialists on both databases: who sees a card, who may change it, and what it is found by."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, text

from claudomator_py.domain.card import SHIPPER, Card, Registration
from claudomator_py.domain.errors import Conflict, Forbidden, NotFound, StaleVersion
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.store import embedding_rows, events, full_text, specialist_rows
from claudomator_py.store.database import Database
from claudomator_py.tasks import specialists
from tests.fakes.cards import card

NOW = 1_790_000_000_000
ANN = Principal("ann", Role.OPERATE, "acme")
AMY = Principal("amy", Role.OPERATE, "acme")
ADA = Principal("ada", Role.ADMIN, "acme")
BOB = Principal("bob", Role.OPERATE, "bolt")
BEN = Principal("ben", Role.OPERATE, "bolt")
CARL = Principal("carl", Role.READ)
RUN = Principal("run:1", Role.RUN, "acme", "1")
OWN_RUN = Principal("run:2", Role.RUN, None, "2")
EVERYBODY = (ANN, AMY, ADA, BOB, BEN, CARL, RUN, OWN_RUN, OPERATOR)

T = TypeVar("T")


class Registry:
    """What the tests ask of one database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.now_ms = NOW

    def write(self, change: Callable[[Connection], T]) -> T:
        return self.database.write(change)

    def register(self, new: Card, by: Principal = OPERATOR, **more: Any) -> Registration:
        return self.write(lambda connection: specialists.register(connection, new, by, self.now_ms, **more))

    def change(self, new: Card, by: Principal = OPERATOR, **more: Any) -> Registration:
        return self.write(lambda connection: specialists.change(connection, new, by, self.now_ms, **more))

    def remove(self, specialist_id: str, by: Principal = OPERATOR, **more: Any) -> None:
        self.write(lambda connection: specialists.remove(connection, specialist_id, by, self.now_ms, **more))

    def grant(self, specialist_id: str, grantee: str, by: Principal = OPERATOR) -> Registration:
        return self.write(lambda connection: specialists.grant(connection, specialist_id, grantee, by, self.now_ms))

    def revoke(self, specialist_id: str, grantee: str, by: Principal = OPERATOR) -> Registration:
        return self.write(lambda connection: specialists.revoke(connection, specialist_id, grantee, by, self.now_ms))

    def ship(self, *cards: Card) -> None:
        self.write(lambda connection: specialists.ship(connection, cards, self.now_ms))

    def seen(self, by: Principal = OPERATOR) -> list[str]:
        found = self.database.read(lambda connection: specialist_rows.seen(connection, by))
        assert [one.card.id for one in found] == list(self.database.read(lambda c: specialist_rows.ids_seen(c, by)))
        return [one.card.id for one in found]

    def find(self, specialist_id: str, by: Principal = OPERATOR) -> Registration | None:
        return self.database.read(lambda connection: specialist_rows.find(connection, specialist_id, by))

    def hash(self, by: Principal = OPERATOR) -> str:
        return self.database.read(lambda connection: specialist_rows.registry_hash(connection, by))

    def found_by(self, query: str, by: Principal = OPERATOR) -> set[tuple[str, str | None]]:
        words = full_text.words_of(query)
        return set(self.database.read(lambda connection: full_text.hits(connection, words, by)))

    def events(self) -> list[tuple[str, dict[str, Any]]]:
        found = self.database.read(lambda connection: events.following(connection, 0, 1_000))
        return [(event.kind, dict(event.data)) for event in found]


@pytest.fixture
def registry(database: Database) -> Registry:
    return Registry(database)


def seen_by(registry: Registry, specialist_id: str) -> set[str]:
    """Who sees the card: in the list, by its id, and by its text, which all have to agree."""
    listed = {one.id for one in EVERYBODY if specialist_id in registry.seen(one)}
    assert listed == {one.id for one in EVERYBODY if registry.find(specialist_id, one) is not None}
    found = {one.id for one in EVERYBODY if {first for first, _ in registry.found_by(specialist_id, one)}}
    assert listed == found
    return listed


def test_a_public_card_exists_for_everybody_and_that_is_the_default(registry: Registry) -> None:
    registry.register(card("plumber"), ANN)
    assert seen_by(registry, "plumber") == {one.id for one in EVERYBODY}


def test_a_shared_card_exists_for_its_organisation(registry: Registry) -> None:
    registry.register(card("plumber", visibility="shared"), ANN)
    assert seen_by(registry, "plumber") == {"ann", "amy", "ada", "run:1", "carl", "operator"}


def test_a_shared_card_of_the_daemon_itself_exists_for_no_organisation(registry: Registry) -> None:
    registry.register(card("plumber", visibility="shared"))
    assert seen_by(registry, "plumber") == {"run:2", "carl", "operator"}


def test_a_private_card_exists_for_its_creator(registry: Registry) -> None:
    registry.register(card("plumber", visibility="private"), ANN)
    assert seen_by(registry, "plumber") == {"ann", "carl", "operator"}


def test_a_grant_adds_a_principal_or_an_organisation_until_it_is_revoked(registry: Registry) -> None:
    registry.register(card("plumber", visibility="shared"), ANN)
    own = seen_by(registry, "plumber")

    assert registry.grant("plumber", "bob", ANN).grants == ("bob",)
    assert seen_by(registry, "plumber") == own | {"bob"}
    assert registry.grant("plumber", "org:bolt", ANN).grants == ("bob", "org:bolt")
    assert seen_by(registry, "plumber") == own | {"bob", "ben"}

    registry.revoke("plumber", "bob", ANN)
    assert seen_by(registry, "plumber") == own | {"bob", "ben"}, "the organisation still has its own"
    registry.revoke("plumber", "org:bolt", ANN)
    assert seen_by(registry, "plumber") == own


def test_a_grant_counts_for_shared_cards_only(registry: Registry) -> None:
    registry.register(card("plumber", visibility="shared"), ANN)
    registry.grant("plumber", "bob", ANN)

    registry.register(card("plumber", visibility="private"), ANN)

    assert "bob" not in seen_by(registry, "plumber")
    with pytest.raises(Conflict, match="only a shared one"):
        registry.grant("plumber", "ben", ANN)


def test_what_does_not_exist_for_somebody_is_refused_as_what_does_not_exist(registry: Registry) -> None:
    registry.register(card("plumbers", visibility="private"), ANN)
    attempts: tuple[Callable[[str], object], ...] = (
        lambda one: registry.change(card(one), BOB),
        lambda one: registry.change(card(one), BOB, versions={1}),
        lambda one: registry.remove(one, BOB),
        lambda one: registry.grant(one, "bob", BOB),
        lambda one: registry.revoke(one, "ann", BOB),
    )
    for attempt in attempts:
        said = []
        for name in ("plumbers", "plumberx"):
            with pytest.raises(NotFound) as refused:
                attempt(name)
            said.append(str(refused.value).replace(name, "ID"))
        assert said == ["There is no specialist 'ID'. There are no specialists yet."] * 2
    assert registry.find("plumbers") == registry.find("plumbers", ANN)


def test_an_id_is_taken_in_the_same_words_whether_or_not_one_may_see_the_card(registry: Registry) -> None:
    registry.register(card("plumber", visibility="private"), ANN)
    registry.register(card("painter"), ANN)
    said = set()
    for name in ("plumber", "painter"):
        with pytest.raises(Conflict) as refused:
            registry.register(card(name), BOB)
        said.add(str(refused.value).replace(name, "ID"))
    assert said == {"The id ID is taken. Choose another id."}
    assert registry.find("plumber") == registry.find("plumber", ANN)


def test_only_what_exists_is_suggested(registry: Registry) -> None:
    registry.register(card("plumbers", visibility="private"), ANN)
    registry.register(card("plumbing", visibility="public"), ANN)
    with pytest.raises(NotFound, match="Did you mean `plumbing`"):
        registry.remove("plumberz", BOB)
    with pytest.raises(NotFound, match="Did you mean `plumbers`"):
        registry.remove("plumberz", ANN)


def test_a_great_many_are_not_all_named(registry: Registry) -> None:
    for n in range(30):
        registry.register(card(f"specialist-{n}"))
    with pytest.raises(NotFound, match="List them with `claudomator specialists list`"):
        registry.remove("unlike-any")
    with pytest.raises(NotFound, match=r"Did you mean `specialist-\d+`\?"):
        registry.remove("specialst-3")


def test_nobody_takes_over_the_card_of_another(registry: Registry) -> None:
    before = registry.register(card("plumber"), ANN)
    for other in (AMY, BOB, ADA, OPERATOR):
        with pytest.raises(Conflict, match="The id plumber is taken"):
            registry.register(card("plumber", description="Mine."), other)
    for other in (AMY, BOB, CARL):
        with pytest.raises(Forbidden, match="belongs to ann"):
            registry.change(card("plumber", description="Mine."), other)
        with pytest.raises(Forbidden):
            registry.remove("plumber", other)
    assert registry.find("plumber") == before


def test_an_administrator_changes_the_cards_of_its_organisation_which_stay_their_creators(registry: Registry) -> None:
    registry.register(card("plumber"), ANN)
    for admin in (ADA, OPERATOR):
        changed = registry.change(card("plumber", description=f"Says {admin.id}."), admin)
        assert (changed.creator, changed.organisation) == ("ann", "acme")
    registry.register(card("painter"), BOB)
    with pytest.raises(Forbidden):
        registry.change(card("painter", description="Mine."), ADA)


def test_a_card_of_another_organisation_is_registered_only_by_who_belongs_to_none(registry: Registry) -> None:
    with pytest.raises(Forbidden, match="belongs to acme"):
        registry.register(card("plumber", organisation="bolt"), ANN)
    registry.register(card("plumber", organisation="bolt", visibility="shared"))
    assert "bob" in seen_by(registry, "plumber")
    registry.register(card("painter"), ANN)
    with pytest.raises(Forbidden):
        registry.change(card("painter", organisation="bolt"), ANN)


def test_registering_again_updates_and_the_same_again_changes_nothing(registry: Registry) -> None:
    first = registry.register(card("plumber"), ANN)
    digest = registry.hash()
    registry.now_ms += 1_000
    assert registry.register(card("plumber", version="1.0.0"), ANN) == first
    assert registry.hash() == digest

    second = registry.register(card("plumber", description="Fixes pipes."), ANN)

    assert (second.version, second.created_ms, second.updated_ms) == (2, NOW, NOW + 1_000)
    assert second.content_hash != first.content_hash
    assert registry.hash() != digest
    assert registry.found_by("pipes") == {("plumber", None)}
    assert [kind for kind, _ in registry.events()] == ["specialist_registered", "specialist_changed"]


def test_a_change_is_bound_to_the_version_that_was_seen(registry: Registry) -> None:
    registry.register(card("plumber"), ANN)
    registry.change(card("plumber", description="Fixes pipes."), ANN, versions={1})
    for change in (
        lambda: registry.change(card("plumber", description="Late."), ANN, versions={1}),
        lambda: registry.remove("plumber", ANN, versions={1}),
    ):
        with pytest.raises(StaleVersion, match="at version 2"):
            change()
    registry.remove("plumber", ANN, versions={1, 2})
    assert registry.seen() == []


def test_what_was_removed_is_found_in_no_way_and_leaves_no_grants(registry: Registry) -> None:
    registry.register(card("plumber", visibility="shared"), ANN)
    registry.grant("plumber", "bob", ANN)

    registry.remove("plumber", ANN)

    assert seen_by(registry, "plumber") == set()
    assert registry.register(card("plumber", visibility="shared"), ANN).grants == ()
    found = registry.find("plumber")
    assert found is not None
    assert found.version == 4, "versions go on"
    assert "bob" not in seen_by(registry, "plumber")


def test_an_id_that_was_removed_is_free_and_tells_nothing_of_the_card_before(registry: Registry) -> None:
    registry.register(card("plumber", visibility="private"), ANN)
    registry.register(card("plumber", visibility="private", description="Again."), ANN)
    registry.remove("plumber", ANN)

    found = registry.register(card("plumber", visibility="private"), BOB)

    assert (found.version, found.creator, found.organisation) == (1, "bob", "bolt")
    assert seen_by(registry, "plumber") == {"bob", "carl", "operator"}


def test_a_card_that_follows_a_file_is_changed_there(registry: Registry) -> None:
    registry.register(card("plumber"), source="file", file_path="/cards/plumber.yaml")
    for change in (
        lambda: registry.register(card("plumber", description="By the API.")),
        lambda: registry.register(card("plumber"), source="file", file_path="/cards/other.yaml"),
        lambda: registry.change(card("plumber", description="By the API.")),
        lambda: registry.remove("plumber"),
        lambda: registry.remove("plumber", file_path="/cards/other.yaml"),
    ):
        with pytest.raises(Conflict, match=r"follows the file /cards/plumber\.yaml"):
            change()
    registry.register(card("plumber", description="Edited."), source="file", file_path="/cards/plumber.yaml")
    of_file = registry.database.read(lambda connection: specialist_rows.of_file(connection, "/cards/plumber.yaml"))
    assert [one.card.description for one in of_file] == ["Edited."]
    registry.remove("plumber", file_path="/cards/plumber.yaml")
    assert registry.seen() == []


def test_a_file_takes_the_place_of_what_its_creator_registered_otherwise(registry: Registry) -> None:
    registry.register(card("plumber"))
    found = registry.register(card("plumber"), source="file", file_path="/cards/plumber.yaml")
    assert (found.source, found.version) == ("file", 2)


def test_a_card_of_the_operator_stands_for_a_shipped_one_which_is_there_again_afterwards(registry: Registry) -> None:
    registry.ship(card("generalist"))
    shipped = registry.find("generalist", BOB)
    assert shipped is not None
    assert (shipped.creator, shipped.source) == (SHIPPER, "shipped")

    for put in (registry.register, registry.change):
        own = put(card("generalist", description="Homemade.", visibility="private"))
        assert (own.creator, own.source) == ("operator", "api")
        registry.ship(card("generalist", description="Of the next version."))
        assert registry.find("generalist", BOB) is None
        assert registry.found_by("homemade") == {("generalist", None)}

        registry.remove("generalist")

        again = registry.find("generalist", BOB)
        assert again is not None
        assert (again.creator, again.source) == (SHIPPER, "shipped")
        assert again.card.description == "Of the next version."
        assert again.version > own.version
        assert registry.found_by("homemade") == set()


def test_only_the_operator_stands_in_for_a_shipped_card(registry: Registry) -> None:
    registry.ship(card("generalist"))
    for other in (ANN, ADA):
        with pytest.raises(Conflict, match="The id generalist is taken"):
            registry.register(card("generalist"), other)
        with pytest.raises(Forbidden):
            registry.change(card("generalist"), other)
        with pytest.raises(Forbidden):
            registry.remove("generalist", other)


def test_a_shipped_card_that_was_removed_stays_so_and_its_id_is_the_operators(registry: Registry) -> None:
    registry.ship(card("generalist"))
    registry.remove("generalist")
    registry.ship(card("generalist", description="Of the next version."))
    assert registry.seen() == []
    with pytest.raises(Conflict, match="The id generalist is taken"):
        registry.register(card("generalist"), ANN)

    registry.register(card("generalist", description="Ours."))
    registry.remove("generalist")

    found = registry.find("generalist")
    assert found is not None
    assert found.card.description == "Of the next version."


def test_what_no_longer_ships_goes_and_what_stands_for_it_stays(registry: Registry) -> None:
    registry.ship(card("generalist"), card("plumber"))
    registry.register(card("plumber", description="Ours."))

    registry.ship()

    assert registry.seen() == ["plumber"]
    registry.remove("plumber")
    assert registry.seen() == []


def test_shipping_the_same_again_changes_nothing(registry: Registry) -> None:
    registry.ship(card("generalist"))
    before = registry.events()
    registry.ship(card("generalist"))
    assert registry.events() == before


def test_a_card_that_ships_under_the_id_of_another_waits_under_it(registry: Registry) -> None:
    registry.register(card("plumber", description="Of Ann."), ANN)
    registry.ship(card("plumber", description="Shipped."))
    found = registry.find("plumber")
    assert found is not None
    assert found.creator == "ann"
    registry.remove("plumber", ANN)
    found = registry.find("plumber")
    assert found is not None
    assert (found.creator, found.card.description) == (SHIPPER, "Shipped.")


def test_the_registrys_hash_is_of_what_exists_for_who_asks(registry: Registry) -> None:
    registry.register(card("plumber"), ANN)
    before = registry.hash(BOB)
    registry.register(card("painter", visibility="private"), ANN)
    assert registry.hash(BOB) == before
    assert registry.hash(ANN) != before


def test_events_of_a_card_are_seen_by_who_caused_them_and_by_who_sees_all(registry: Registry) -> None:
    by_ann = events.caused_by("ann", lambda c: specialists.register(c, card("plumber"), ANN, NOW))
    registry.write(by_ann)

    def kinds(by: Principal) -> list[str]:
        sought = events.EventQuery(seen_by=by)
        return [one.kind for one in registry.database.read(lambda c: events.following(c, 0, 10, sought))]

    assert kinds(ANN) == kinds(OPERATOR) == ["specialist_registered"]
    assert kinds(AMY) == kinds(BOB) == []


def test_pages_follow_each_other(registry: Registry) -> None:
    for name in ("a", "b", "c"):
        registry.register(card(name))
    page = registry.database.read(lambda connection: specialist_rows.seen(connection, OPERATOR, after="a", limit=1))
    assert [one.card.id for one in page] == ["b"]


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
    found = registry.found_by(query)
    assert found == ({("plumber", None), ("plumber", "plumber-work")} if "plumber" in query else set())


@pytest.mark.parametrize("database_kind", ["sqlite", "postgresql"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(query=st.text(max_size=40))
def test_any_text_can_be_searched_for(registry: Registry, query: str) -> None:
    registry.found_by(query)


def test_the_index_of_sqlite_is_whole_after_every_kind_of_change(tmp_path: Any, database: Database) -> None:
    registry = Registry(database)
    if database.dialect != "sqlite":
        return
    registry.ship(card("generalist"))
    registry.register(card("plumber"), ANN)
    registry.register(card("plumber", description="Fixes pipes."), ANN)
    registry.change(card("generalist", description="Ours."))
    registry.remove("generalist")
    registry.remove("plumber", ANN)
    check = text("INSERT INTO specialist_text (specialist_text, rank) VALUES ('integrity-check', 1)")
    registry.write(lambda connection: connection.execute(check))


def test_vectors_are_kept_by_text_and_encoder(database: Database) -> None:
    one, other = np.array([1.0, 2.5], dtype=np.float32), np.array([0.0, -1.0], dtype=np.float32)
    database.write(lambda connection: embedding_rows.keep(connection, "e1", {"a": one, "b": other}, NOW))
    database.write(lambda connection: embedding_rows.keep(connection, "e1", {"b": one}, NOW))
    database.write(lambda connection: embedding_rows.keep(connection, "e2", {"a": other}, NOW))

    def kept(encoder: str) -> dict[str, list[float]]:
        found = database.read(lambda connection: embedding_rows.kept(connection, encoder, ["a", "b", "c"]))
        return {text_hash: vector.tolist() for text_hash, vector in found.items()}

    assert kept("e1") == {"a": [1.0, 2.5], "b": [1.0, 2.5]}
    assert kept("e2") == {"a": [0.0, -1.0]}
    assert database.read(lambda connection: embedding_rows.made_before(connection, NOW)) == []
    assert database.read(lambda connection: embedding_rows.made_before(connection, NOW + 1)) == ["a", "b"]
    database.write(lambda connection: embedding_rows.drop(connection, ["a", "c"]))
    assert (kept("e1"), kept("e2")) == ({"b": [1.0, 2.5]}, {})
