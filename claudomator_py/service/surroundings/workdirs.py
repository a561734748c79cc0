"""Working directories: which ones are allowed, and which tasks share one."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from claudomator_py.core.problem import Problem, shown

# What Linux takes, in bytes: of the name of one folder, and of a whole path.
_NAME_BYTES = 255
_PATH_BYTES = 4_095


@dataclass(frozen=True, slots=True)
class Workdirs:
    """roots: where a working directory may lie; empty: anywhere. reserved: inbox and state folders."""

    roots: tuple[Path, ...]
    reserved: tuple[Path, ...]

    def problem(self, working_dir: str) -> Problem | None:
        """Why a task may not run there, or None. The shim checks again when it starts."""
        if (problem := path_problem("working_dir", working_dir)) is not None:
            return problem
        try:
            return self._misplaced(working_dir)
        except OSError as error:
            why = error.strerror or str(error)
        except RuntimeError:
            why = "its symbolic links lead in a circle"
        return _problem(f"{shown(working_dir)} cannot be looked at: {why}", "choose a folder that the daemon can reach")

    def _misplaced(self, working_dir: str) -> Problem | None:
        path = resolve(working_dir)
        directory_key(working_dir)
        if self.roots and not any(path.is_relative_to(real_path(root)) for root in self.roots):
            roots = ", ".join(str(root) for root in self.roots)
            return _problem(
                f"{working_dir} is not under a root", f"choose a folder under {roots}, or add its root to workdir_roots"
            )
        for folder in self.reserved:
            reserved = real_path(folder)
            if path.is_relative_to(reserved) or reserved.is_relative_to(path):
                remedy = "choose another folder, or move the inbox and the state folder out of it"
                return _problem(f"{working_dir} contains or lies in {folder}, which Claudomator itself uses", remedy)
        return None


def path_problem(field: str, path: str) -> Problem | None:
    """Why no folder can have this path, or None: a name in it or the whole is longer than the system takes.

    Not a rule of the task file's schema: what was accepted before stays readable.
    """
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
    """The directory's real path; it need not exist. Raises OSError, or RuntimeError for links that go in a circle."""
    return Path(working_dir).expanduser().resolve()


def directory_key(working_dir: str | None) -> str:
    """What tasks in one directory share: the top of its git work tree, else itself; empty for a scratch folder.

    Raises OSError or RuntimeError where ``Workdirs.problem`` finds one.
    """
    if working_dir is None:
        return ""
    path = resolve(working_dir)
    for folder in (path, *path.parents):
        if (folder / ".git").exists():
            return str(folder)
    return str(path)


def place_in_repository(working_dir: str) -> Path:
    """Where the directory lies in its git work tree, relative to the top. Raises as ``directory_key`` does."""
    return resolve(working_dir).relative_to(directory_key(working_dir))


def real_paths(roots: Sequence[Path]) -> tuple[str, ...]:
    """The folders as real paths."""
    return tuple(str(real_path(root)) for root in roots)


def real_path(folder: Path) -> Path:
    """Its real path; of one that cannot be resolved the path as it is written, in which no working directory lies."""
    try:
        return folder.resolve()
    except (OSError, RuntimeError):
        return folder.absolute()


def _problem(message: str, remedy: str) -> Problem:
    return Problem(field="working_dir", message=message, remedy=remedy)
