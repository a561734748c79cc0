"""Hearing of the end of runs, once each, however early or late one begins to listen."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from claudomator_py.domain.run import RunFate
from claudomator_py.hosts.local import LocalRunHost
from claudomator_py.hosts.local import watcher as module
from claudomator_py.hosts.local.fate import decide_fate
from claudomator_py.hosts.local.launcher import Launcher, Shim
from claudomator_py.hosts.local.watcher import RunWatcher
from tests.integration.hosts.rig import PATH, Rig
from tests.patience import PATIENCE_S, wait_until

GATED = ("sh", "-c", "echo ready; while test ! -e go; do sleep .01; done")


class Ends:
    """What the watcher has said so far."""

    def __init__(self) -> None:
        self.run_ids: list[str] = []
        self._changed = asyncio.Event()

    def __call__(self, run_id: str) -> None:
        self.run_ids.append(run_id)
        self._changed.set()

    async def wait_for(self, *run_ids: str) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while sorted(self.run_ids) != sorted(run_ids):
                self._changed.clear()
                await self._changed.wait()


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def watching(test: Callable[[RunWatcher, Ends], Awaitable[None]]) -> None:
    """Run the test with a watcher, which must not be left with anything to do."""

    async def main() -> None:
        before = open_files()
        ends = Ends()
        watcher = RunWatcher(asyncio.get_running_loop(), ends)
        await test(watcher, ends)
        watcher.close()
        assert open_files() == before

    asyncio.run(main())


def go(path: Path) -> None:
    (path / "work" / "go").touch()


def test_the_end_of_a_live_run_is_told_once(rig: Rig) -> None:
    async def test(watcher: RunWatcher, ends: Ends) -> None:
        path = rig.prepare(GATED)
        rig.shim(path).output("ready")
        watcher.watch("a", path)
        watcher.watch("a", path)
        await asyncio.sleep(0.05)
        assert ends.run_ids == []
        go(path)
        await ends.wait_for("a")
        assert decide_fate(path).fate is RunFate.ENDED
        await asyncio.sleep(0.05)
        assert ends.run_ids == ["a"]

    watching(test)


def test_a_shim_that_has_not_said_yet_who_it_is_is_waited_for(rig: Rig) -> None:
    async def test(watcher: RunWatcher, ends: Ends) -> None:
        path = rig.prepare(("true",))
        watcher.watch("a", path)
        await asyncio.sleep(0.05)
        assert ends.run_ids == []
        rig.shim(path)
        await ends.wait_for("a")
        assert decide_fate(path).fate is RunFate.ENDED

    watching(test)


def test_a_shim_is_followed_by_the_launchers_pid(rig: Rig) -> None:
    async def test(watcher: RunWatcher, ends: Ends) -> None:
        path = rig.prepare(("true",))
        watcher.watch("a", path, Shim(rig.shim(path).process.pid))
        await ends.wait_for("a")
        assert decide_fate(path).fate is RunFate.ENDED

    watching(test)


def test_the_end_is_told_of_a_run_whose_shim_stays_for_another(rig: Rig) -> None:
    launcher = Launcher()

    async def test(watcher: RunWatcher, ends: Ends) -> None:
        first, second, last = rig.prepare(("true",)), rig.prepare(GATED), rig.prepare(GATED)
        with launcher.start(first, {"PATH": PATH}) as shim:
            watcher.watch("first", first, shim)
            await ends.wait_for("first")
            assert decide_fate(first).fate is RunFate.ENDED
            launcher.take_back(shim)
            assert launcher.start(second, {"PATH": PATH}) is shim
            watcher.watch("first", first)
            await ends.wait_for("first", "first")
            watcher.watch("second", second, shim)
            go(second)
            await ends.wait_for("first", "first", "second")
            launcher.take_back(shim)
            assert launcher.start(last, {"PATH": PATH}) is shim
            watcher.watch("last", last, shim)
            wait_until((last / "agent.json").exists)
            os.kill(shim.pid, signal.SIGKILL)
            await ends.wait_for("first", "first", "second", "last")
            assert decide_fate(last).fate is RunFate.ORPHANED

    try:
        launcher.start(rig.root / "nowhere", {}).close()  # so that its own socket is there before
        watching(test)
    finally:
        launcher.close()


def test_a_run_that_has_ended_already_is_told(rig: Rig) -> None:
    async def test(watcher: RunWatcher, ends: Ends) -> None:
        watcher.watch("a", rig.sh("true").path)
        await ends.wait_for("a")

    watching(test)


@pytest.mark.parametrize("mark", ["revoked", "cancel", "started"])
def test_a_run_that_nobody_will_start_is_told(rig: Rig, mark: str) -> None:
    async def test(watcher: RunWatcher, ends: Ends) -> None:
        path = rig.prepare(("true",))
        (path / mark).touch()
        watcher.watch("a", path)
        watcher.watch("b", path / "nowhere")
        await ends.wait_for("a", "b")

    watching(test)


def test_a_run_that_no_shim_takes_is_told_in_the_end(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_START_S", 0.1)

    async def test(watcher: RunWatcher, ends: Ends) -> None:
        watcher.watch("a", rig.prepare(("true",)))
        await ends.wait_for("a")

    watching(test)


def test_a_launched_shim_that_left_at_once_is_told(rig: Rig) -> None:
    async def test(watcher: RunWatcher, ends: Ends) -> None:
        path = rig.prepare(("true",))
        shim = rig.shim(path, crash="session-made")
        shim.wait()
        watcher.watch("a", path, Shim(shim.process.pid))
        await ends.wait_for("a")
        assert decide_fate(path).fate is RunFate.REVOKED

    watching(test)


def test_a_killed_shim_is_told(rig: Rig) -> None:
    async def test(watcher: RunWatcher, ends: Ends) -> None:
        path = rig.prepare(GATED)
        shim = rig.shim(path)
        shim.output("ready")
        wait_until((path / "agent.json").exists)  # the agent may say so before its shim has written down who it is
        watcher.watch("a", path)
        shim.signal(signal.SIGKILL)
        await ends.wait_for("a")
        assert decide_fate(path).fate is RunFate.ORPHANED

    watching(test)


def test_of_two_shims_the_one_that_has_the_run_counts(rig: Rig) -> None:
    async def test(watcher: RunWatcher, ends: Ends) -> None:
        path = rig.prepare(GATED)
        rig.shim(path).output("ready")
        loser = rig.shim(path)
        watcher.watch("a", path, Shim(loser.process.pid))
        await asyncio.to_thread(loser.wait)
        await asyncio.sleep(0.05)
        assert ends.run_ids == []
        go(path)
        await ends.wait_for("a")

    watching(test)


def test_an_unwatched_run_is_not_told(rig: Rig) -> None:
    async def test(watcher: RunWatcher, ends: Ends) -> None:
        path, other = rig.prepare(GATED), rig.prepare(("true",))
        rig.shim(path).output("ready")
        watcher.watch("a", path)
        watcher.watch("other", other)
        await asyncio.sleep(0)
        watcher.unwatch("a")
        watcher.unwatch("a")
        watcher.unwatch("other")
        go(path)
        await asyncio.to_thread(wait_until, lambda: decide_fate(path).fate is RunFate.ENDED)
        await asyncio.sleep(0.05)
        assert ends.run_ids == []

    watching(test)


def test_many_runs_are_each_told_once(rig: Rig) -> None:
    async def test(watcher: RunWatcher, ends: Ends) -> None:
        paths = [rig.prepare(("true",)) for _ in range(12)]
        for path in paths:
            watcher.watch(path.name, path, Shim(rig.shim(path).process.pid))
        await ends.wait_for(*(path.name for path in paths))

    watching(test)


def test_an_end_that_nobody_has_dealt_with_is_not_told_again(rig: Rig) -> None:
    async def main() -> None:
        path = rig.sh("true").path
        ends = Ends()
        watch = LocalRunHost(rig.root, Launcher(), grace_ms=0)
        watch.news = lambda: ends(path.name)
        for _ in range(3):
            watch.watch([(path.name, 0)])
            await ends.wait_for(path.name)
        watch.watch([])
        watch.watch([(path.name, 0)])
        await ends.wait_for(path.name, path.name)
        watch.close()

    asyncio.run(main())


def test_a_run_that_is_taken_over_is_watched_again(rig: Rig, tmp_path: Path) -> None:
    async def main() -> None:
        path = rig.prepare(("sh", "-c", "echo ready; until [ -e go ]; do sleep 0.02; done"), cwd=tmp_path)
        shim = rig.shim(path)
        shim.output("ready")
        wait_until((path / "agent.json").exists)
        ends, launcher = Ends(), Launcher()
        host = LocalRunHost(rig.root, launcher, grace_ms=0)
        host.news = lambda: ends(path.name)
        host.watch([(path.name, 0)])
        shim.signal(signal.SIGKILL)
        await ends.wait_for(path.name)
        assert host.reconcile(path.name).fate is RunFate.ORPHANED
        host.watch([(path.name, 0)])
        (tmp_path / "go").touch()
        await ends.wait_for(path.name, path.name)
        host.close()
        launcher.close()

    asyncio.run(main())
