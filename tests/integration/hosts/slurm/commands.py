"""Programs that stand in for Slurm's, and a run that is given to them."""

import os
from pathlib import Path

from claudomator_py.domain.run import RunFate, RunSpec
from claudomator_py.hosts.slurm.host import ClusterRunHost
from tests.integration.hosts.rig import LIMITS

RUN_ID = "standing-run"
KEY = f"cl-{RUN_ID}-0"
ORDER = RunSpec(RUN_ID, (("true",),), None, (), ("PATH",), "", LIMITS, hosts=("lab",))


class Commands:
    """Slurm's commands, each of which says what its file has, and fails where that is not there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name in ("sbatch", "squeue", "scancel", "sinfo"):
            program = folder / name
            noting = f"echo \"$*\" >> '{folder}/{name}.asked'\n"
            noting += 'case $* in *--version*) echo "slurm 22.05.8"; exit;; esac\n' if name == "sinfo" else ""
            printing, failing = f"cat '{folder}/{name}.said' 2> /dev/null", f"cat '{folder}/{name}.failed' >&2; exit 1"
            program.write_text(f"#!/bin/sh\n{noting}{printing} || {{ {failing}; }}\n")
            program.chmod(0o755)
            self.fail(name, f"{name}: error: no answer")

    def say(self, name: str, text: str) -> None:
        (self._folder / f"{name}.said").write_text(text)

    def is_asked(self, name: str) -> bool:
        file = self._folder / f"{name}.asked"
        return file.exists() and file.stat().st_size > 0

    def asked(self, name: str) -> str:
        """How it was called last."""
        return (self._folder / f"{name}.asked").read_text().splitlines()[-1]

    def all_asked(self, name: str) -> list[str]:
        """How it was called each time."""
        return (self._folder / f"{name}.asked").read_text().splitlines() if self.is_asked(name) else []

    def fail(self, name: str, words: str) -> None:
        (self._folder / f"{name}.said").unlink(missing_ok=True)
        (self._folder / f"{name}.failed").write_text(words)


def submitted(host: ClusterRunHost) -> None:
    """A run that was given to the cluster, and looked at."""
    host.prepare(ORDER)
    host.spawn(RUN_ID, {"PATH": os.environ["PATH"]})
    assert host.reconcile(RUN_ID).fate is RunFate.STARTING
