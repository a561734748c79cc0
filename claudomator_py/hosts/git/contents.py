"""Contents of the files that differ from the commit of a work tree, and the difference between two such states.

Writing the index of a large repository takes longer than examining all of its files. Therefore the few uncommitted
files are written to an index of their own, and two states are compared by trees of the differing files. These trees are
written here, because a git process takes longer than writing them.
"""

import hashlib
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Final

from claudomator_py.values import dataclass

Content = tuple[str, str]
"""Mode and object id, in git's notation."""
_Folder = dict[bytes, "Content | _Folder"]
_NOTHING: Final = "000000"
_FOLDER: Final = "040000"
_SHA1_DIGITS: Final = 40
_MAX_PATHS = 500
"""Maximum number of paths in a command line."""


@dataclass(frozen=True, slots=True)
class Status:
    """Result of ``git status``: commit, branch, uncommitted files, and untracked files."""

    head: str | None = None
    branch: str | None = None
    uncommitted: list[str] = field(default_factory=list)
    untracked: list[str] = field(default_factory=list)
    at_head: dict[str, Content | None] = field(default_factory=dict)
    """Content of these files at the commit."""
    in_index: dict[str, Content] = field(default_factory=dict)
    """Content of those that are in the index, once."""
    in_conflict: list[str] = field(default_factory=list)
    """Those that are in the index several times; for these, git does not report the content at the commit."""


def read_status(listed: str) -> Status:
    """Read the output of ``git status --porcelain=v2 --branch -z``."""
    head = branch = None
    status = Status()
    for entry in listed.split("\0"):
        kind, _, rest = entry.partition(" ")
        if kind == "#":
            name, _, value = rest.partition(" ")
            if name == "branch.oid" and value != "(initial)":
                head = value
            elif name == "branch.head" and value != "(detached)":
                branch = value
        elif kind == "?":
            status.untracked.append(rest)
        elif kind == "1":
            _, _, mode_at_head, mode, _, at_head, in_index, path = rest.split(" ", 7)
            status.uncommitted.append(path)
            status.at_head[path] = _content(mode_at_head, at_head)
            if mode != _NOTHING:
                status.in_index[path] = (mode, in_index)
        elif kind == "u":
            status.uncommitted.append(path := rest.split(" ", 9)[-1])
            status.in_conflict.append(path)
    return Status(
        head, branch, status.uncommitted, status.untracked, status.at_head, status.in_index, status.in_conflict
    )


class Contents:
    """Reads and writes contents, in a folder of its own. call: calls git with variables and stdin. objects: directory
    for git's objects."""

    def __init__(self, call: Callable[..., str], folder: Path, objects: Path) -> None:
        self._call = call
        self._folder = folder
        self._objects = objects

    def of_files(self, status: Status, comparable: Collection[str]) -> dict[str, Content | None]:
        """Return the current content of these files, and of the other ones from the index; None for a missing file.
        Raises GitRefused; OSError."""
        index = self._index("now", status.in_index)
        given = "\0".join(comparable).encode(errors="surrogateescape")
        self._call("update-index", "-z", "--add", "--remove", "--replace", "--stdin", variables=index, stdin=given)
        staged = dict(_listed(self._call("ls-files", "--stage", "-z", variables=index), at=1))
        return {path: staged.get(path) for path in (*status.uncommitted, *comparable)}

    def at(self, commit: str, paths: list[str]) -> dict[str, Content | None]:
        """Return the content of these files at a commit. Raises GitRefused."""
        contents: dict[str, Content | None] = dict.fromkeys(paths)
        for start in range(0, len(paths), _MAX_PATHS):
            some = paths[start : start + _MAX_PATHS]
            contents.update(_listed(self._call("ls-tree", "-z", "--full-tree", commit, "--", *some), at=2))
        return contents

    def between(self, before: str, after: str) -> dict[str, tuple[Content | None, Content | None]]:
        """Return both contents of the files that differ between two trees. Raises GitRefused."""
        parts = iter(self._call("diff-tree", "-r", "-z", "--raw", "--no-renames", before, after).split("\0"))
        contents = {}
        for part in parts:
            if part:
                was, now, was_id, now_id, _ = part.removeprefix(":").split(" ")
                contents[next(parts)] = _content(was, was_id), _content(now, now_id)
        return contents

    def tree(self, contents: Mapping[str, Content | None], digits: int = 0) -> str:
        """Write a tree of only these files, without a git process unless it is empty. digits: length of ids in that
        repository; 0 only if no file has content. Raises GitRefused; OSError; ValueError for a file inside a file."""
        root: _Folder = {}
        for path, content in contents.items():
            if content is not None:
                *folders, name = path.encode(errors="surrogateescape").split(b"/")
                folder = root
                for part in folders:
                    inner = folder.setdefault(part, {})
                    if not isinstance(inner, dict):
                        raise ValueError(f"{path} is inside a file")
                    folder = inner
                if name in folder:
                    raise ValueError(f"{path} is a folder, too")
                folder[name] = content
        return self._written(root, digits) if digits else self._call("hash-object", "-w", "-t", "tree", "--stdin")

    def _written(self, folder: "_Folder", digits: int) -> str:
        """Write the trees of a folder and its subfolders. Return the id."""
        entries = []
        for name, it in folder.items():
            mode, oid = (_FOLDER, self._written(it, digits)) if isinstance(it, dict) else it
            # git sorts a folder as if its name ended with a slash, and omits the first zero of its mode.
            order = name + b"/" if mode == _FOLDER else name
            entries.append((order, b"%s %s\0%s" % (mode.lstrip("0").encode(), name, bytes.fromhex(oid))))
        listed = b"".join(entry for _, entry in sorted(entries))
        content = b"tree %d\0%s" % (len(listed), listed)
        short = digits == _SHA1_DIGITS
        oid = (hashlib.sha1(content, usedforsecurity=False) if short else hashlib.sha256(content)).hexdigest()
        (place := self._objects / oid[:2]).mkdir(mode=0o700, exist_ok=True)
        if not (path := place / oid[2:]).exists():  # git's own are read-only
            path.write_bytes(zlib.compress(content, 1))
        return oid

    def _index(self, name: str, contents: Mapping[str, Content]) -> dict[str, str]:
        """Write an index of only these files. Return the variables with which git uses it."""
        (path := self._folder / f"index.{name}").unlink(missing_ok=True)
        variables = {"GIT_INDEX_FILE": str(path)}
        if contents:
            lines = "\0".join(f"{mode} {oid}\t{file}" for file, (mode, oid) in contents.items())
            given = lines.encode(errors="surrogateescape")
            self._call("update-index", "-z", "--index-info", variables=variables, stdin=given)
        return variables


def _content(mode: str, oid: str) -> Content | None:
    return None if mode == _NOTHING else (mode, oid)


def _listed(listed: str, at: int) -> Iterator[tuple[str, Content]]:
    """Yield the entries in the output of ``ls-files --stage`` or ``ls-tree``. at: index of the id among the words."""
    for entry in listed.split("\0"):
        what, _, path = entry.partition("\t")
        if what and (words := what.split(" "))[0] != _FOLDER:
            yield path, (words[0], words[at])
