"""What people may see is stored without the secrets that are known when it is written."""

from functools import partial
from pathlib import Path

from claudomator_py.domain.redaction import MARK
from claudomator_py.environment.secrets import Secrets
from claudomator_py.store import events
from claudomator_py.store.database import Database
from claudomator_py.store.events import record
from claudomator_py.store.migrate import migrate


def test_a_row_is_written_without_what_is_known_and_what_becomes_known(tmp_path: Path) -> None:
    secrets = Secrets(["known-from-the-start"])
    with Database.open("sqlite", state_dir=tmp_path) as database:
        migrate(database)
        database.clean = secrets.clean
        for secret in ("known-from-the-start", "known-after-a-reload"):
            secrets.add([secret])
            data = {"state": "COMPLETED", "why": f"it said {secret}", "times": 3, "none": None}
            database.write(partial(record, at_ms=1, kind="state", data=data))
        result = database.read(lambda connection: events.following(connection, 0, 10))
    stored = {"state": "COMPLETED", "why": f"it said {MARK}", "times": 3, "none": None}
    assert [event.data for event in result] == [stored, stored]


def test_without_anything_known_shapes_are_still_taken_out(tmp_path: Path) -> None:
    with Database.open("sqlite", state_dir=tmp_path) as database:
        migrate(database)
        payload = {"why": "fatal: https://me:secret@host/repo.git"}
        database.write(lambda connection: record(connection, 1, "state", data=payload))
        (event,) = database.read(lambda connection: events.following(connection, 0, 10))
    assert event.data == {"why": f"fatal: https://me:{MARK}@host/repo.git"}
