"""A world whose routing is taught by what becomes of its tasks."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import select

from claudomator_py.domain.card import Card
from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.domain.requests import RestartRequest
from claudomator_py.domain.units import SECOND_MS
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.schema.cardfile import shipped_cards, shipped_files
from claudomator_py.schema.routing_settings import LearningSettings
from claudomator_py.store import learning_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import LABEL, Label, Standing
from claudomator_py.tasks.specialists import ship
from claudomator_py.workers.learning import Learner
from tests.fakes.steps import spec
from tests.fakes.world import World

ANSWER = "The index was missing; the query takes 12 ms now instead of 14 seconds."
QUERIES = (
    "The query over orders and order_lines takes 14 seconds in PostgreSQL; find the missing index.",
    "Find out which index the slow query on the invoices table needs.",
    "The query for the monthly report takes a minute; look at its plan, and add the index that it needs.",
    "Our slow query log shows the query of the stock page; find the index that it lacks.",
    "The query behind the customers list is slow since Monday: is an index missing?",
    "Read the plan of the slow query of the shipments page and find the missing index.",
)
LATER_QUERIES = (
    "The query of the returns page takes nine seconds; find the missing index.",
    "Find the index that the slow query on the payments table needs.",
    "The slow query log names the query of the search page; add the missing index.",
)


@cache
def _shipped() -> list[Card]:
    return shipped_cards(shipped_files())


class Taught:
    """A world with the shipped specialists, or these, and what learns from it."""

    def __init__(self, database: Database, *cards: Card, **configuration: Any) -> None:
        self.world = World(database, total=50, per_workdir=50, **configuration)
        if cards:
            for card in cards:
                self.world.specialists.register(card)
        else:
            database.write(lambda connection: ship(connection, _shipped(), self.world.now_ms))
        self.learner = Learner(database, lambda: LearningSettings(), self.world.clock)
        self.learner.run_once()

    def submit(self, name: str, text: str, *, by: Principal = OPERATOR, **fields: Any) -> str | None:
        """Who does it."""
        self.world.access.as_(by)[Tasks].submit(spec(name, instructions=text, **fields))
        self.world.router.route()
        return self.world.task(name).specialist

    def done(self, name: str, answer: str = ANSWER) -> None:
        self.world.tick(SECOND_MS)
        self.world.end(name, text=answer)
        self.world.tick()

    def failed(self, name: str, reason: str) -> None:
        self.world.tick(SECOND_MS)
        self.world.fail(name, reason)

    def give(self, name: str, specialist: str, *, by: Principal = OPERATOR) -> None:
        """An operator gives it to somebody else, before it has begun or after it has ended."""
        self.world.access.as_(by)[Tasks].restart(name, RestartRequest(specialist=specialist))
        self.world.router.route()

    def labels(self, name: str) -> list[Label]:
        task_id = self.world.task(name).id
        query = select(LABEL).where(LABEL.c.task_id == task_id).order_by(LABEL.c.at_ms, LABEL.c.rule)
        rows = self.world.database.read(lambda connection: connection.execute(query).all())
        return [Label(**row._mapping) for row in rows]

    def rules(self, name: str) -> list[str]:
        return [label.rule for label in self.labels(name)]

    def standings(self) -> dict[tuple[str, str], Standing]:
        rows: Sequence[Standing] = self.world.database.read(lambda connection: learning_rows.standings(connection, ""))
        return {(row.specialist, row.topic): row for row in rows}
