"""Files next to the folders of work trees: records, locks, and the result of the last look."""

import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from claudomator_py.domain.worktree import Tree, TreeBusy, TreeFault, TreeStanding, TreeState
from claudomator_py.hosts.git.shadow import POINTER, pointing_to
from claudomator_py.private_files import flush_path, write_new

_RECORD = ".json"
_LOCK = ".lock"
_STATE = ".state"


class TreeRecords:
    """Records of the trees under one folder, each next to its tree."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def names(self) -> list[str]:
        """Return the names of all recorded trees."""
        if not self._root.is_dir():
            return []
        return sorted(path.name.removesuffix(_RECORD) for path in self._root.glob(f"*{_RECORD}"))

    def read(self, name: str) -> tuple[Tree, bool] | None:
        """Return the record, and whether the tree was complete; None if there is none, or it cannot be read."""
        try:
            data = json.loads((self._root / f"{name}{_RECORD}").read_bytes())
            made = data.pop("made")
            data |= {key: tuple(data.get(key, ())) for key in ("filters", "passed_over", "unexamined")}
            return Tree(**(data | {"name": name, "path": str(self._root / name)})), bool(made)
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return None

    def write(self, tree: Tree, *, made: bool) -> None:
        """Write the record durably. Raises OSError."""
        new = self._root / f".{tree.name}{_RECORD}"
        data = {key: value for key, value in asdict(tree).items() if key not in ("name", "path")}
        write_new(new, json.dumps({**data, "made": made}, indent=2).encode())
        new.rename(self._root / f"{tree.name}{_RECORD}")
        flush_path(self._root)

    def forget(self, name: str) -> None:
        """Remove all files of a tree. Raises OSError."""
        for suffix in (_STATE, _RECORD, _LOCK):
            (self._root / f"{name}{suffix}").unlink(missing_ok=True)
        flush_path(self._root)

    def state(self, name: str) -> TreeState | None:
        """Return the result of the last look; None if there was none. seen_ms is 0 if the tree was given to a run since
        then."""
        try:
            data = json.loads((self._root / f"{name}{_STATE}").read_bytes())
            known = {"standing": TreeStanding(data["standing"]), "by_check": tuple(data.get("by_check", ()))}
            return TreeState(**(data | known))
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return None

    def keep_state(self, name: str, state: TreeState) -> None:
        """Store the result of a look. Raises OSError."""
        new = self._root / f".{name}{_STATE}"
        new.write_text(json.dumps(asdict(state)))
        new.rename(self._root / f"{name}{_STATE}")

    def forget_state(self, name: str) -> None:
        """Forget the state, which is about to change, except which files checks have left. Raises OSError."""
        state = self.state(name)
        if state is None or not state.by_check:
            (self._root / f"{name}{_STATE}").unlink(missing_ok=True)
        else:
            self.keep_state(name, TreeState(TreeStanding.UNKNOWN, by_check=state.by_check))

    @contextmanager
    def held(self, name: str) -> Iterator[int]:
        """Hold the tree's lock. Yields its descriptor. Raises TreeBusy; OSError."""
        path = self._root / f"{name}{_LOCK}"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise TreeBusy(name) from None
            if not path.exists() or path.stat().st_ino != os.fstat(fd).st_ino:
                raise TreeBusy(name)
            yield fd
            # Closing is not enough: a process that another thread is starting has a copy of the descriptor until its
            # exec, and until then the tree would seem to be in use.
            fcntl.flock(fd, fcntl.LOCK_UN)
        finally:
            os.close(fd)


def finding(tree: Tree) -> str | None:
    """Return how an existing tree differs from what git created according to our record; None if it does not.

    An agent can write to the tree. By replacing the ``.git`` file it could lead git to a directory and a configuration
    of its own.
    """
    try:
        folder = os.open(tree.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        return f"its folder cannot be opened ({error.strerror})"
    try:
        status = os.stat(POINTER, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode):
            what = "link" if stat.S_ISLNK(status.st_mode) else "folder" if stat.S_ISDIR(status.st_mode) else "device"
            return f"its .git is a {what}, not the file that git made"
        fd = os.open(POINTER, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        with os.fdopen(fd, "rb") as file:
            if file.read(status.st_size + 1) != pointing_to(tree.git_dir):
                return "its .git file was changed, and leads elsewhere"
    except FileNotFoundError:
        return "its .git file is gone"
    except OSError as error:
        return f"its .git file cannot be read ({error.strerror})"
    finally:
        os.close(folder)
    if tree.common_dir and not Path(tree.common_dir).is_dir():
        return f"its repository {tree.repository} is not there any more"
    if back_pointer(tree.git_dir) != f"{tree.path}/{POINTER}":
        return "its repository no longer knows it"
    return None


def back_pointer(git_dir: str | Path) -> str | None:
    """Return the path of the work tree's ``.git`` file, as git has stored it in its git directory."""
    try:
        return (Path(git_dir) / "gitdir").read_text(errors="surrogateescape").removesuffix("\n")
    except (OSError, ValueError):
        return None


def require_sound(tree: Tree) -> None:
    """Raise TreeFault for an existing tree that is not as git created it."""
    if os.path.lexists(tree.path) and (wrong := finding(tree)) is not None:
        raise TreeFault(f"{tree.path} is no work tree of git any more: {suspicious(tree, wrong)}")


def suspicious(tree: Tree, wrong: str) -> str:
    """Return the message about such a tree."""
    is_orphaned = bool(tree.common_dir) and not Path(tree.common_dir).is_dir()
    remedy = "move it back" if is_orphaned else f"see what was done in {tree.path}, and move it away"
    return f"{wrong}, so git is not run there; {remedy}"
