"""What a task expects to be there when it starts, and is not there yet: folders, a repository, the programs of its
check.

Nothing of it is refused: another task, or the agent itself, may make it in time.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from claudomator_py.domain.errors import Problem, printable
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.worktree import Isolation
from claudomator_py.environment.programs import programs_of
from claudomator_py.environment.workdirs import directory_key, resolve


def standing_warnings(spec: TaskSpec) -> list[Problem]:
    """Return what the task would fail at if it started now, as far as a look at the file system tells."""
    return [*_folder_warnings(spec), *_check_warnings(spec)]


def _folder_warnings(spec: TaskSpec) -> Iterator[Problem]:
    folders = [("working_dir", spec.working_dir)] if spec.working_dir is not None else []
    folders += [(f"add_dirs[{place}]", folder) for place, folder in enumerate(spec.add_dirs)]
    for field, folder in folders:
        if (found := _folder_problem(folder)) is not None:
            message, remedy = found
            if field != "working_dir":
                message = message.replace("the task would fail", "its agent could not use it")
            yield Problem(field=field, message=f"{printable(folder)} {message}", remedy=remedy)
    isolated = spec.working_dir if spec.isolation is Isolation.WORKTREE else None
    if isolated is not None and (missing := _missing_of_repository(isolated)) is not None:
        why, first = missing
        message = f"needs a git repository with a commit, and {printable(isolated)} {why}; the task would fail"
        yield Problem(field="isolation", message=message, remedy=f"{first}, or write isolation: none")


def _folder_problem(folder: str) -> tuple[str, str] | None:
    """What is wrong with a folder, behind its name, and what to do."""
    path = Path(folder).expanduser()
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return "does not exist; the task would fail", "create it before the task starts, or correct it"
    except (OSError, RuntimeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return f"cannot be examined: {why}", "choose a folder that the daemon can reach"
    if not stat.S_ISDIR(found.st_mode):
        return "is not a folder; the task would fail", "name the folder that it lies in"
    if not os.access(path, os.R_OK | os.X_OK):
        return "may not be read; the task would fail", f"give the user with id {os.geteuid()} the rights r and x on it"
    return None


def _missing_of_repository(folder: str) -> tuple[str, str] | None:
    """What keeps git from making a work tree there, and what to do; nothing is said of a folder that is not there
    itself."""
    try:
        place = resolve(folder)
        if not place.is_dir():
            return None
        if any(_is_git_directory(Path(each)) for each in (place, *place.parents)):
            return "is a bare one, or the inside of one", "name the folder of a clone"
        git = Path(directory_key(folder)) / ".git"
        if not git.exists():
            return "is in none", "run `git init` there and commit"
        return ("is in one that has no commit", "commit there") if git.is_dir() and _is_unborn(git) else None
    except (OSError, RuntimeError, UnicodeDecodeError):
        return None


def _is_git_directory(folder: Path) -> bool:
    """Whether git keeps a repository right in that folder, which has none of its files."""
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def _is_unborn(git: Path) -> bool:
    """Whether HEAD is a branch without a commit, in a repository whose refs are files. Raises OSError."""
    ref = (git / "HEAD").read_text().strip().removeprefix("ref: ")
    packed = git / "packed-refs"
    if (git / "reftable").exists() or not ref.startswith("refs/") or (git / ref).exists():
        return False
    return not packed.exists() or f" {ref}\n" not in packed.read_text()


def _check_warnings(spec: TaskSpec) -> Iterator[Problem]:
    for place, command in enumerate(spec.check):
        missing = ((program, where) for program in programs_of(command) if (where := _missing(program, spec)))
        if (found := next(missing, None)) is None:
            continue
        program, where = found
        remedy = "install it, or correct the command"
        if "/" not in program:
            message = f"there is no program `{printable(program)}` on PATH"
            message += "" if program == command[0] else ", and the check runs it"
        elif Path(where).is_file():
            message, remedy = f"{printable(program)} cannot be executed", f"run `chmod +x` on it, or write sh {program}"
        else:
            message, remedy = f"there is no {printable(program)}", "add it before the task ends, or correct the command"
        yield Problem(field=f"check[{place}]", message=f"{message}; the check would fail", remedy=remedy)


def _missing(program: str, spec: TaskSpec) -> str | None:
    """Where the program is looked for and is not; None: it is there, or nothing can be said of it."""
    where = _place_of(program, spec)
    return None if where is None or shutil.which(where, path=spec.env.get("PATH")) is not None else where


def _place_of(program: str, spec: TaskSpec) -> str | None:
    """Where the program is looked for; None: nothing can be said before the task has its folder."""
    if "/" not in program or program.startswith("/"):
        return program
    if spec.working_dir is None or _folder_problem(spec.working_dir) is not None:
        return None
    return str(Path(spec.working_dir).expanduser() / program)
