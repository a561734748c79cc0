"""What the tests of runs share: orders, shims, and waiting with a deadline."""

import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from claudomator_py.domain.run import Bounds, ExitRecord, RunFate, RunLimits, RunSpec
from claudomator_py.hosts.local.directory import RunDirectory
from claudomator_py.hosts.local.fate import decide_fate
from claudomator_py.hosts.local.sweep import kill_survivors
from claudomator_py.hosts.shim import procfs
from tests.patience import wait_until
from tests.warm import bare

INSTALLATION = Path(__file__).parents[3]
BOOT = "import sys; sys.path.append(sys.argv.pop(1)); from claudomator_py.hosts.shim.main import main; main()"
PATH = os.environ["PATH"]
COMPUTES = """import time
end = time.monotonic() + 1.5
while time.monotonic() < end:
    rest = time.process_time() + 0.03
    while time.process_time() < rest: pass
    time.sleep(0.06)"""
"""A program that is silent for more than a second, and computes for a third of the time."""
LIMITS = RunLimits(timeout_ms=20_000, stall_ms=None, grace_ms=300, output_bytes=1 << 20)

_numbers = itertools.count(1)


@dataclass
class Rig:
    """Run directories under one root, and every shim started for them."""

    root: Path
    run_ids: list[str] = field(default_factory=list)
    shims: list[bare.Forked] = field(default_factory=list)
    began: procfs.Beginning = field(default_factory=lambda: procfs.Beginning(0, now=True))

    def prepare(
        self,
        *commands: Sequence[str],
        cwd: Path | None = None,
        roots: Sequence[Path] = (),
        reserved: Sequence[Path] = (),
        folders: Sequence[Path] = (),
        env_names: Sequence[str] = ("PATH",),
        stdin: str = "",
        limits: RunLimits = LIMITS,
    ) -> Path:
        """The directory of a new run of these commands."""
        run_id = f"{os.getpid()}-{next(_numbers)}-{time.time_ns()}"
        self.run_ids.append(run_id)
        order = RunSpec(
            run_id=run_id,
            commands=tuple(tuple(command) for command in commands),
            cwd=None if cwd is None else str(cwd),
            roots=tuple(str(root) for root in roots),
            env_names=tuple(env_names),
            stdin=stdin,
            limits=limits,
            reserved=tuple(map(str, reserved)),
            folders=tuple(map(str, folders)),
            folder_bounds=Bounds(tuple(map(str, roots)), tuple(map(str, reserved))),
        )
        path = self.root / run_id
        RunDirectory(path).create(order)
        return path

    def shim(self, path: Path, env: Mapping[str, str] | None = None, crash: str | None = None) -> "Shim":
        """Start a shim for the run."""
        environ = {"PATH": PATH, **(env or {})}
        if crash is not None:
            environ["CLAUDOMATOR_CRASH_SHIM"] = crash
        command = [sys.executable, "-I", "-S", "-X", "utf8", "-c", BOOT, str(INSTALLATION), str(path)]
        with Path(os.devnull).open() as nothing:
            process = bare.of_runs().start(command, environ=environ, files=(nothing.fileno(), 1, 2))
        self.shims.append(process)
        return Shim(process, path)

    def run(self, *commands: Sequence[str], env: Mapping[str, str] | None = None, **order: Any) -> "Ended":
        """Run the commands to their end."""
        path = self.prepare(*commands, **order)
        self.shim(path, env).wait()
        return ended(path)

    def sh(self, script: str, **order: Any) -> "Ended":
        """Run a shell script to its end."""
        return self.run(("sh", "-c", script), **order)

    def clean(self) -> None:
        """End whatever a test has left."""
        for shim in self.shims:
            shim.kill()
            shim.wait()
        for run_id in self.run_ids:
            # Mostly nothing is left, and to make sure of that costs more than many a test.
            if procfs.is_carried(run_id, self.began):
                assert not kill_survivors(run_id, grace_ms=0).left


@dataclass(frozen=True)
class Shim:
    """A shim, and its run."""

    process: bare.Forked
    path: Path

    def wait(self) -> int:
        """Its exit code. One that does not end fails by the test's own timeout."""
        return self.process.wait()

    def output(self, text: str) -> str:
        """The run's standard output, once the text is in it."""
        wait_until(lambda: text in stdout(self.path))
        return stdout(self.path)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)


@dataclass(frozen=True)
class Ended:
    """A run with an exit record."""

    path: Path
    exit: ExitRecord

    @property
    def stdout(self) -> str:
        return stdout(self.path)

    @property
    def stragglers(self) -> int:
        return int(json.loads((self.path / "exit.json").read_bytes())["stragglers"])


def ended(path: Path) -> Ended:
    """The run's end; it has to have come."""
    status = decide_fate(path)
    assert status.fate is RunFate.ENDED, status
    assert status.exit is not None
    return Ended(path, status.exit)


def stdout(path: Path) -> str:
    return written(path / "stdout.jsonl")


def written(path: Path) -> str:
    """What is in a file that a shim makes as it starts; nothing before."""
    return path.read_text(errors="replace") if path.exists() else ""


def alive(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
