"""Short jobs on a host: whether locks, exclusive creation, renaming and flushing work between this machine and a node,
or between two nodes. They ensure that a run begins at most once."""

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
from claudomator_py.hosts.slurm import EngineSilent, ask, node_trial, refusal, submission
from claudomator_py.hosts.slurm.node_trial import compared
from claudomator_py.hosts.slurm.nodes import list_nodes

PREFIX: Final = ".probe-"
START_S: Final = 120.0
_START_SECOND_S: Final = node_trial.PATIENCE_S - 10
_ANSWER_S: Final = 30.0
_ASK_EVERY_S: Final = 2.0
_GONE_S: Final = 4.0
"""How long after the end of the job its files may take to appear here."""
_LOOK_EVERY_S: Final = 0.1
_MAX_SKEW_S: Final = 5.0
_STALE_S: Final = 86_400.0
_LOOK: Final = "See `sinfo`, and the log of slurmctld."
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
    """The result of a trial between a node and another machine."""

    node: str
    """Slurm's name for it."""
    machines: tuple[str, str]
    """Both, in words."""
    faults: Sequence[Fault]
    """What does not hold between them on the shared folder."""
    skew: Fault | None
    """The difference of their clocks, if it is too large."""
    absent: Sequence[str]
    """Of the wanted files and programs, those that the node does not have."""


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
    """Have a node and this machine try the host's folder, and return the result. Leaves neither job nor files.

    start_s: how long the job may wait for a node. pause: waits for that many seconds; what it raises ends the trial.
    waits: called with the state of a job that has no node yet. Raises Untried.
    """
    with _folder(host, wanted) as folder, _job(host, folder, "answer", pause=pause, waits=waits) as job:
        limits_s = {"held": start_s}
        result = compared(folder, lambda name: job.read(name, limits_s.get(name, _ANSWER_S)))
        return _judged(result, "this machine", os.getuid())


def tried_between(host: HostSpec, wanted: Wanted, other_than: str) -> Tried | None:
    """Have two nodes try the host's folder, and return the result for the first of them, which is another one than
    that; None if the host has a single node. Leaves neither jobs nor files. Raises Untried."""
    try:
        listed = list_nodes(host)
    except EngineSilent as silence:
        raise Untried(str(silence), _LOOK) from silence
    if len(listed.nodes) < 2:
        return None
    if len(listed.nodes) - len(listed.unusable) < 2:
        raise Untried("not tried, because fewer than two nodes take runs", "See `sinfo -R` for the reasons.")
    with _folder(host, wanted) as folder, _job(host, folder, "answer", f"--exclude={other_than}") as first:
        node = first.read("held", START_S)["node"]
        with _job(host, folder, "ask", f"--exclude={node}") as second:
            result = second.read("result", _START_SECOND_S)
        asker = result["asker"]
        return _judged(result, _named(asker), asker["uid"])


@contextmanager
def _folder(host: HostSpec, wanted: Wanted) -> Iterator[Path]:
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
        asked = {"files": [*wanted.files], "programs": [*wanted.programs], "path": wanted.path}
        (folder / "wanted").write_text(json.dumps(asked), encoding="utf-8")
        # Nodes need no Claudomator.
        shutil.copy(node_trial.__file__, folder / "trial.py")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _judged(result: dict[str, Any], other: str, uid: int) -> Tried:
    """Return what that result of ``compared`` means. other, uid: the machine that asked, in words, and its user."""
    answerer = result["answerer"]
    node = _named(answerer)
    faults, skew = [], None
    for user, machine in {answerer["uid"]: node, uid: other}.items():
        if user != os.getuid():
            words = f"{machine} runs jobs as user {user}, not {os.getuid()}"
            faults.append(Fault(words, "Use one user id everywhere."))
    if not result["locked"]:
        faults.append(Fault(f"{node} and {other} can hold the same lock at once", LOCKS))
    if not result["exclusive"]:
        faults.append(Fault(f"{node} and {other} can both create the same file exclusively", LOCKS))
    if not result["renamed"]:
        faults.append(Fault(f"{node} does not see at once what {other} has renamed", LOCKS))
    if abs(result["skew_s"]) > _MAX_SKEW_S:
        words = f"the clocks of {node} and {other} differ by about {result['skew_s']:.0f} s"
        skew = Fault(words, "Have both follow a time server.")
    return Tried(answerer["node"], (node, other), faults, skew, result["absent"])


def _named(about: dict[str, Any]) -> str:
    return f"{about['node']} (Python {about['python']})"


@contextmanager
def _job(
    host: HostSpec,
    folder: Path,
    part: str,
    *options: str,
    pause: Callable[[float], object] = time.sleep,
    waits: Callable[[str], None] = lambda _: None,
) -> Iterator["_Job"]:
    """Have a job do that part of the trial, and end it if it is still there. Raises Untried."""
    # By name: Slurm gives the id of a job that it has forgotten to another one. The folder's name is unique.
    job = _Job(f"claudomator-{folder.name.removeprefix('.')}-{part}", folder, folder / f"{part}.log", pause, waits)
    command = shlex.join([host.python or sys.executable, "-I", "-S", f"{folder}/trial.py", str(folder), part])
    try:
        _submit([*submission(host, job.name, str(job.log)), "--time=2", *options], command)
        yield job
    finally:
        with suppress(EngineSilent):
            ask("scancel", "--me", f"--name={job.name}")


def _submit(submitting: Sequence[str], command: str) -> None:
    try:
        ask(*submitting, text=f"#!/bin/sh\nexec {command}\n")
    except EngineSilent as fault:
        plain = refusal(str(fault))
        if plain is not None:
            raise Untried(
                f"{plain} ({fault})", "Correct the host's entry, or ask the cluster's administrators."
            ) from fault
        raise Untried(str(fault), _LOOK) from fault


@dataclass(frozen=True, slots=True)
class _Job:
    name: str
    folder: Path
    log: Path
    pause: Callable[[float], object]
    waits: Callable[[str], None]

    def read(self, file: str, patience_s: float) -> dict[str, Any]:
        """Return what the job has written to the file, waiting for it unless the job is gone. Raises Untried."""
        began = time.monotonic()
        next_question, last_seen = began, began
        state: str | None = ""
        while (now := time.monotonic()) < began + patience_s and now - last_seen < _GONE_S + _ASK_EVERY_S:
            # Listing the folder makes network file systems refresh it.
            if file in os.listdir(self.folder):
                report: dict[str, Any] = json.loads((self.folder / file).read_text(encoding="utf-8"))
                return report
            if now >= next_question:
                state = self._state()
                if state:
                    self.waits(state)
                next_question = time.monotonic() + _ASK_EVERY_S
                last_seen = last_seen if state == "" else next_question
            self.pause(_LOOK_EVERY_S)
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines() if self.log.exists() else []
        so_far = "" if state == "" else f" within {patience_s:.0f} s"
        where = "gone" if state == "" else state or "not known to squeue"
        why = "".join(f": {line}" for line in lines[-1:])
        raise Untried(f"no node has answered{so_far}, and its job is {where}{why}", "See `squeue` and `sinfo -R`.")

    def _state(self) -> str | None:
        """Return the job's state and reason in Slurm's words, empty if there is no such job; None if squeue fails."""
        try:
            return ask("squeue", "--me", "--noheader", f"--name={self.name}", "--format=%T (%r)").strip()
        except EngineSilent:
            return None
