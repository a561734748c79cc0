"""Reloading: what is taken, what waits for a restart, and what a fault on the way leaves behind."""

import asyncio
from pathlib import Path

import pytest

from claudomator_py.daemon.reload import ConfigurationRefused, Reloader, in_force
from claudomator_py.daemon.systemd import Notifier
from claudomator_py.schema.configfile import parse_settings
from claudomator_py.schema.settings import Settings
from claudomator_py.store.database import Database
from tests.fakes.service_manager import ServiceManager


def settings(**keys: object) -> Settings:
    parsed = parse_settings(keys)
    assert isinstance(parsed, Settings), parsed
    return parsed


def test_only_what_can_change_is_in_force() -> None:
    started = settings(http={"listen": "127.0.0.1:1"}, concurrency={"total": 1})
    wanted = settings(http={"listen": "127.0.0.1:2"}, database="postgresql://x/y", concurrency={"total": 2}, agents={})
    result, waiting = in_force(started, wanted)
    assert waiting == ("database", "http")
    assert (result.http, result.database) == (started.http, started.database)
    assert (result.concurrency.total, result.agents_configured) == (2, True)
    assert in_force(started, started) == (started, ())


class Rig:
    """A reloader whose file and whose daemon a test plays."""

    def __init__(self, database: Database, manager: ServiceManager) -> None:
        self.wanted: Settings | Exception = Settings()
        self.fault: Exception | None = None
        self.taken: list[Settings] = []
        self.is_outdated = False
        notifier = Notifier(manager.address)
        self.reloader = Reloader(
            Settings(), self._read, lambda: self.is_outdated, self._take, notifier, database, lambda: 0
        )
        self.manager = manager

    def _read(self) -> Settings:
        if isinstance(self.wanted, Exception):
            raise self.wanted
        return self.wanted

    async def _take(self, settings: Settings) -> None:
        if self.fault is not None:
            raise self.fault
        self.taken.append(settings)

    def reload(self) -> None:
        asyncio.run(self.reloader.reload())
        pending = self.manager.pending()
        assert [next(iter(message)) for message in pending] == ["RELOADING", "READY"], "the manager waits for both"


@pytest.mark.parametrize("database_kind", ["sqlite"], indirect=True)
def test_whatever_goes_wrong_is_told_and_over_with_the_next_good_one(database: Database, tmp_path: Path) -> None:
    with ServiceManager(tmp_path / "notify") as manager:
        rig = Rig(database, manager)
        rig.wanted = ConfigurationRefused("file:3: totl: is not a known key")
        rig.reload()
        check = rig.reloader.check()
        assert (check.ok, check.blocking, "file:3: totl" in check.detail) == (False, False, True)
        rig.wanted, rig.fault = settings(concurrency={"total": 2}), OSError("no room")
        rig.reload()
        assert "no room" in rig.reloader.check().detail
        assert rig.taken == []
        rig.fault = None
        rig.reload()
        assert rig.reloader.check().ok
        assert [result.concurrency.total for result in rig.taken] == [2]
        rig.is_outdated = True
        check = rig.reloader.check()
        assert check.ok, "a file may be edited for a while"
        assert "its file has changed since: reload it" in check.detail
