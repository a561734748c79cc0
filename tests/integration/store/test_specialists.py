"""The registry of specialists on both databases: who sees a card, and who may change it."""

from collections.abc import Callable

import pytest

from claudomator_py.domain.errors import Conflict, Forbidden, NotFound, StaleVersion
from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.store import events, specialist_rows
from claudomator_py.store.database import Database
from claudomator_py.tasks import specialists
from tests.fakes.cards import card
from tests.integration.store.registry import ADA, AMY, ANN, BOB, CARL, EVERYBODY, NOW, Registry, seen_by


@pytest.fixture
def registry(database: Database) -> Registry:
    return Registry(database)


def test_a_public_card_exists_for_everybody_and_that_is_the_default(registry: Registry) -> None:
    registry.register(card("plumber"), ANN)
    assert seen_by(registry, "plumber") == {entry.id for entry in EVERYBODY}


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
        lambda name: registry.change(card(name), BOB),
        lambda name: registry.change(card(name), BOB, versions={1}),
        lambda name: registry.remove(name, BOB),
        lambda name: registry.grant(name, "bob", BOB),
        lambda name: registry.revoke(name, "ann", BOB),
    )
    for attempt in attempts:
        texts = []
        for name in ("plumbers", "plumberx"):
            with pytest.raises(NotFound) as refused:
                attempt(name)
            texts.append(str(refused.value).replace(name, "ID"))
        assert texts == ["There is no specialist 'ID'. There are no specialists yet."] * 2
    assert registry.find("plumbers") == registry.find("plumbers", ANN)


def test_an_id_is_taken_in_the_same_words_whether_or_not_one_may_see_the_card(registry: Registry) -> None:
    registry.register(card("plumber", visibility="private"), ANN)
    registry.register(card("painter"), ANN)
    texts = set()
    for name in ("plumber", "painter"):
        with pytest.raises(Conflict) as refused:
            registry.register(card(name), BOB)
        texts.add(str(refused.value).replace(name, "ID"))
    assert texts == {"The id ID is taken. Choose another id."}
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
    with pytest.raises(NotFound, match=r"nearest to it are .*; `claudomator specialists list` lists them all"):
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
    assert registry.found_by("pipes", ANN) == {("plumber", None)}
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
    registration = registry.find("plumber")
    assert registration is not None
    assert registration.version == 4, "versions go on"
    assert "bob" not in seen_by(registry, "plumber")


def test_an_id_that_was_removed_is_free_and_tells_nothing_of_the_card_before(registry: Registry) -> None:
    registry.register(card("plumber", visibility="private"), ANN)
    registry.register(card("plumber", visibility="private", description="Again."), ANN)
    registry.remove("plumber", ANN)

    registration = registry.register(card("plumber", visibility="private"), BOB)

    assert (registration.version, registration.creator, registration.organisation) == (1, "bob", "bolt")
    assert seen_by(registry, "plumber") == {"bob", "carl", "operator"}


def test_the_registrys_hash_is_of_all_cards_whoever_sees_them(registry: Registry) -> None:
    registry.register(card("plumber"), ANN)
    before = registry.hash()
    registry.register(card("painter", visibility="private"), ANN)
    assert registry.hash() != before


def test_events_of_a_card_are_seen_by_who_caused_them_and_by_who_sees_all(registry: Registry) -> None:
    by_ann = events.caused_by("ann", lambda c: specialists.register(c, card("plumber"), ANN, NOW))
    registry.write(by_ann)

    def kinds(by: Principal) -> list[str]:
        sought = events.EventQuery(seen_by=by)
        return [entry.kind for entry in registry.database.read(lambda c: events.following(c, 0, 10, sought))]

    assert kinds(ANN) == kinds(OPERATOR) == ["specialist_registered"]
    assert kinds(AMY) == kinds(BOB) == []


def test_pages_follow_each_other(registry: Registry) -> None:
    for name in ("a", "b", "c"):
        registry.register(card(name))
    page = registry.database.read(lambda connection: specialist_rows.seen(connection, OPERATOR, after="a", limit=1))
    assert [entry.card.id for entry in page] == ["b"]
