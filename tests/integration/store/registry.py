"""The registry of specialists of one database, as its tests ask it."""

from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Connection

from claudomator_py.domain.card import Card, Registration
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.store import events, full_text, specialist_rows
from claudomator_py.store.database import Database
from claudomator_py.tasks import specialists

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
        result = self.database.read(lambda connection: specialist_rows.seen(connection, by))
        assert [entry.card.id for entry in result] == list(
            self.database.read(lambda c: specialist_rows.ids_seen(c, by))
        )
        return [entry.card.id for entry in result]

    def find(self, specialist_id: str, by: Principal = OPERATOR) -> Registration | None:
        return self.database.read(lambda connection: specialist_rows.find(connection, specialist_id, by))

    def hash(self) -> str:
        return self.database.read(specialist_rows.registry_hash)

    def found_by(self, query: str, by: Principal = OPERATOR) -> set[tuple[str, str | None]]:
        words = full_text.words_of(query)
        return set(self.database.read(lambda connection: full_text.hits(connection, words, by)))

    def events(self) -> list[tuple[str, dict[str, Any]]]:
        result = self.database.read(lambda connection: events.following(connection, 0, 1_000))
        return [(event.kind, dict(event.data)) for event in result]


def seen_by(registry: Registry, specialist_id: str) -> set[str]:
    """Who sees the card, in the list and by its id, which have to agree; its text finds who may give it work."""
    listed = {entry.id for entry in EVERYBODY if specialist_id in registry.seen(entry)}
    assert listed == {entry.id for entry in EVERYBODY if registry.find(specialist_id, entry) is not None}
    results = {entry.id for entry in EVERYBODY if {first for first, _ in registry.found_by(specialist_id, entry)}}
    given = registry.database.read(
        lambda connection: {
            entry.id for entry in EVERYBODY if specialist_id in specialist_rows.assignable_ids(connection, entry)
        }
    )
    assert results == given <= listed
    return listed
