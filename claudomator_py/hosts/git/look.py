"""Looking at a repository in which a run works: its state, and the difference between two states.

git compares all files with a copy of the index. Objects are written to the run directory, never to the repository, and
git does not read the repository's configuration (see ``shadow``).
"""

import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import field
from itertools import islice
from pathlib import Path

from claudomator_py.domain.changes import (
    MAX_COMMITS,
    MAX_FILES,
    MAX_RECORDED,
    MAX_REFS,
    STASH,
    Commit,
    FileChange,
    RefChange,
    RunChanges,
)
from claudomator_py.domain.proof import skips_in
from claudomator_py.domain.worktree import BRANCHES, is_tree_branch, shared_mark, short_ref
from claudomator_py.hosts.git import Git, GitRefused
from claudomator_py.hosts.git.contents import Content, Contents, read_status
from claudomator_py.hosts.git.files import MAX_ENTRIES, differences, repository_name, size_and_time, text_of
from claudomator_py.hosts.git.indexes import Indexes
from claudomator_py.hosts.git.shadow import Repository, ShadowRepository, discover
from claudomator_py.values import dataclass, regex

DEADLINE_S = 10.0
MAX_PATCH_BYTES = 5_000_000
MAX_FILE_BYTES = 5_000_000
"""Maximum size of a file whose content is compared; larger ones are only named."""
PATCH = "changes.patch"
RECORD_FOLDER = "record"
"""Folder in the run directory while a record is made, with the shadow, an index and objects."""
_NAME_OF = {"A": "added", "D": "deleted", "R": "renamed"}
_NO_FILE = "000000"
_SUBMODULES = ".gitmodules"
_SUBMODULE_PATH = regex(r"^\s*path\s*=\s*(\S.*?)\s*$", re.MULTILINE)
_MAX_SUBMODULES = 20
_STATUS = (
    *("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--no-renames"),
    "--ignore-submodules=dirty",
)
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=dirty")
_REMOTES = "refs/remotes/"
_PUSH = "update by push"
"""How git calls a push in the log of a remote's branch."""
_LOG_BYTES = 64 * 1024
"""How many bytes at the end of such a log are read."""
FIND_RENAMES = ("--find-renames", "-l200")
"""Above that number of files, git finds only renames without other changes: the rest would take too long."""


@dataclass(frozen=True, slots=True)
class PlaceState:
    """State of a working directory; without a repository, only files are known."""

    place: str
    """The top of the work tree; without a repository, the working directory."""
    git_dir: str | None = None
    """Git directory of the work tree; None without a repository."""
    common_dir: str | None = None
    """Git directory of the repository; None without one."""
    head: str | None = None
    branch: str | None = None
    contents: Mapping[str, Content | None] = field(default_factory=dict)
    """Contents of the files that differ from the commit; None for a missing file."""
    at_head: Mapping[str, Content | None] = field(default_factory=dict)
    """Contents of these files at the commit."""
    refs: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)
    """Branches on which other tasks work, each in a separate work tree."""
    files: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Size and modification time of each file that git does not compare; without a repository, of all files."""
    uncommitted: Sequence[str] = ()
    untracked: Sequence[str] = ()
    fault: str | None = None


class Look:
    """A look at a repository. left_s: seconds until the deadline."""

    def __init__(
        self, git: Git, indexes: Indexes, run_dir: Path, repository: Repository, left_s: Callable[[], float]
    ) -> None:
        self._git = git
        self._repository = repository
        self._left_s = left_s
        self._indexes = indexes
        self._run_dir = run_dir
        self._folder = run_dir / RECORD_FOLDER
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._objects = self._folder / "objects"
        self._objects.mkdir(mode=0o700, exist_ok=True)
        self._contents = Contents(self._call, self._folder, self._objects)
        self._shadow = ShadowRepository(git, self._folder / "shadow", repository.common_dir)

    def state(self) -> PlaceState:
        """Return its state. Raises GitRefused; OSError."""
        with ThreadPoolExecutor(1) as beside_it:
            named = beside_it.submit(self._call, "for-each-ref", "--format=%(objectname) %(refname)")
            status = read_status(self._status())
        uncommitted, untracked = status.uncommitted, status.untracked
        changed = [*uncommitted, *untracked]
        if len(changed) > MAX_ENTRIES:
            raise GitRefused(f"{len(changed):,} files are not committed, more than the {MAX_ENTRIES:,} compared")
        contents = self._contents.of_files(status, list(filter(self._is_comparable, changed))) if changed else {}
        at_head = {path: status.at_head.get(path) for path in contents}
        if status.in_conflict and status.head is not None:
            at_head |= self._contents.at(status.head, status.in_conflict)
        apart = {path: size_and_time(f"{self._repository.top}/{path}") for path in changed if self._is_beside(path)}
        apart |= {path: self._inside(path) for path in self._submodules()}
        refs = {name: oid for line in named.result().splitlines() for oid, _, name in [line.partition(" ")]}
        place, git_dir, common_dir = self._repository.top, self._repository.git_dir, self._repository.common_dir
        others = {name: refs[name] for name in _branches_of_others(self._repository, refs) if name in refs}
        of_git = (place, git_dir, common_dir, status.head, status.branch)
        return PlaceState(*of_git, contents, at_head, refs, others, apart, uncommitted, untracked)

    def between(self, before: PlaceState, after: PlaceState) -> RunChanges:
        """Return the changes from the first state to the second. Raises GitRefused; OSError."""
        ends = self._ends(before, after)
        others = before.others.keys() | after.others.keys() | self._begun(before, after)
        names = sorted((before.refs.keys() | after.refs.keys()) - others)
        refs = [
            RefChange(
                name=text_of(name),
                before=before.refs.get(name),
                after=after.refs.get(name),
                is_pushed=name in after.refs and self._log_of(name)[-1:] == [(after.refs[name], _PUSH)],
            )
            for name in names
            if before.refs.get(name) != after.refs.get(name)
        ]
        with ThreadPoolExecutor(2) as beside:
            counted = beside.submit(self._commits, before, after, refs)
            patched = beside.submit(self._patch, *ends)
            compared = self._files(*ends)
        known = {file.path for file in compared}
        beside_it = (file for file in differences(before.files, after.files) if file.path not in known)
        files = sorted([*compared, *beside_it], key=lambda file: file.path)
        kept = {*before.uncommitted, *before.untracked}.intersection((*after.uncommitted, *after.untracked))
        commits, commit_count = counted.result()
        cancels_out = bool(commits) and not files and self._are_alike(before, after, refs)
        patch_bytes, is_whole, skips = patched.result()
        return RunChanges(
            place=text_of(before.place),
            repository=repository_name(self._repository.common_dir),
            branch=after.branch and text_of(after.branch),
            branch_before=before.branch and text_of(before.branch),
            head=after.head,
            head_before=before.head,
            commits=tuple(commits),
            commit_count=commit_count,
            cancels_out=cancels_out,
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
            left_as_before=len(
                set(map(text_of, kept)) - {path for file in files for path in (file.path, file.old_path)}
            ),
            skips=skips,
            patch_bytes=patch_bytes,
            is_patch_whole=is_whole,
        )

    def _status(self) -> str:
        """Return git's status relative to a copy of the index. The copy caches what git reads for the look after the
        run, unless the index has changed by then."""
        own = self._indexes.bring(self._repository.git_dir, self._folder)
        return self._call(*_STATUS, variables=own)

    def _submodules(self) -> list[str]:
        """Return the paths of the submodules that are checked out."""
        top = Path(self._repository.top)
        try:
            listed = (top / _SUBMODULES).read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return []
        paths = dict.fromkeys(match[1] for match in _SUBMODULE_PATH.finditer(listed))
        there = (path for path in paths if os.path.lexists(top / path / ".git"))
        return [path for path in there if (top / path).resolve().is_relative_to(top)][:_MAX_SUBMODULES]

    def _inside(self, submodule: str) -> tuple[int, int]:
        """Return the number of uncommitted files in a submodule, and a checksum of their sizes and times: git sees only
        its commit, and does not enter it, as it has a configuration of its own."""
        try:
            inner = discover(self._git, f"{self._repository.top}/{submodule}")
            shadow = ShadowRepository(self._git, self._folder / "submodule", inner.common_dir)
            listed = shadow(*_STATUS, git_dir=inner.git_dir, work_tree=inner.top, timeout_s=max(0.1, self._left_s()))
            status = read_status(listed)
        except (GitRefused, OSError, ValueError):
            return 0, 0
        names = [*status.uncommitted, *status.untracked][:MAX_ENTRIES]
        sizes = [size_and_time(path) for name in names if os.path.lexists(path := f"{inner.top}/{name}")]
        return len(names), zlib.crc32(repr((names, sizes)).encode(errors="surrogateescape"))

    def _is_comparable(self, path: str) -> bool:
        return _is_comparable(f"{self._repository.top}/{path}")

    def _is_beside(self, path: str) -> bool:
        """Return whether a path is only named, because it is a large file or an unknown repository."""
        is_folder = Path(f"{self._repository.top}/{path}").is_dir()
        return not self._is_comparable(path) and (path.endswith("/") or not is_folder)

    def _begun(self, before: PlaceState, after: PlaceState) -> set[str]:
        """Return the new branches of other tasks: git makes a branch some time before the work tree that has it."""
        own, made = shared_mark(after.place), after.refs.keys() - before.refs.keys()
        return {name for name in made if is_tree_branch(short_ref(name)) and shared_mark(name) != own}

    def _ends(self, before: PlaceState, after: PlaceState) -> tuple[str, str]:
        """Return two trees or commits whose difference is that of the states."""
        heads = [state.head or self._contents.tree({}) for state in (before, after)]
        if not (before.contents or after.contents):
            return heads[0], heads[1]
        moved = {} if before.head == after.head else self._contents.between(*heads)

        def content(path: str, state: PlaceState, other: PlaceState, end: int) -> Content | None:
            if path in state.contents:
                return state.contents[path]
            return moved[path][end] if path in moved else other.at_head[path]

        paths = before.contents.keys() | after.contents.keys() | moved.keys()
        pairs = {path: (content(path, before, after, 0), content(path, after, before, 1)) for path in paths}
        changed = {path: pair for path, pair in pairs.items() if pair[0] != pair[1]}
        digits = max(
            (len(content[1]) for pair in changed.values() for content in pair if content is not None), default=0
        )
        was, now = (self._contents.tree({path: pair[end] for path, pair in changed.items()}, digits) for end in (0, 1))
        return was, now

    def _files(self, before: str, after: str) -> list[FileChange]:
        if before == after:
            return []
        listed = self._call("diff-tree", "-r", "-z", "--raw", "--numstat", *FIND_RENAMES, *_PLAIN, before, after)
        return numbered(listed.split("\0"))

    def _commits(self, before: PlaceState, after: PlaceState, refs: Sequence[RefChange]) -> tuple[list[Commit], int]:
        new = {ref.after for ref in refs if ref.after and ref.name != STASH} | ({after.head} if after.head else set())
        known = {*before.refs.values(), *after.others.values(), *([before.head] if before.head else ())}
        # What was fetched was made elsewhere.
        remotes = [ref for ref in refs if ref.after and ref.name.startswith(_REMOTES)]
        known |= {ref.after for ref in remotes if ref.after and not ref.is_pushed}
        known |= {oid for ref in remotes for oid, message in self._log_of(ref.name) if message != _PUSH}
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
        commits = [
            Commit(id=oid, author=text_of(author), subject=text_of(subject))
            for oid, author, subject in zip(parts[::3], parts[1::3], parts[2::3], strict=False)
        ]
        if len(commits) < MAX_COMMITS:
            return commits, len(commits)
        return commits, int(self._call("rev-list", "--count", "--ignore-missing", "--stdin", stdin=given))

    def _log_of(self, ref: str) -> list[tuple[str, str]]:
        """Return the latest hashes of a remote's branch, each with why it moved there; empty if it has no log."""
        if not ref.startswith(_REMOTES):
            return []
        try:
            with Path(f"{self._repository.common_dir}/logs/{ref}").open("rb") as log:
                log.seek(max(0, os.fstat(log.fileno()).st_size - _LOG_BYTES))
                lines = log.read().decode(errors="replace").splitlines()
        except OSError:
            return []
        moves = (line.partition("\t") for line in lines)
        return [(words.split(" ")[1], message) for words, _, message in moves if words.count(" ") > 1]

    def _are_alike(self, before: PlaceState, after: PlaceState, refs: Sequence[RefChange]) -> bool:
        """Return whether all that is new has the same files as the commit that was checked out."""
        tips = {ref.after for ref in refs if ref.after} | {after.head or ""}
        if before.head is None or before.uncommitted or len(tips) > MAX_REFS:
            return False
        trees = (f"{oid}^{{tree}}" for oid in (before.head, *filter(None, tips)))
        return len(set(self._call("rev-parse", *trees).split())) == 1

    def _patch(self, *ends: str) -> tuple[int | None, bool, tuple[str, ...]]:
        """Write the patch to the run directory, with as many files in order as fit. Return its size, whether it is
        whole, and the tests that skip more since."""
        if ends[0] == ends[1]:
            return None, True, ()
        patch = self._call("diff-tree", "-r", "-p", *FIND_RENAMES, "--full-index", *_PLAIN, *ends)
        content = patch.encode(errors="surrogateescape")
        if not content:
            return None, True, ()
        is_whole = len(content) <= MAX_PATCH_BYTES
        if not is_whole:
            end = content.rfind(b"\ndiff --git ", 0, MAX_PATCH_BYTES)
            content = content[: end if end > 0 else MAX_PATCH_BYTES]
        (self._run_dir / PATCH).write_bytes(content + b"\n")
        skips = tuple(map(text_of, islice(skips_in(patch[:MAX_PATCH_BYTES]), MAX_FILES)))
        return len(content) + 1, is_whole, skips

    def _call(self, *arguments: str, variables: Mapping[str, str] | None = None, stdin: bytes = b"") -> str:
        left_s = self._left_s()
        if left_s <= 0:
            raise GitRefused(f"it took longer than {DEADLINE_S:.0f} s")
        return self._shadow(
            *arguments,
            git_dir=self._repository.git_dir,
            work_tree=self._repository.top,
            timeout_s=left_s,
            variables={**self._shadow.writing_to(self._objects), **(variables or {})},
            stdin=stdin,
        )


def numbered(parts: Sequence[str]) -> list[FileChange]:
    """Return the changes in the output of ``git diff-tree -z --raw --numstat``: first modes and a letter per file, then
    lines. A renamed file has two paths in both."""
    marks: dict[str, list[str]] = {}
    changes = []
    rest = iter(parts)
    for part in rest:
        if part.startswith(":"):
            mark = part.removeprefix(":").split(" ")
            old = next(rest)
            marks[next(rest) if mark[-1].startswith("R") else old] = mark
        elif part:
            added, removed, path = part.split("\t", 2)
            old_path = None if path else next(rest)
            path = path or next(rest)
            was, now, *_, letter = marks.get(path, ("", "", "M"))
            change = {
                "path": text_of(path),
                "old_path": old_path and text_of(old_path),
                "change": _NAME_OF.get(letter[:1], "modified"),
                "modes": None if _NO_FILE in (was, now) or was == now else f"{was} -> {now}",
                "added": _lines(added),
                "removed": _lines(removed),
            }
            changes.append(FileChange.model_validate(change))
    return changes


def _lines(number: str) -> int | None:
    return None if number == "-" else int(number)


def _is_comparable(path: str) -> bool:
    """Return whether git can compare a path: a missing one, a file that is not too large, or a submodule, which is a
    folder that git knows only by name."""
    try:
        status = os.lstat(path)
    except OSError:
        return True
    if stat.S_ISDIR(status.st_mode):
        return not path.endswith("/") and os.path.lexists(Path(path) / ".git")
    return status.st_size <= MAX_FILE_BYTES


_NAMING_A_BRANCH = ("HEAD", "rebase-merge/head-name", "rebase-apply/head-name")
"""Files of a work tree that name the branch it works on: during a rebase its HEAD is detached."""


def _branches_of_others(repository: Repository, refs: Iterable[str]) -> list[str]:
    """Return the branches on which other tasks work, whatever they have named them; changes to them are not made by
    this run. refs: the full names of all references."""
    marks = {shared_mark(branch) for branch in map(short_ref, refs) if branch.startswith(BRANCHES)}
    entries = []
    for tree in Path(repository.common_dir).glob("worktrees/*"):
        for name in _NAMING_A_BRANCH:
            with suppress(OSError):
                text = (tree / name).read_text(encoding="utf-8", errors="surrogateescape")
                branch = text.removeprefix("ref: ").rstrip("\n")
                is_tasks = short_ref(branch).startswith(BRANCHES) or shared_mark(tree.name) in marks
                if tree != Path(repository.git_dir) and is_tasks:
                    entries.append(branch)
    return entries
