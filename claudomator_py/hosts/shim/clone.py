"""A work tree on this node: cloned from the address of its repository before the run, and pushed back after it.

Its commits, and one more with uncommitted changes, are pushed to the run's own reference. If that fails, they are
stored as a bundle in the run directory; without space for one, the clone stays on the node. The push is done by a
separate repository next to the clone, so that git does not read anything that the run has configured.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from collections.abc import Callable

from claudomator_py.hosts.shim import record
from claudomator_py.hosts.shim.output import disk_is_full
from claudomator_py.hosts.shim.watch import Deadline
from claudomator_py.hosts.shim.workdir import OWN_IDENTITY, NotAllowed

RETURNED = "returned.json"
BUNDLE = "work.bundle"
LOG = "git.log"

_OURS = "returned.git"
_WORK = "refs/heads/work"
_MAX_S = 600.0
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_MAX_WORDS = 400
_SETTINGS = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "gc.auto=0", "maintenance.auto=false")

Run = Callable[[list[str], dict[str, str], int, Deadline], record.ExitFields]
"""Runs a command with these variables, with that output, and within that time."""


class NotCloned(NotAllowed):
    """The work tree could not be created. ended_by: as in ``exit.json``, if it applies."""

    def __init__(self, words: str, ended_by: str | None = None) -> None:
        super().__init__(words)
        self.ended_by = ended_by


class Clone:
    """The work tree of a run, as described in ``clone.json``. directory: descriptor of the run directory."""

    def __init__(self, directory: int, environ: dict[str, str], run: Run) -> None:
        """Raises OSError, ValueError."""
        order = record.read(record.CLONE, directory)
        self._directory = directory
        self._path = os.readlink(f"/proc/self/fd/{directory}")
        self._address, self._branch, self._commit = str(order["address"]), str(order["branch"]), str(order["commit"])
        self._reference = order["reference"]
        self._start, self._refused = order.get("start"), order.get("refused")
        self._title = str(order["title"])
        self.folder = str(order["folder"])
        self.place = os.path.join(self.folder, str(order["inner"]))
        """Working directory of the run."""
        self._ours = f"{self._path}/{_OURS}"
        self._run = run
        self._environ = {
            "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
            **environ,
            "LC_ALL": "C",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "/bin/false",
            "SSH_ASKPASS": "/bin/false",
        }
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._log = os.open(LOG, flags, 0o600, dir_fd=directory)

    def begin(self, stop: Callable[[], str | None]) -> None:
        """Create the work tree. stop: returns another reason to stop, or None. Raises NotCloned, OSError."""
        try:
            self._begin(stop)
        except NotCloned as problem:
            self._write_result({"fault": "clone", "words": str(problem)})
            raise
        except OSError as problem:
            words = f"{self._address} could not be cloned on {os.uname().nodename}: {problem.strerror}"
            self._write_result({"fault": "clone", "words": words})
            raise NotCloned(words, "disk_full" if problem.errno in _NO_ROOM else None) from problem

    def _begin(self, stop: Callable[[], str | None]) -> None:
        parent = os.path.dirname(self.folder)
        try:
            os.mkdir(parent, 0o700)
        except FileExistsError:
            pass
        status = os.lstat(parent)
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise NotCloned(f"{parent} belongs to somebody else on {os.uname().nodename}")
        if os.path.lexists(self.folder):
            _remove(self.folder)
        if self._refused is not None:
            raise NotCloned(str(self._refused))
        ended = self._clone(stop)
        if ended.ended_by is not None or ended.exit_code != 0:
            words = f"{self._address} could not be cloned on {os.uname().nodename}: {self._words()}"
            is_full = "No space left" in words or disk_is_full_at(parent)
            _remove(self.folder)
            raise NotCloned(words, "disk_full" if is_full else ended.ended_by if ended.ended_by != "timeout" else None)
        if self._tip(f"{self.folder}/.git", f"refs/heads/{self._branch}") != self._commit:
            _remove(self.folder)
            raise NotCloned(f"{self._address} does not have {self._branch} at {self._commit[:10]}")
        os.makedirs(self.place, exist_ok=True)

    def _clone(self, stop: Callable[[], str | None]) -> record.ExitFields:
        """Clone the branch; if the address has its commit only under the run's own reference, fetch that, too. Remove
        the reference of a check from the address. Return the end of the command that failed, or of the last one."""
        if self._start is None:
            return self._git(["clone", "--quiet", "--branch", self._branch, "--", self._address, self.folder], stop)
        here, into = ["-C", self.folder], f"+{self._start}:refs/heads/{self._branch}"
        ended = self._git(["clone", "--quiet", "--no-checkout", "--", self._address, self.folder], stop)
        for command in (
            ["fetch", "--quiet", "--no-tags", "--update-head-ok", "--", self._address, into],
            ["checkout", "--quiet", self._branch, "--"],
        ):
            if ended.ended_by is not None or ended.exit_code != 0:
                return ended
            ended = self._git([*here, *command], stop)
        if self._reference is None:
            self._git([*here, "push", "--quiet", "--no-verify", "--", self._address, f":{self._start}"], stop)
        return ended

    @property
    def is_full(self) -> bool:
        """Whether its disk is full."""
        return disk_is_full_at(self.folder)

    def end(self) -> None:
        """Push the work back, write the result to ``returned.json``, and remove the work tree."""
        result: dict[str, object] = {"base": self._commit, "commit": None, "pushed": False, "fault": None, "words": ""}
        if self._reference is None:
            _remove(self.folder)
            return
        try:
            self._bring_back(result)
        except OSError as problem:
            result["fault"] = "disk_full" if problem.errno in _NO_ROOM else "push"
            result["words"] = str(problem)
        kept = result["fault"] is not None and not os.path.exists(f"{self._path}/{BUNDLE}")
        if kept:
            there = f"{self.folder}.kept-{os.path.basename(self._path)}"
            result["words"] = f"{result['words']}; its files are on {os.uname().nodename} in {there}"
            os.rename(self.folder, there)
        else:
            _remove(self.folder)
            _remove(self._ours)
        self._write_result(result)

    def _write_result(self, result: dict[str, object]) -> None:
        """Write ``returned.json``. Raises OSError."""
        new = f"{self._path}/{RETURNED}.new"
        with open(new, "w", encoding="utf-8") as file:
            json.dump(result, file)
            file.flush()
            os.fsync(file.fileno())
        os.rename(new, f"{self._path}/{RETURNED}")

    def _bring_back(self, result: dict[str, object]) -> None:
        """Raises OSError."""
        if not self._gather():
            result["fault"] = "disk_full" if disk_is_full(self._directory) else "push"
            result["words"] = f"what was done could not be read: {self._words()}"
            return
        commit = result["commit"] = self._tip(self._ours, _WORK)
        if commit == self._commit:
            result["pushed"] = True
            return
        if self._try("push", "--quiet", "--no-verify", "--", self._address, f"+{_WORK}:{self._reference}"):
            result["pushed"] = True
            return
        result["fault"], result["words"] = "push", f"git push to {self._address}: {self._words()}"
        bundle = f"{self._path}/{BUNDLE}"
        if not (
            self._try("bundle", "create", "--quiet", f"{bundle}.new", _WORK, f"^{self._commit}")
            or self._try("bundle", "create", "--quiet", f"{bundle}.new", _WORK)
        ):
            return
        os.rename(f"{bundle}.new", bundle)

    def _gather(self) -> bool:
        """Collect all commits in the separate repository, which borrows the objects of the clone. Raises OSError."""
        if not self._try("init", "--quiet", "--bare", self._ours, at=None):
            return False
        with open(f"{self._ours}/objects/info/alternates", "w", encoding="utf-8") as file:
            file.write(f"{self.folder}/.git/objects\n")
        with open(f"{self._ours}/HEAD", "w", encoding="utf-8") as file:
            file.write(f"ref: {_WORK}\n")
        there = ["-c", "protocol.file.allow=always"]
        if not self._try(*there, "fetch", "--quiet", "--no-tags", "--", f"{self.folder}/.git", f"HEAD:{_WORK}"):
            return False
        files = ["--work-tree", self.folder, "-c", "core.bare=false"]
        if not self._try(*files, "read-tree", "HEAD") or not self._try(*files, "add", "--all", "--", self.folder):
            return False
        if self._try(*files, "diff-index", "--cached", "--quiet", "HEAD", "--"):
            return True
        who = {} if self._try("var", "GIT_COMMITTER_IDENT") and self._try("var", "GIT_AUTHOR_IDENT") else OWN_IDENTITY
        return self._try(*files, "commit", "--quiet", "--no-verify", "--message", self._title, variables=who)

    def _try(self, *arguments: str, at: str | None = "", variables: dict[str, str] | None = None) -> bool:
        """Return whether a git command succeeds in the separate repository. at: None if it does not exist yet."""
        place = [] if at is None else ["--git-dir", self._ours]
        ended = self._git([*place, *arguments], None, variables)
        return ended.ended_by is None and ended.exit_code == 0

    def _git(
        self, arguments: list[str], stop: Callable[[], str | None] | None, variables: dict[str, str] | None = None
    ) -> record.ExitFields:
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        environ = self._environ if variables is None else {**self._environ, **variables}
        os.ftruncate(self._log, 0)
        return self._run(["git", *settings, *arguments], environ, self._log, Deadline(_MAX_S, stop))

    def _words(self) -> str:
        """Return git's last words."""
        text = os.pread(self._log, 64 * 1024, 0).decode(errors="replace")
        return " ".join(text.split())[-_MAX_WORDS:] or "git said nothing"

    @staticmethod
    def _tip(git_dir: str, reference: str) -> str | None:
        """Return the commit of a reference that git has just written."""
        try:
            with open(f"{git_dir}/{reference}", encoding="ascii") as file:
                return file.read().strip()
        except (OSError, ValueError):
            return None


def disk_is_full_at(path: str) -> bool:
    """Return whether the disk of that folder is full."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return disk_is_full(fd)
    finally:
        os.close(fd)


def _remove(folder: str) -> None:
    """Remove a folder that a run may have left in any state."""

    def retry(function: Callable[..., object], path: str, _: object) -> None:
        try:
            os.chmod(os.path.dirname(path), 0o700)
            function(path)
        except OSError:
            return

    shutil.rmtree(folder, onerror=retry)
