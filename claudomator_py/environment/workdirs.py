"""Working directories: which ones are allowed, and which tasks share one."""

import errno
from collections.abc import Iterator, Sequence
from pathlib import Path

from claudomator_py.domain.errors import Problem, shown
from claudomator_py.values import dataclass

# Linux limits in bytes: the name of a single folder, and a whole path.
_NAME_BYTES = 255
_PATH_BYTES = 4_095
_MAX_LINKS = 40
SYSTEM_FOLDERS = ("/proc", "/sys", "/dev", "/run/user")
"""Folders of the running system: where a path inside leads depends on who follows it, and when."""
_ORDINARY = Path("/dev/shm")  # noqa: S108 - users may build there, in memory


@dataclass(frozen=True, slots=True)
class Workdirs:
    """roots: folders below which a working directory must be; empty for anywhere. reserved: inbox and state folders.
    The same rules apply to a task's additional folders."""

    roots: tuple[Path, ...]
    reserved: tuple[Path, ...]

    def problem(self, folder: str, field: str = "working_dir") -> Problem | None:
        """Return why a task may not use that folder, or None. The shim checks again at the start."""
        if (problem := path_problem(field, folder)) is not None:
            return problem
        try:
            misplaced = self._misplaced(folder)
        except OSError as error:
            why = error.strerror or str(error)
        except RuntimeError:
            why = "its symbolic links lead in a circle"
        else:
            if misplaced is None:
                return None
            message, remedy = misplaced
            return Problem(field=field, message=message, remedy=remedy)
        remedy = "choose a folder that the daemon can reach"
        return Problem(field=field, message=f"{shown(folder)} cannot be examined: {why}", remedy=remedy)

    def _misplaced(self, folder: str) -> tuple[str, str] | None:
        """What is wrong with the folder's place, and what to do. Raises OSError, RuntimeError."""
        systems = [Path(system) for system in SYSTEM_FOLDERS]
        for place in _passed(folder):
            if (through := next((system for system in systems if _lies_in(place, system)), None)) is not None:
                return f"{shown(folder)} leads through {through}, which is the system's", "choose an ordinary folder"
        path = resolve(folder)
        if (around := next((system for system in systems if system.is_relative_to(path)), None)) is not None:
            return f"{shown(folder)} is or contains {around}, which is the system's", "choose an ordinary folder"
        directory_key(folder)
        if self.roots and not any(path.is_relative_to(real_path(root)) for root in self.roots):
            roots = ", ".join(str(root) for root in self.roots)
            remedy = f"choose a folder under {roots}, or add its root to workdir_roots"
            return f"{folder} is not under a root", remedy
        for own in self.reserved:
            reserved = real_path(own)
            if path.is_relative_to(reserved) or reserved.is_relative_to(path):
                remedy = "choose another folder, or move the inbox and the state folder out of it"
                how = "is" if path == reserved else "lies in" if path.is_relative_to(reserved) else "contains"
                return f"{folder} {how} {own}, which Claudomator itself uses", remedy
        return None


def path_problem(field: str, path: str) -> Problem | None:
    """Return why no folder can have this path, or None: the path, or a name in it, is longer than the system allows.
    This is not part of the task file's schema, so that tasks accepted earlier stay readable."""
    try:
        sizes = [len(part.encode()) for part in path.split("/")]
    except UnicodeEncodeError:
        return Problem(field=field, message=f"{shown(path)} cannot be written as UTF-8", remedy="rename the folder")
    if max(sizes) > _NAME_BYTES:
        message = f"a name in {shown(path)} has {max(sizes)} bytes; the system takes at most {_NAME_BYTES}"
    elif sum(sizes) + len(sizes) - 1 > _PATH_BYTES:
        message = f"{shown(path)} has more than the {_PATH_BYTES} bytes that the system takes"
    else:
        return None
    return Problem(field=field, message=message, remedy="check it for a mistake, or choose a shorter path")


def resolve(working_dir: str) -> Path:
    """Return the directory's real path; it need not exist. Raises OSError, or RuntimeError for circular links."""
    path = Path(working_dir).expanduser().resolve()
    try:
        path.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:  # Python 3.13 leaves the circle in the path; earlier versions raise this error
            raise RuntimeError(f"Symlink loop from {working_dir!r}") from None
    return path


def _passed(folder: str) -> Iterator[Path]:
    """Every place that the path to a folder passes through, links included, as far as it exists. Raises RuntimeError
    for circular links."""
    here, links = Path("/"), 0
    ahead = list(reversed(Path(folder).expanduser().parts[1:]))
    while ahead:
        part = ahead.pop()
        here = here.parent if part == ".." else here / part
        yield here
        try:
            target = here.readlink()
        except OSError:
            continue
        links += 1
        if links > _MAX_LINKS:
            raise RuntimeError(folder)
        ahead += [part for part in reversed(target.parts) if part != target.anchor]
        here = Path("/") if target.is_absolute() else here.parent


def _lies_in(place: Path, system: Path) -> bool:
    return system in place.parents and not place.is_relative_to(_ORDINARY)


def directory_key(working_dir: str | None) -> str:
    """Return the key that tasks in the same directory share: the top of its git work tree, otherwise the directory
    itself; empty for a scratch folder. Raises OSError or RuntimeError if ``Workdirs.problem`` reports a problem."""
    if working_dir is None:
        return ""
    path = resolve(working_dir)
    for folder in (path, *path.parents):
        if (folder / ".git").exists():
            return str(folder)
    return str(path)


def place_in_repository(working_dir: str) -> Path:
    """Return the directory's path relative to the top of its git work tree. Raises like ``directory_key``."""
    return resolve(working_dir).relative_to(directory_key(working_dir))


def real_paths(roots: Sequence[Path]) -> tuple[str, ...]:
    """Return the folders as real paths."""
    return tuple(str(real_path(root)) for root in roots)


def real_path(folder: Path) -> Path:
    """Return the folder's real path; if it cannot be resolved, the path as written, which contains no working
    directory."""
    try:
        return folder.resolve()
    except (OSError, RuntimeError):
        return folder.absolute()
