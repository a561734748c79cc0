"""Where a card comes from: what follows a file or ships with the daemon, and what may stand for it."""

import pytest

from claudomator_py.domain.card import SHIPPER
from claudomator_py.domain.errors import Conflict, Forbidden
from claudomator_py.store import specialist_rows
from claudomator_py.store.database import Database
from tests.fakes.cards import card
from tests.integration.store.registry import ADA, ANN, BOB, Registry


@pytest.fixture
def registry(database: Database) -> Registry:
    return Registry(database)


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
    assert [entry.card.description for entry in of_file] == ["Edited."]
    registry.remove("plumber", file_path="/cards/plumber.yaml")
    assert registry.seen() == []


def test_a_file_takes_the_place_of_what_its_creator_registered_otherwise(registry: Registry) -> None:
    registry.register(card("plumber"))
    registration = registry.register(card("plumber"), source="file", file_path="/cards/plumber.yaml")
    assert (registration.source, registration.version) == ("file", 2)


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

    registration = registry.find("generalist")
    assert registration is not None
    assert registration.card.description == "Of the next version."


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
    registration = registry.find("plumber")
    assert registration is not None
    assert registration.creator == "ann"
    registry.remove("plumber", ANN)
    registration = registry.find("plumber")
    assert registration is not None
    assert (registration.creator, registration.card.description) == (SHIPPER, "Shipped.")
