"""Asking a fake model for tiers, with a real store."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from claudomator_py.dispatch.cheap_model import GuardedModel
from claudomator_py.dispatch.classify import TierAsker
from claudomator_py.scheduler.classification import ModelQuestion
from claudomator_py.scheduler.records import TierRecord
from claudomator_py.scheduler.tiers import AskTier
from claudomator_py.store import classification_rows, decision_rows
from claudomator_py.store.database import Database
from claudomator_py.store.events import of_task
from claudomator_py.store.tables import ClassificationRow
from tests.fakes.agents import CLAUDE
from tests.fakes.world import World

TIMEOUT_MS = 5_000
FAST = '{"tier": "fast", "reason": "a recipe", "agent_type": "claude"}'
ROOMY = CLAUDE.model_copy(update={"max_concurrent": 40})


class Model:
    """A model that says what it is told to say. asked: the names of the tasks that it was asked about."""

    model = "lite"

    def __init__(self, *says: str | Exception) -> None:
        self.says = list(says)
        self.asked: list[str] = []
        self.closed = False

    def ask(self, question: ModelQuestion, timeout_s: float) -> str:
        self.asked.append(question.subject)
        text = self.says.pop(0) if self.says else FAST
        if isinstance(text, Exception):
            raise text
        return text

    def close(self) -> None:
        self.closed = True


class Inline(Executor):
    """Does at once what it is given. before: what happens in the meantime. shut: how it was ended (wait, drop)."""

    def __init__(self) -> None:
        self.shut: list[tuple[bool, bool]] = []
        self.before: Callable[[], None] = lambda: None

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        self.before()
        fn(*args, **kwargs)
        return Future()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.shut.append((wait, cancel_futures))


class Asking:
    """A world with a classifier. asked: the one that asks."""

    def __init__(self, database: Database, *says: str | Exception, account: tuple[str, str] | None = None) -> None:
        self.world = World(database, agents=(ROOMY,), classifier=True, total=40)
        self.model, self.inline = Model(*says), Inline()
        guarded = GuardedModel(self.model, lambda: self.world.now_ms, account)
        self.asker = TierAsker(database, guarded, TIMEOUT_MS, lambda: self.world.now_ms, pool=self.inline)

    def ask(self, name: str) -> ClassificationRow:
        """Submit a task, and ask for its tier as a tick would; what is known of that then."""
        self.world.submit(name)
        return self.ask_again(name)

    def ask_again(self, name: str) -> ClassificationRow:
        assert self.asker.ask(self.questions(name)) == {}
        return self.known(name)

    def questions(self, name: str) -> list[AskTier]:
        """What a tick would ask now about that task."""
        observed = self.world.observed()
        return [question for question in observed.questions if question.head.name == name]

    def event_data(self, name: str, kind: str) -> list[dict[str, Any]]:
        """What the events of that kind about the task say."""
        task_id = self.world.row(name).id
        result = self.world.database.read(lambda connection: of_task(connection, task_id))
        return [event.data or {} for event in result if event.kind == kind]

    def tiers(self, name: str) -> list[TierRecord]:
        """The decisions on the task's tier, oldest first."""
        task_id = self.world.row(name).id
        decisions = self.world.database.read(lambda connection: decision_rows.of_task(connection, task_id))
        tiers = sorted(
            (decision for decision in decisions if decision.kind == "tier"),
            key=lambda decision: decision.generation or 0,
        )
        return [TierRecord.model_validate(tier.data) for tier in tiers]

    def known(self, name: str) -> ClassificationRow:
        task = self.world.row(name)
        classification = self.world.database.read(lambda c: classification_rows.find(c, task.id, task.generation))
        assert classification is not None, f"nobody was asked about {name}"
        return classification
