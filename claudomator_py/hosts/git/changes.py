"""What a run changes where it works: a record before it and one after it, in its directory, and what is between them.

In a repository both records are trees of git, those of what is not committed included, so the difference is exact: what
was changed before the run is none of its changes. Objects for that are written to the run's directory, never to the
repository, and git reads no configuration of the repository (see ``shadow``). Elsewhere files are compared by size and
time.

A record costs a few processes beside the tick. It has a deadline; what cannot be recorded is said, and harms nothing.
"""

import json
import os
import shutil
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from claudomator_py.domain.changes import (
    MAX_COMMITS,
    MAX_RECORDED,
    MAX_REFS,
    Commit,
    FileChange,
    RefChange,
    RunChanges,
)
from claudomator_py.domain.worktree import BRANCHES
from claudomator_py.hosts.git.files import MAX_ENTRIES, differences, files_in, size_and_time, text_of
from claudomator_py.hosts.git.git import Git, GitRefused
from claudomator_py.hosts.git.indexes import Indexes
from claudomator_py.hosts.git.shadow import Repository, ShadowRepository, discover

DEADLINE_S = 10.0
MAX_PATCH_BYTES = 5_000_000
MAX_FILE_BYTES = 5_000_000
"""A larger file is named; what is in it is not compared."""
BEFORE = "before.json"
RECORD = "changes.json"
PATCH = "changes.patch"
SCRATCH = "work"
"""In the run's directory: where a run works that has no folder."""
_STASH = "refs/stash"
_FOLDER = "record"
"""In the run's directory, while a record is made: the shadow, an index and objects."""
_FAULTS = (GitRefused, OSError, ValueError, RuntimeError)
"""RuntimeError: a folder that is a loop of links, to ``pathlib``."""
_NAME_OF = {"A": "added", "D": "deleted"}


@dataclass(frozen=True, slots=True)
class _PlaceState:
    """How a place stands; without a repository only files are known."""

    place: str
    """See ``Repository``."""
    git_dir: str | None = None
    """See ``Repository``."""
    common_dir: str | None = None
    """See ``Repository``."""
    head: str | None = None
    branch: str | None = None
    tree: str | None = None
    """The tree or commit that has the content of every file, committed or not; None: there is no file."""
    refs: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)
    """Of these, the branches that other tasks are at work on, each in a work tree of its own."""
    files: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Size and time of change of each that git does not compare; without a repository of all."""
    uncommitted: Sequence[str] = ()
    untracked: Sequence[str] = ()
    fault: str | None = None


class ChangeRecorder:
    """Makes the records of runs. Safe to use from many threads; ``close`` ends what is under way."""

    def __init__(self, environ: Mapping[str, str], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._git = Git(environ)
        self._monotonic = monotonic
        self._indexes = Indexes()

    def close(self) -> None:
        """End what is under way, and begin nothing more."""
        self._git.close()

    def before(self, run_dir: Path, folder: str) -> None:
        """Record how the folder stands in which the run is about to begin. Never raises."""
        state = self._state(run_dir, folder)
        with suppress(OSError):
            new = run_dir / f"{BEFORE}.new"
            new.write_text(json.dumps({name: getattr(state, name) for name in _PlaceState.__slots__}), encoding="utf-8")
            new.rename(run_dir / BEFORE)

    @staticmethod
    def is_of_interest(run_dir: Path) -> bool:
        """Return whether there can be anything to record after the run: not in a folder of its own that is empty."""
        if (run_dir / BEFORE).exists():
            return True
        try:
            with os.scandir(run_dir / SCRATCH) as entries:
                return next(entries, None) is not None
        except OSError:
            return False

    def after(self, run_dir: Path) -> RunChanges | None:
        """Return what is other than it was, and keep that in the run's directory; None: there is no record to compare
        with. Never raises."""
        try:
            said: dict[str, Any] = json.loads((run_dir / BEFORE).read_text(encoding="utf-8"))
            before = _PlaceState(**{**said, "files": {name: (size, at) for name, (size, at) in said["files"].items()}})
        except (OSError, ValueError, TypeError, KeyError):
            # A folder of its own was empty.
            if not (scratch := run_dir / SCRATCH).is_dir():
                return None
            before = _PlaceState(str(scratch))
        known = recorded(run_dir)
        if known is not None:
            return known
        changes = self._compared(run_dir, before)
        with suppress(OSError):
            new = run_dir / f"{RECORD}.new"
            new.write_text(changes.model_dump_json(), encoding="utf-8")
            new.rename(run_dir / RECORD)
            if before.git_dir is not None:
                self._indexes.keep(before.git_dir, run_dir / _FOLDER, run_dir)
            shutil.rmtree(run_dir / _FOLDER, ignore_errors=True)
        return changes

    def _state(self, run_dir: Path, folder: str) -> _PlaceState:
        """How a folder stands."""
        until = self._monotonic() + DEADLINE_S
        try:
            if not _is_in_repository(folder):
                return _PlaceState(folder, files=files_in(folder, lambda: self._monotonic() > until))
            return self._look(run_dir, discover(self._git, folder), until).state()
        except _FAULTS as error:
            return _PlaceState(folder, fault=_fault(error))

    def _compared(self, run_dir: Path, before: _PlaceState) -> RunChanges:
        if before.fault is not None:
            return RunChanges(place=text_of(before.place), fault=before.fault)
        until = self._monotonic() + DEADLINE_S
        if before.git_dir is None or before.common_dir is None:
            after = self._state(run_dir, before.place)
            fault = after.fault or ("the run has made a repository around its files" if after.git_dir else None)
            if fault is not None:
                return RunChanges(place=text_of(before.place), is_repository=False, fault=fault)
            return _compared_files(before, after)
        try:
            look = self._look(run_dir, Repository(before.place, before.git_dir, before.common_dir), until)
            return look.between(before, look.state())
        except _FAULTS as error:
            return RunChanges(
                place=text_of(before.place), head=before.head, head_before=before.head, fault=_fault(error)
            )

    def _look(self, run_dir: Path, repository: Repository, until: float) -> "_Look":
        return _Look(self._git, self._indexes, run_dir, repository, lambda: until - self._monotonic())


def recorded(run_dir: Path) -> RunChanges | None:
    """Return the record in a run's directory; None: there is none that can be read."""
    try:
        return RunChanges.model_validate_json((run_dir / RECORD).read_bytes())
    except (OSError, ValueError):
        return None


class _Look:
    """One look at a repository. left_s: seconds until the deadline."""

    def __init__(
        self, git: Git, indexes: Indexes, run_dir: Path, repository: Repository, left_s: Callable[[], float]
    ) -> None:
        self._repository = repository
        self._left_s = left_s
        self._indexes = indexes
        self._run_dir = run_dir
        self._folder = run_dir / _FOLDER
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._objects = self._folder / "objects"
        self._shadow = ShadowRepository(git, self._folder / "shadow", repository.common_dir)

    def state(self) -> _PlaceState:
        """Return how it stands. Raises GitRefused; OSError."""
        with ThreadPoolExecutor(1) as beside_it:
            named = beside_it.submit(self._call, "for-each-ref", "--format=%(objectname) %(refname)")
            head, branch, uncommitted, untracked = _status(self._status())
        changed = [*uncommitted, *untracked]
        tree = self._tree(changed) if changed else head
        apart = {path: size_and_time(f"{self._repository.top}/{path}") for path in changed if self._is_beside(path)}
        refs = {name: oid for line in named.result().splitlines() for oid, _, name in [line.partition(" ")]}
        place, git_dir, common_dir = self._repository.top, self._repository.git_dir, self._repository.common_dir
        known = (uncommitted[:MAX_ENTRIES], untracked[:MAX_ENTRIES])
        others = {name: refs[name] for name in _branches_of_others(self._repository) if name in refs}
        return _PlaceState(place, git_dir, common_dir, head, branch, tree, refs, others, apart, *known)

    def between(self, before: _PlaceState, after: _PlaceState) -> RunChanges:
        """Return what is other in the second. Raises GitRefused; OSError."""
        ends = (before.tree or self._no_tree(), after.tree or self._no_tree())
        names = sorted((before.refs.keys() | after.refs.keys()) - before.others.keys() - after.others.keys())
        refs = [
            RefChange(name=text_of(name), before=before.refs.get(name), after=after.refs.get(name))
            for name in names
            if before.refs.get(name) != after.refs.get(name)
        ]
        with ThreadPoolExecutor(2) as beside:
            counted = beside.submit(self._commits, before, after, refs)
            patched = beside.submit(self._patch, *ends)
            compared = self._files(*ends)
        files = sorted([*compared, *differences(before.files, after.files)], key=lambda file: file.path)
        commits, commit_count = counted.result()
        patch_bytes, is_whole = patched.result()
        return RunChanges(
            place=text_of(before.place),
            repository=text_of(self._repository.common_dir.removesuffix("/.git")),
            branch=after.branch and text_of(after.branch),
            branch_before=before.branch and text_of(before.branch),
            head=after.head,
            head_before=before.head,
            commits=tuple(commits),
            commit_count=commit_count,
            refs=tuple(refs[:MAX_REFS]),
            ref_count=len(refs),
            files=tuple(files[:MAX_RECORDED]),
            file_count=len(files),
            added=sum(file.added or 0 for file in files),
            removed=sum(file.removed or 0 for file in files),
            uncommitted=tuple(map(text_of, after.uncommitted[:MAX_RECORDED])),
            uncommitted_count=len(after.uncommitted),
            untracked=tuple(map(text_of, after.untracked[:MAX_RECORDED])),
            untracked_count=len(after.untracked),
            patch_bytes=patch_bytes,
            is_patch_whole=is_whole,
        )

    def _status(self) -> str:
        """Ask git how files differ from a copy of its index, in which it keeps what it has read for the look after the
        run, unless the index is another by then."""
        own = self._indexes.bring(self._repository.git_dir, self._folder)
        options = ("--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--no-renames")
        return self._call("status", *options, "--ignore-submodules=dirty", variables=own)

    def _tree(self, changed: Sequence[str]) -> str:
        """Return the tree of all files as they are: of those that git knows, and of the others."""
        if len(changed) > MAX_ENTRIES:
            raise GitRefused(f"{len(changed):,} files are not committed, more than the {MAX_ENTRIES:,} compared")
        index = self._folder / "index.tree"
        with suppress(FileNotFoundError):
            shutil.copy2(self._folder / "index", index)
        self._objects.mkdir(mode=0o700, exist_ok=True)
        paths = [path for path in changed if _is_comparable(f"{self._repository.top}/{path}")]
        given = "\0".join(paths).encode(errors="surrogateescape")
        own = {"GIT_INDEX_FILE": str(index)}
        self._call("update-index", "-z", "--add", "--remove", "--replace", "--stdin", variables=own, stdin=given)
        return self._call("write-tree", variables=own)

    def _is_beside(self, path: str) -> bool:
        """Return whether what is there is only named: too large a file, or a repository that this one does not know."""
        place = f"{self._repository.top}/{path}"
        return not _is_comparable(place) and (path.endswith("/") or not Path(place).is_dir())

    def _no_tree(self) -> str:
        self._objects.mkdir(mode=0o700, exist_ok=True)
        return self._call("hash-object", "-w", "-t", "tree", "--stdin")

    def _files(self, before: str, after: str) -> list[FileChange]:
        if before == after:
            return []
        listed = self._call("diff-tree", "-r", "-z", "--raw", "--numstat", "--no-renames", *_PLAIN, before, after)
        return _numbered(listed.split("\0"))

    def _commits(self, before: _PlaceState, after: _PlaceState, refs: Sequence[RefChange]) -> tuple[list[Commit], int]:
        new = {ref.after for ref in refs if ref.after and ref.name != _STASH} | ({after.head} if after.head else set())
        known = {*before.refs.values(), *after.others.values(), *([before.head] if before.head else ())}
        if not new - known:
            return [], 0
        given = "\n".join([*(new - known), *(f"^{oid}" for oid in known)]).encode()
        options = (
            "-z",
            "--format=%H%x00%an%x00%s",
            f"--max-count={MAX_COMMITS}",
            "--no-show-signature",
            "--topo-order",
        )
        shown = self._call("log", *options, "--ignore-missing", "--stdin", stdin=given)
        parts = shown.split("\0")
        found = [
            Commit(id=oid, author=text_of(author), subject=text_of(subject))
            for oid, author, subject in zip(parts[::3], parts[1::3], parts[2::3], strict=False)
        ]
        if len(found) < MAX_COMMITS:
            return found, len(found)
        return found, int(self._call("rev-list", "--count", "--ignore-missing", "--stdin", stdin=given))

    def _patch(self, *ends: str) -> tuple[int | None, bool]:
        """Write the patch to the run's directory: as many of its files, in their order, as there is room for."""
        if ends[0] == ends[1]:
            return None, True
        patch = self._call("diff-tree", "-r", "-p", "--no-renames", "--full-index", *_PLAIN, *ends)
        content = patch.encode(errors="surrogateescape")
        if not content:
            return None, True
        is_whole = len(content) <= MAX_PATCH_BYTES
        if not is_whole:
            end = content.rfind(b"\ndiff --git ", 0, MAX_PATCH_BYTES)
            content = content[: end if end > 0 else MAX_PATCH_BYTES]
        (self._run_dir / PATCH).write_bytes(content + b"\n")
        return len(content) + 1, is_whole

    def _call(self, *arguments: str, variables: Mapping[str, str] | None = None, stdin: bytes = b"") -> str:
        left_s = self._left_s()
        if left_s <= 0:
            raise GitRefused(f"it took longer than {DEADLINE_S:.0f} s")
        objects = f"{self._repository.common_dir}/objects"
        own = {"GIT_OBJECT_DIRECTORY": str(self._objects), "GIT_ALTERNATE_OBJECT_DIRECTORIES": objects}
        return self._shadow(
            *arguments,
            git_dir=self._repository.git_dir,
            work_tree=self._repository.top,
            timeout_s=left_s,
            variables={**(own if self._objects.is_dir() else {}), **(variables or {})},
            stdin=stdin,
        )


_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=dirty")


def _status(listed: str) -> tuple[str | None, str | None, list[str], list[str]]:
    """Read ``git status --porcelain=v2 --branch -z``: commit, branch, what is not committed, what git does not know."""
    head = branch = None
    uncommitted, untracked = [], []
    for entry in listed.split("\0"):
        kind, _, rest = entry.partition(" ")
        if kind == "#":
            name, _, value = rest.partition(" ")
            if name == "branch.oid" and value != "(initial)":
                head = value
            elif name == "branch.head" and value != "(detached)":
                branch = value
        elif kind == "?":
            untracked.append(rest)
        elif kind in ("1", "u"):
            uncommitted.append(rest.split(" ", 7 if kind == "1" else 9)[-1])
    return head, branch, uncommitted, untracked


def _numbered(parts: Sequence[str]) -> list[FileChange]:
    """Read ``git diff-tree -z --raw --numstat``: first a letter for each file, then its lines."""
    letters: dict[str, str] = {}
    found = []
    rest = iter(parts)
    for part in rest:
        if part.startswith(":"):
            letters[next(rest)] = part.rsplit(" ", 1)[-1][:1]
        elif part:
            added, removed, path = part.split("\t", 2)
            change = _NAME_OF.get(letters.get(path, "M"), "modified")
            found.append(
                FileChange.model_validate(
                    {"path": text_of(path), "change": change, "added": _lines(added), "removed": _lines(removed)}
                )
            )
    return found


def _lines(number: str) -> int | None:
    return None if number == "-" else int(number)


def _fault(error: Exception) -> str:
    said = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
    return text_of(" ".join(said.split()))[:500]


def _is_in_repository(folder: str) -> bool:
    """Return whether a folder, or one around it, has a ``.git``; git finds out what it is."""
    real = Path(os.path.realpath(folder))
    return any(os.path.lexists(place / ".git") for place in (real, *real.parents))


def _is_comparable(path: str) -> bool:
    """Return whether git can compare what is there: nothing, a file that is not too large, or a submodule, which is a
    folder that git knows by its name alone."""
    try:
        status = os.lstat(path)
    except OSError:
        return True
    if stat.S_ISDIR(status.st_mode):
        return not path.endswith("/") and os.path.lexists(Path(path) / ".git")
    return status.st_size <= MAX_FILE_BYTES


def _branches_of_others(repository: Repository) -> list[str]:
    """Return the branches of tasks that are checked out in other work trees: what is done there is none of this run's
    doing."""
    found = []
    for head in Path(repository.common_dir).glob("worktrees/*/HEAD"):
        with suppress(OSError):
            branch = head.read_text(encoding="utf-8", errors="surrogateescape").removeprefix("ref: ").rstrip("\n")
            if head.parent != Path(repository.git_dir) and branch.startswith(f"refs/heads/{BRANCHES}"):
                found.append(branch)
    return found


def _compared_files(before: _PlaceState, after: _PlaceState) -> RunChanges:
    changes = differences(before.files, after.files)
    files = tuple(changes[:MAX_RECORDED])
    return RunChanges(place=text_of(before.place), is_repository=False, files=files, file_count=len(changes))
