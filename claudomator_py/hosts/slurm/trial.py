"""A short job on a host: whether locks, exclusive creation, renaming and flushing work between this machine and a node.
They ensure that a run begins at most once."""

import fcntl
import json
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from claudomator_py.domain.host import HostSpec
from claudomator_py.hosts.slurm import node_trial
from claudomator_py.hosts.slurm.commands import EngineSilent, ask, refusal, submission
from claudomator_py.hosts.slurm.node_trial import can_lock, can_make

PREFIX: Final = ".probe-"
START_S: Final = 120.0
_ANSWER_S: Final = 30.0
_ASK_EVERY_S: Final = 2.0
_GONE_S: Final = 4.0
"""How long after the end of the job its files may take to appear here."""
_LOOK_EVERY_S: Final = 0.1
_MAX_SKEW_S: Final = 5.0
_STALE_S: Final = 86_400.0
_FILES: Final = ("lock", "ours", "mine", "before")
LOCKS: Final = "Use a file system whose locks hold across machines, such as NFS of version 4."


class Untried(Exception):
    """The host could not be tried. args: the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What keeps runs from that host, or may one day."""

    words: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Tried:
    """What a node and this machine have seen of each other. node: its name and Python. absent: of the wanted files and
    programs, those that the node does not have."""

    node: str
    faults: Sequence[Fault]
    skew: Fault | None
    absent: Sequence[str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Files that a node must have, and programs that must be on that PATH there."""

    files: Sequence[str] = ()
    programs: Sequence[str] = ()
    path: str = ""


def tried(
    host: HostSpec,
    wanted: Wanted = Wanted(),
    *,
    start_s: float = START_S,
    pause: Callable[[float], object] = time.sleep,
    waits: Callable[[str], None] = lambda _: None,
) -> Tried:
    """Have a node try the host's folder, and return what was found. Leaves neither job nor files.

    start_s: how long the job may wait for a node. pause: waits for that many seconds; what it raises ends the trial.
    waits: called with the state of a job that has no node yet. Raises Untried.
    """
    with _folder(host) as folder:
        # By name: Slurm gives the id of a job that it has forgotten to another one. The folder's name is unique.
        job = _Job(f"claudomator-{folder.name.removeprefix('.')}", folder, pause, waits)
        try:
            _submit(host, folder, job.name, wanted)
            return _compared(folder, job, start_s)
        finally:
            with suppress(EngineSilent):
                ask("scancel", "--me", f"--name={job.name}")


@contextmanager
def _folder(host: HostSpec) -> Iterator[Path]:
    try:
        for old in Path(host.root).glob(f"{PREFIX}*"):
            # Left by a process that was killed.
            if time.time() - old.stat().st_mtime > _STALE_S:
                shutil.rmtree(old, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=host.root))
    except OSError as fault:
        words = f"no folder can be created in {host.root}: {fault.strerror}"
        raise Untried(words, "Mount it, and give this user the folder.") from fault
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _submit(host: HostSpec, folder: Path, job: str, wanted: Wanted) -> None:
    for made in _FILES:
        (folder / made).touch()
    asked = {"files": [*wanted.files], "programs": [*wanted.programs], "path": wanted.path}
    (folder / "wanted").write_text(json.dumps(asked), encoding="utf-8")
    # Nodes need no Claudomator.
    program = shutil.copy(node_trial.__file__, folder / "trial.py")
    command = shlex.join([host.python or sys.executable, "-I", "-S", str(program), str(folder)])
    try:
        ask(*submission(host, job, f"{folder}/log"), "--time=2", text=f"#!/bin/sh\nexec {command}\n")
    except EngineSilent as fault:
        plain = refusal(str(fault))
        if plain is not None:
            raise Untried(
                f"{plain} ({fault})", "Correct the host's entry, or ask the cluster's administrators."
            ) from fault
        raise Untried(str(fault), "See `sinfo`, and the log of slurmctld.") from fault


def _compared(folder: Path, job: "_Job", start_s: float) -> Tried:
    with (folder / "ours").open("r+b") as ours:
        fcntl.flock(ours, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held = job.said("held", start_s)
        skew_s = time.time() - held["time"]
        is_locked, is_exclusive = not can_lock(folder / "lock"), not can_make(folder / "theirs")
        (folder / "before").rename(folder / "after")
        (folder / "go").touch()
        answer = job.said("found", _ANSWER_S)
    node = f"{held['node']} (Python {held['python']})"
    faults, skew = [], None
    if held["uid"] != os.getuid():
        words = f"{node} runs jobs as user {held['uid']}, not {os.getuid()}"
        faults.append(Fault(words, "Use one user id everywhere."))
    if not (is_locked and answer["locked"]):
        faults.append(Fault(f"{node} and this machine can hold the same lock at once", LOCKS))
    if not (is_exclusive and answer["exclusive"]):
        faults.append(Fault(f"{node} and this machine can both create the same file exclusively", LOCKS))
    if not answer["renamed"]:
        faults.append(Fault(f"{node} does not see at once what was renamed here", LOCKS))
    if abs(skew_s) > _MAX_SKEW_S:
        words = f"the clock of {node} differs by about {skew_s:.0f} s"
        skew = Fault(words, "Have both follow a time server.")
    return Tried(node, faults, skew, answer["absent"])


@dataclass(frozen=True, slots=True)
class _Job:
    name: str
    folder: Path
    pause: Callable[[float], object]
    waits: Callable[[str], None]

    def said(self, file: str, patience_s: float) -> dict[str, Any]:
        """Return what the node has written into the file, waiting for it, but not for a job that is gone. Raises
        Untried."""
        began = time.monotonic()
        next_question, last_seen = began, began
        state: str | None = ""
        while (now := time.monotonic()) < began + patience_s and now - last_seen < _GONE_S + _ASK_EVERY_S:
            # Listing the folder makes network file systems refresh it.
            if file in os.listdir(self.folder):
                answer: dict[str, Any] = json.loads((self.folder / file).read_text(encoding="utf-8"))
                return answer
            if now >= next_question:
                state = self._state()
                if state:
                    self.waits(state)
                next_question = time.monotonic() + _ASK_EVERY_S
                last_seen = last_seen if state == "" else next_question
            self.pause(_LOOK_EVERY_S)
        log = self.folder / "log"
        words = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:] if log.exists() else []
        so_far = "" if state == "" else f" within {patience_s:.0f} s"
        where = "gone" if state == "" else state or "not known to squeue"
        why = "".join(f": {line}" for line in words)
        raise Untried(f"no node has answered{so_far}, and its job is {where}{why}", "See `squeue` and `sinfo -R`.")

    def _state(self) -> str | None:
        """Return the job's state and reason in Slurm's words, empty if there is no such job; None if squeue fails."""
        try:
            return ask("squeue", "--me", "--noheader", f"--name={self.name}", "--format=%T (%r)").strip()
        except EngineSilent:
            return None
