"""The power fails at random moments, over and over, under load. Then everything must be accounted for.

All that a site has is on a file system of its own, whose medium is a file. To lose power is to stop every process, to
copy the medium as it is, to kill the processes, and to go on from the copy: what was only in memory is gone, and the
file system repairs itself by its journal. The ledger is on another disk, and so knows what really ran.

This medium has no volatile cache and keeps the order of its writes, which not all real ones do.
"""

import os
import shutil
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from claudomator_py.client import DaemonNotRunning
from tests.chaos.test_random_kills import READY_S, lost, say
from tests.chaos.workload import Operator
from tests.e2e.daemon import Daemon
from tests.e2e.invariants import hold
from tests.e2e.site import Site
from tests.patience import PATIENCE_S, wait_until
from tests.warm.starter import WarmStarter

pytestmark = [pytest.mark.chaos, pytest.mark.needs_root]

MEDIUM_BYTES = 256 << 20
EARLY_S, LATE_S = 0.3, 2.0


class Disk:
    """An ext4 file system on a file, mounted at a folder."""

    def __init__(self, medium: Path, folder: Path) -> None:
        self.medium, self.folder = medium, folder
        with medium.open("wb") as file:
            file.truncate(MEDIUM_BYTES)
        made = ["mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", str(medium)]
        subprocess.run(made, check=True)
        folder.mkdir()
        self.mount()

    def mount(self) -> None:
        """Mount it, which replays the journal."""
        subprocess.run(["mount", "-o", "loop", self.medium, self.folder], check=True)
        source = subprocess.run(["findmnt", "-no", "SOURCE", self.folder], check=True, capture_output=True, text=True)
        self._writes = Path("/sys/block", Path(source.stdout.strip()).name, "stat")

    def unmount(self) -> None:
        """Unmount it; all files on it are closed."""
        subprocess.run(["umount", self.folder], check=True)

    def copy_medium(self) -> Path:
        """Return a copy of what has been written to the medium, at one moment."""
        copy = self.medium.with_suffix(".copy")
        while True:
            before = self._written()
            subprocess.run(["cp", "--sparse=always", self.medium, copy], check=True)
            if before is not None and before == self._written():
                return copy

    def _written(self) -> int | None:
        """Return how many writes have ended; None: one is under way."""
        fields = [int(field) for field in self._writes.read_text().split()]
        return None if fields[8] else fields[4]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk at the folder ``site``."""
    if shutil.which("mkfs.ext4") is None or not Path("/dev/loop-control").exists():
        pytest.skip("a disk that loses what is not flushed needs mkfs.ext4 and loop devices")
    disk = Disk(tmp_path / "medium", tmp_path / "site")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", disk.folder], check=False)


class FailingSite(Site):
    """A site on that disk, whose power fails. Its ledger and its log are elsewhere."""

    def __init__(self, disk: Disk, warm: WarmStarter, elsewhere: Path) -> None:
        self._disk = disk
        self._power = threading.Lock()
        """Held while it fails."""
        (elsewhere / "ledger").touch()
        (disk.folder / "ledger").symlink_to(elsewhere / "ledger")
        super().__init__(disk.folder, {}, warm, new=False)
        self.log_file = elsewhere / "daemon.log"
        os.sync()

    def drop(self, name: str, text: str) -> Path:
        """Put a task file into the inbox, and flush it, as somebody does who relies on it."""
        partial, path = self.root / f".{name}", self.inbox / name
        with self._power:
            partial.write_text(text)
            flush(partial)
            partial.rename(path)
            flush(self.inbox)
        return path

    def lose_power(self, daemon: Daemon) -> None:
        """End everything at once; what is on the medium is all that is left."""
        with self._power:
            stopped: set[int] = set()
            while running := self.processes().keys() - stopped:
                for pid in running:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGSTOP)
                stopped |= running
            copy = self._disk.copy_medium()
            daemon.kill()
            self.close()
            self._disk.unmount()
            copy.replace(self._disk.medium)
            self._disk.mount()


def flush(path: Path) -> None:
    """Have the file or folder on the medium."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def live_and_lose_power(site: FailingSite, random: Random, operator: Operator) -> None:
    """Four of five daemons have work; the others lose power within moments of their start."""
    daemon, over = site.start(), threading.Event()
    has_work = random.random() < 0.8
    if has_work:
        daemon.ready()

    def work() -> None:
        with suppress(DaemonNotRunning):
            while has_work and not operator.done and not over.is_set():
                operator.work(daemon.client, 1)

    worker = threading.Thread(target=work)
    worker.start()
    over.wait(random.uniform(0, LATE_S if has_work else EARLY_S))
    over.set()
    site.lose_power(daemon)
    worker.join()


def test_whenever_the_power_fails_everything_is_accounted_for(
    tmp_path: Path, disk: Disk, warm: WarmStarter, seed: int
) -> None:
    random, tasks, losses = Random(seed), 200, 40
    site = FailingSite(disk, warm, tmp_path)
    try:
        operator = Operator(random, site, tasks)
        for _ in range(losses):
            live_and_lose_power(site, random, operator)
        daemon = site.start().ready()

        def is_done() -> bool:
            operator.work(daemon.client, 10)
            return operator.done

        # What was acknowledged and is gone would be waited for.
        wait_until(is_done, "the operator to find all tasks", PATIENCE_S)
        wait_until(lambda: sum(daemon.client.status().counts.values()) >= tasks, "the files to be taken", READY_S)
        site.drain(daemon)
        assert daemon.stop() == 0
        done = hold(site, acknowledged=operator.acknowledged, file_names=operator.file_names, keeps_output=False)
    finally:
        site.close()
    assert sorted(task.name for task in done.tasks.values()) == sorted(operator.names)
    states, runs = Counter(task.state for task in done.tasks.values()), f"{len(done.runs)} runs, {len(lost(done))} lost"
    say(f"{losses} losses of power; {len(done.tasks)} tasks {dict(states)}; {runs}")
