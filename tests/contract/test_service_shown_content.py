"""What is shown of a task's content is what its row says, after whatever changed it and however often it was shown."""

import json
import random
from collections.abc import Mapping
from typing import Any

import pytest
from sqlalchemy import Connection, text

from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.task import TaskSpec
from claudomator_py.resources.overview.service import Overview
from claudomator_py.schema.taskfile import shown_document
from claudomator_py.store import task_rows
from claudomator_py.store.database import Database
from claudomator_py.store.stored_json import MAX_KEPT, MAX_KEPT_TEXT, cached_reader, readable
from tests.cells import cells
from tests.contract.test_damaged_rows import DAMAGE, NO_JSON
from tests.fakes.steps import spec
from tests.fakes.world import World

NAMES = ("one", "two", "three", "four")
STEPS = 40


class Days:
    """Tasks, and what may happen to them."""

    def __init__(self, database: Database, seed: int) -> None:
        self._database = database
        self._random = random.Random(seed)
        self._number = 0
        self.world = World(database, total=50, per_workdir=50)
        for name in NAMES:
            self.edited(name)

    def step(self) -> str:
        """Let something happen; what."""
        ways = (self.edited, self.restarted, self.ran, self.cancelled, self.damaged, self.written)
        way, name = self._random.choice(ways), self._random.choice(NAMES)
        way(name)
        return f"{way.__name__} {name}"

    def edited(self, name: str) -> None:
        self._number += 1
        # Two tasks may have the same content but for their names.
        words = self._random.choice((f"Do {self._number}", "Do the same", "x" * (2 * MAX_KEPT_TEXT)))
        self.world.take(f"/in/{name}.yaml", spec(name, instructions=words), mtime_ns=self._number + 1)

    def restarted(self, name: str) -> None:
        if self._readable(name) and "restart" in self.world.task(name).available_actions:
            self._number += 1
            fields: Mapping[str, Any] = {
                "budget": {"tokens": self._number},
                "tier": self._random.choice(["fast", None]),
            }
            self.world.restart(name, **fields)

    def ran(self, name: str) -> None:
        self.world.tick(1_000)
        if self._readable(name) and self.world.task(name).state == "RUNNING":
            self._random.choice((self.world.succeed, self.world.fail))(name)

    def cancelled(self, name: str) -> None:
        if "cancel" in self.world.task(name).available_actions:
            self.world.service.cancel(name)

    def damaged(self, name: str) -> None:
        self._write(name, self._random.choice([entry for entry in DAMAGE if entry not in NO_JSON]))

    def written(self, name: str) -> None:
        """Somebody writes into the same row by hand, or mends it."""
        self._number += 1
        document = spec(name, instructions=f"By hand {self._number}").model_dump(mode="json")
        self._write(name, json.dumps(document))

    def _readable(self, name: str) -> bool:
        return self.stored(name) is not None

    def stored(self, name: str) -> TaskSpec | None:
        row = self.world.row(name)
        return self._database.read(
            lambda connection: readable(TaskSpec, task_rows.revision_of(connection, row.id, row.revision).spec)
        )

    def _write(self, name: str, message: str) -> None:
        row = self.world.row(name)
        change = text(f"UPDATE task_revision SET spec = {self._kind} WHERE task_id = :task AND revision = :number")
        given = {"said": message, "task": row.id, "number": row.revision}
        self._database.write(lambda connection: connection.execute(change, given))

    @property
    def _kind(self) -> str:
        return "CAST(:said AS json)" if self._database.dialect == "postgresql" else ":said"


@pytest.mark.parametrize(
    "seed",
    cells([pytest.param(0, marks=pytest.mark.both_databases)], [1, 2, 3]),
)
def test_what_is_shown_is_what_is_stored(database: Database, seed: int) -> None:
    days = Days(database, seed)
    texts = []
    for _ in range(STEPS):
        texts.append(days.step())
        listed = days.world.access.as_(OPERATOR)[Overview].status()
        shown = {entry.id: entry for name in ("needs_you", "problems", "running", "queued", "recent")
                 for entry in getattr(listed, name)}  # fmt: skip
        for name in NAMES:
            view, stored = days.world.task(name), days.stored(name)
            assert view.spec is not None
            if stored is None:
                assert "cannot be read" in str(view.spec["instructions"]), texts
                assert view.priority == "normal"
            else:
                assert view.spec == shown_document(stored), texts
            assert shown[view.id].model_copy(update={"spec": view.spec}) == view, texts


def test_the_same_text_is_read_once_and_another_text_anew(caplog: pytest.LogCaptureFixture) -> None:
    read = cached_reader(TaskSpec)
    text = spec("one").model_dump_json()
    assert read(text) is read(text)
    assert read(spec("two").model_dump_json()) == spec("two")
    assert read(text) == spec("one")
    for _ in range(2):
        caplog.clear()
        assert read('{"name": "one"}') is None
        assert len(caplog.records) == 1
    for unread in (None, 5, 1.5, b"\xff", "[]", "null", "{"):
        assert read(unread) is None
    assert read(text.encode()) == spec("one")


def test_it_keeps_a_bounded_number_of_texts_none_of_which_is_long() -> None:
    read = cached_reader(TaskSpec)
    long = spec("one", instructions="x" * MAX_KEPT_TEXT).model_dump_json()
    assert read(long) == read(long)
    assert read(long) is not read(long)
    first = spec("one").model_dump_json()
    kept = read(first)
    for number in range(MAX_KEPT):
        read(spec(f"other-{number}").model_dump_json())
    assert read(first) == kept
    assert read(first) is not kept


@pytest.mark.both_databases
def test_each_task_is_shown_its_own_revision(database: Database) -> None:
    world = World(database)
    for name in ("one", "two"):
        world.take(f"/in/{name}.yaml", spec(name, instructions="First"))
    world.take("/in/one.yaml", spec("one", instructions="Second"), mtime_ns=2)
    entry, two = world.row("one"), world.row("two")
    assert (entry.revision, two.revision) == (2, 1)

    def shown(connection: Connection) -> list[str]:
        specs_shown = task_rows.specs_shown(connection, [entry, two])
        return [specs_shown[task.id].instructions for task in (entry, two)]

    assert database.read(shown) == ["Second", "First"]
    assert database.read(lambda connection: task_rows.specs_shown(connection, [])) == {}
    entry = type(entry)(**{**dict(entry), "revision": 7})
    with pytest.raises(LookupError, match=entry.id):
        database.read(shown)
