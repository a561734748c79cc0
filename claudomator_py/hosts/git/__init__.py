"""Work trees: a separate checkout for each task, with a git that executes nothing that the repository configures.

This module runs git as a subprocess: minimal environment, no hooks, no prompts, a deadline, and its messages if it
fails. Except for finding its directories, git never reads a repository's configuration: see ``shadow``. The settings
here apply in addition, and override the user's own configuration.
"""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from claudomator_py.domain.worktree import TreeFault

CHECKOUT_S = 600.0
"""Time limit for commands that touch all files of a work tree."""
_PASSED = ("HOME", "PATH", "TMPDIR", "USER", "LOGNAME", "XDG_CONFIG_HOME", "GIT_EXEC_PATH")
# The user's own configuration applies, as it does for the agent: a usable tree needs content filters such as LFS. It is
# overridden where it would run programs in the background, or programs that outlive the command.
_SETTINGS = (
    "core.hooksPath=/dev/null", "core.fsmonitor=false", "core.alternateRefsCommand=", "gc.auto=0",
    "maintenance.auto=false", "submodule.recurse=false", "status.submoduleSummary=false",
    "safe.bareRepository=explicit", "worktree.useRelativePaths=false", "core.quotePath=false", "color.ui=false",
)  # fmt: skip
_VARIABLES = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "/bin/false",
    "SSH_ASKPASS": "/bin/false",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    # Nothing is fetched, not even a missing object of a partial clone: the repository decides what that would run.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
}
_MAX_WORDS = 2_000
_TERM_S = 5.0


class GitRefused(Exception):
    """git exited with another code than 0, could not be started, or took too long. words: its error output; printed:
    its standard output."""

    def __init__(self, words: str, code: int | None = None, printed: str = "") -> None:
        super().__init__(words)
        self.words = words
        self.code = code
        self.printed = printed


class Git:
    """Calls git. Safe to use from many threads; ``close`` ends running commands and prevents new ones."""

    def __init__(self, environ: Mapping[str, str], umask: int = -1) -> None:
        """umask: for files written to repositories; -1 for that of this process."""
        self._umask = umask
        self._environ = {name: environ[name] for name in _PASSED if name in environ} | _VARIABLES
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def __call__(
        self,
        folder: Path | str,
        *arguments: str,
        variables: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout_s: float = 30.0,
        keep: Sequence[int] = (),
    ) -> str:
        """Return its output without the final line break. variables: additional variables, such as ``GIT_DIR``. keep:
        descriptors to inherit. Raises GitRefused."""
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        command = ["git", "-C", str(folder), *settings, *arguments]
        process = self._start(command, {**self._environ, **(variables or {})}, keep)
        try:
            printed, complaint = process.communicate(stdin, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            _end(process)
            raise GitRefused(f"git {arguments[0]} took longer than {timeout_s:.0f} s and was ended") from None
        finally:
            with self._lock:
                self._running.discard(process)
        if process.returncode != 0:
            words = (complaint.strip() or printed.strip()).decode(errors="replace")[-_MAX_WORDS:]
            answer = printed.decode(errors="surrogateescape")
            words = words or f"git {arguments[0]} exited with {process.returncode}"
            raise GitRefused(words, process.returncode, answer)
        return printed.decode(errors="surrogateescape").removesuffix("\n")

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._closed

    def close(self) -> None:
        """End running commands, and start no more."""
        with self._lock:
            self._closed = True
            running = list(self._running)
        for process in running:
            # On SIGTERM, git removes its own lock files.
            process.send_signal(signal.SIGTERM)

    def _start(
        self, command: Sequence[str], environ: Mapping[str, str], keep: Sequence[int]
    ) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise GitRefused("the daemon is stopping")
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=environ,
                    pass_fds=keep,
                    start_new_session=True,
                    umask=self._umask,
                )
            except OSError as error:
                raise GitRefused(f"git could not be started ({os.strerror(error.errno or 0)})") from error
            self._running.add(process)
            return process


def is_true(git: Callable[..., str], *arguments: str) -> bool:
    """Return git's answer by exit code: 0 for yes, 1 for no. Raises GitRefused for any other."""
    try:
        git(*arguments)
    except GitRefused as refused:
        if refused.code == 1:
            return False
        raise
    return True


def uncommitted(git: Callable[..., str], untracked: str) -> list[str]:
    """Return the files that differ from the commit, without those in submodules. untracked: "all", or "no" to leave
    out files that git does not know. Raises GitRefused."""
    return [path for _, _, path in standings(git, untracked)]


def standings(git: Callable[..., str], untracked: str) -> list[tuple[str, str, str]]:
    """Return the same files, each after git's letters for how its index differs from the commit, and how the file
    differs from the index; a blank for not at all. Raises GitRefused. Source: git-status(1), short format."""
    options = ("--porcelain", "-z", f"--untracked-files={untracked}", "--no-renames", "--ignore-submodules=dirty")
    return [(entry[0], entry[1], entry[3:]) for entry in git("status", *options).split("\0") if entry]


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.communicate(timeout=_TERM_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


_WITHOUT = "or write `isolation: none`"
_BARE = f"it is a bare repository: choose a work tree or a clone of it, {_WITHOUT}"
_ELSEWHERE = "check out another branch there, then restart the task"
# The first match in git's message counts.
_REMEDIES = (
    ("not a git repository", f"choose a folder in a git repository, {_WITHOUT}"),
    ("cannot change to", "choose an existing folder"),
    ("must be run in a work tree", _BARE),
    ("cannot use bare repository", _BARE),
    ("dubious ownership", "have its owner run the daemon, or allow it with `git config --global --add safe.directory`"),
    ("Needed a single revision", f"it has no commit to begin at: make one, {_WITHOUT}"),
    ("No space left", "make room on the disk, then restart the task"),
    (".lock': File exists", "wait for the other git there; if there is none, remove that lock file"),
    ("' exists; cannot create", "rename the branch that is in the way"),
    ("' is already checked out at '", _ELSEWHERE),
    ("' is already used by worktree at '", _ELSEWHERE),
    ("unable to read", "the clone is partial or damaged, and nothing is fetched for it here: make a full one"),
    ("core.worktree leads elsewhere", "remove core.worktree from its configuration, or choose the folder itself"),
    ("took longer than", f"see what keeps git so long there, then restart the task, {_WITHOUT}"),
    ("could not be started", "install git, and see that it is on the daemon's PATH"),
)
_ELSE = f"correct it and restart the task, {_WITHOUT}"


def fault_of(refused: GitRefused, folder: str) -> TreeFault:
    """Return the fault with git's message, the folder and the remedy."""
    words = refused.words.strip()
    remedy = next((remedy for part, remedy in _REMEDIES if part in words), _ELSE)
    return TreeFault(f"no work tree of {folder}: {words}; {remedy}")
