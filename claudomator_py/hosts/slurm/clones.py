"""Work trees of repositories that nodes cannot see: each job makes a clone, and the commits that it pushes back are
moved into the daemon's own work tree, which then answers all questions about changes as for a run on this machine.
"""

import json
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from claudomator_py.domain.changes import NotMerged
from claudomator_py.domain.host import HostSpec
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason
from claudomator_py.domain.units import short_id
from claudomator_py.domain.worktree import HEADS, Tree, TreeBusy, TreeFault
from claudomator_py.hosts.git import GitRefused
from claudomator_py.hosts.git.merging import LocalBranches
from claudomator_py.hosts.git.moving import BranchMover, Move, checkout_of
from claudomator_py.hosts.git.shadow import ShadowRepository
from claudomator_py.hosts.git.worktrees import LocalTrees
from claudomator_py.hosts.shim import record, spec
from claudomator_py.hosts.shim.clone import BUNDLE, RETURNED
from claudomator_py.private_files import flush_path, write_new

log = logging.getLogger(__name__)

REFERENCES: Final = "refs/claudomator/runs/"
"""Prefix of the reference to which a run's work is pushed; the run's id follows."""
_NETWORK: Final[dict[str, Any]] = {
    "timeout_s": 600.0,
    "variables": {
        "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
        **{name: os.environ[name] for name in ("SSH_AUTH_SOCK",) if name in os.environ},
    },
}
_FAULTS: Final = (GitRefused, NotMerged, TreeBusy, TreeFault, OSError, ValueError, LookupError)


@dataclass(frozen=True, slots=True)
class CloneFault:
    """The reason why a run had no clone, or why its work is not in its work tree."""

    reason: Reason
    words: str


class Clones:
    """Clones of the repositories on this machine. Safe to use from many threads."""

    def __init__(self, trees: LocalTrees, branches: LocalBranches) -> None:
        self._trees = trees
        self._branches = branches
        self._mover = BranchMover(trees.git, trees.path("moves"))
        self._at_home: dict[str, str | None] = {}
        """By run directory: why its commits are not in the work tree, or None if they are."""

    def order(self, run_dir: str, run_id: str, host: HostSpec, *, returns: bool) -> None:
        """Write to a run directory what its job must clone, if nodes cannot see its repository. returns: whether its
        work is brought back. Raises OSError."""
        try:
            folder = Path(json.loads((Path(run_dir) / spec.FILE).read_bytes())["cwd"])
            inner = folder.relative_to(self._trees.path(""))
        except (ValueError, LookupError):
            return
        tree = self._trees.find(inner.parts[0])
        address = None if tree is None else address_of(tree.repository, host.clone)
        if tree is None or address is None:
            return
        try:
            # The next run begins with what earlier runs on this machine left uncommitted.
            self._branches.commit(tree.name, f"What was left of run {short_id(run_id)}")
            with self._trees.opened(tree.name) as (_, shadow):
                commit = shadow("rev-parse", "--verify", tree.ref)
                start = _sent(
                    shadow, address, tree.branch, commit, f"{REFERENCES}{run_id}{'' if returns else '-check'}"
                )
        except (GitRefused, NotMerged, TreeBusy, TreeFault) as problem:
            raise OSError(f"no clone of {tree.path}: {problem}") from problem
        order = {
            "tree": tree.name,
            "address": address,
            "branch": tree.branch,
            "commit": commit,
            "folder": f"{host.scratch}/claudomator-{os.geteuid()}/{tree.name}",
            "inner": str(Path(*inner.parts[1:])),
            "reference": f"{REFERENCES}{run_id}" if returns else None,
            **start,
            "title": f"What run {short_id(run_id)} did not commit",
        }
        write_new(Path(run_dir) / record.CLONE, json.dumps(order).encode())
        flush_path(Path(run_dir))

    def bring_home(self, run_dir: str) -> None:
        """Move a run's commits into its work tree. Never raises; see ``fault``."""
        order, result = _read(run_dir, record.CLONE), _read(run_dir, RETURNED)
        if not result.get("commit"):
            self.remove_start(run_dir)
            return
        if not order:
            return
        try:
            with self._trees.opened(order["tree"]) as (tree, shadow):
                self._take(run_dir, order, result, tree, shadow)
            self._at_home[run_dir] = None
        except _FAULTS as problem:
            words = " ".join(str(problem).split())
            log.warning("the work of the run in %s is not in its work tree: %s", run_dir, words)
            self._at_home[run_dir] = words

    def remove_start(self, run_dir: str) -> None:
        """Remove the reference that was pushed for the beginning of a run that never began, or whose end nobody
        recorded, unless the run has pushed its work there. Never raises."""
        order = _read(run_dir, record.CLONE)
        if order.get("start") is None:
            return
        lease = f"--force-with-lease={order['start']}:{order['commit']}"
        try:
            with self._trees.opened(order["tree"]) as (_, shadow):
                shadow(
                    "push", "--quiet", "--no-verify", lease, "--", order["address"], f":{order['start']}", **_NETWORK
                )
        except _FAULTS as problem:
            words = " ".join(str(problem).split())
            log.warning("%s is left at %s: %s", order["start"], order["address"], words)

    def fault(self, run_dir: str) -> CloneFault | None:
        """Return what went wrong with a run's clone; None if nothing did, or if it had no clone."""
        result = _read(run_dir, RETURNED)
        kind, words = result.get("fault"), str(result.get("words") or "")
        home = self._at_home.get(run_dir)
        if kind == "clone":
            return CloneFault(Reason.CLONE_FAILED, words)
        if kind is None and home is None:
            return None
        bundle = f"{run_dir}/{BUNDLE}"
        if home is not None:
            words = f"{words}; {home}" if words else home
        if os.path.exists(bundle):
            words += f"; its commits are in {bundle}" + ("" if home is not None else ", and in its work tree")
        elif result.get("pushed"):
            words += f"; its commits are at {REFERENCES}{Path(run_dir).name}"
        return CloneFault(Reason.DISK_FULL if kind == "disk_full" else Reason.PUSH_FAILED, words)

    def forget(self, run_dir: str) -> None:
        """Forget a run whose directory is being removed."""
        self._at_home.pop(run_dir, None)

    def _take(
        self, run_dir: str, order: Mapping[str, Any], result: Mapping[str, Any], tree: Tree, shadow: ShadowRepository
    ) -> None:
        commit, own, reference = result["commit"], tree.ref, order["reference"]
        if not _has(shadow, commit):
            if result["pushed"]:
                fetch = ("fetch", "--quiet", "--no-tags", "--", order["address"], f"+{reference}:{reference}")
                shadow(*fetch, **_NETWORK)
            else:
                shadow("bundle", "unbundle", f"{run_dir}/{BUNDLE}", timeout_s=_NETWORK["timeout_s"])
        now = shadow("rev-parse", "--verify", own)
        if now != commit:
            # Keeps the commit until the branch has it.
            shadow("update-ref", reference, commit)
            if now != order["commit"]:
                raise NotMerged(f"{tree.branch} was moved while the run was elsewhere", "merge it by hand")
            checkout = checkout_of(own, tree)
            if checkout is None:
                shadow("update-ref", own, commit, now)
            else:
                move = Move(own, now, commit, tree.common_dir, checkout.top, checkout.git_dir)
                self._mover.move(shadow, move, lambda _: None)
        with suppress(GitRefused):
            shadow.delete(reference, commit)
        if order.get("start") is not None:
            # Another repository is at that address, and would keep the reference forever.
            with suppress(GitRefused):
                shadow("push", "--quiet", "--", order["address"], f":{reference}", **_NETWORK)


def address_of(repository: str, addresses: Mapping[str, str]) -> str | None:
    """Return the address for the innermost configured folder that contains the repository; None if nodes see it."""
    folders = [folder for folder in addresses if Path(repository).is_relative_to(folder)]
    if not folders:
        return None
    folder = max(folders, key=len)
    inner = Path(repository).relative_to(folder)
    return addresses[folder] if inner == Path() else f"{addresses[folder].rstrip('/')}/{inner}"


def with_fault(outcome: Outcome, fault: CloneFault) -> Outcome:
    """Return the outcome of a run, failed with this fault unless something else went wrong before."""
    never = fault.reason is Reason.CLONE_FAILED and outcome.reason is Reason.SETUP_FAILED
    if not never and outcome.status is not OutcomeStatus.SUCCEEDED:
        return outcome
    return outcome.model_copy(update={"status": OutcomeStatus.FAILED, "reason": fault.reason, "detail": fault.words})


def _sent(shadow: ShadowRepository, address: str, branch: str, commit: str, reference: str) -> dict[str, str]:
    """Ensure that the commit is at that address. Return ``{}`` if the branch there has it; ``start``, the run's own
    reference to which it was pushed, for example to a forge; or ``refused``, the reason why it could not be pushed."""
    try:
        tip = shadow("ls-remote", "--", address, f"{HEADS}{branch}", **_NETWORK).partition("\t")[0]
    except GitRefused:
        # The node may reach the address nevertheless; if not, its job says so.
        return {}
    if tip == commit:
        return {}
    try:
        shadow("push", "--quiet", "--no-verify", "--", address, f"+{commit}:{reference}", **_NETWORK)
    except GitRefused as problem:
        return {"refused": f"{commit[:10]} of {branch} could not be pushed to {address}: {problem}"}
    return {"start": reference}


def _has(shadow: ShadowRepository, commit: str) -> bool:
    try:
        shadow("cat-file", "-e", f"{commit}^{{commit}}")
    except GitRefused:
        return False
    return True


def _read(run_dir: str, name: str) -> dict[str, Any]:
    """Return the content of a JSON file in the run directory; empty if it cannot be read."""
    with suppress(OSError, ValueError):
        return dict(record.read(f"{run_dir}/{name}"))
    return {}
