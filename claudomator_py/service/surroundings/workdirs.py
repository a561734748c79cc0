"""Working directories: which ones are allowed, and which tasks share one."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from claudomator_py.core.problem import Problem


@dataclass(frozen=True, slots=True)
class Workdirs:
    """roots: where a working directory may lie; empty: anywhere. reserved: inbox and state folders."""

    roots: tuple[Path, ...]
    reserved: tuple[Path, ...]

    def problem(self, working_dir: str) -> Problem | None:
        """Why a task may not run there, or None. The shim checks again when it starts."""
        try:
            path = resolve(working_dir)
            directory_key(working_dir)
        except (OSError, RuntimeError) as error:
            return _problem(f"{working_dir} cannot be looked at ({error})", "choose a folder that the daemon can reach")
        if self.roots and not any(path.is_relative_to(root.resolve()) for root in self.roots):
            roots = ", ".join(str(root) for root in self.roots)
            return _problem(
                f"{working_dir} is not under a root", f"choose a folder under {roots}, or add its root to workdir_roots"
            )
        for folder in self.reserved:
            reserved = folder.resolve()
            if path.is_relative_to(reserved) or reserved.is_relative_to(path):
                remedy = "choose another folder, or move the inbox and the state folder out of it"
                return _problem(f"{working_dir} contains or lies in {folder}, which Claudomator itself uses", remedy)
        return None


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
    return tuple(str(root.resolve()) for root in roots)


def _problem(message: str, remedy: str) -> Problem:
    return Problem(field="working_dir", message=message, remedy=remedy)
