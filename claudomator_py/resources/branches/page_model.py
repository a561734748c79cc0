"""What the runs of a task changed, as its page shows it: bounded, however much it was."""

import re
from collections.abc import Callable, Iterator, Sequence

from claudomator_py.domain.changes import Commit, FileChange, RunChanges
from claudomator_py.domain.text import escaped
from claudomator_py.resources.branches import ChangesView, PatchView
from claudomator_py.values import dataclass, regex

MAX_RUNS = 10
MAX_FILES = 100
"""Of a run; ``claudomator diff`` names the rest."""
MAX_NAMES = 20
"""Of uncommitted files."""
MAX_PATCH_BYTES = 256_000
"""Of all patches on a page: each is searched for secrets every time the page is shown."""
MAX_FILE_CHARS = 20_000
MAX_OPEN_LINES = 15
MAX_OPEN_FILES = 3
_HEADER = "diff --git "
_HIDDEN_PREFIXES = ("index ", "--- ", "+++ ")
"""Beginnings of lines above the first hunk that say what stands above the patch on the page, or nothing to a person."""
_FILE = regex(f"^(?={_HEADER})", re.MULTILINE)
_HUNK = regex(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_RENAMED = regex(r"^rename to (.*)$", re.MULTILINE)
_QUOTED = regex(r"\\([0-7]{3}|.)")
_LETTERS = {"a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"}


@dataclass(frozen=True, slots=True)
class PatchLine:
    """A line of a patch. id: to link to it, empty for a line that is not in the file; number: its number there."""

    id: str
    number: int | None
    tone: str
    text: str


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A changed file. is_cut: its patch is longer than what is shown. is_open: it is short enough to start open."""

    id: str
    path: str
    change: str
    lines: str | None
    patch: tuple[PatchLine, ...]
    is_cut: bool
    is_open: bool


@dataclass(frozen=True, slots=True)
class ChangedRun:
    """What a run changed. more_files: how many are not named. without: why no lines are shown, if there are none."""

    number: int
    agent: str
    summary: str
    is_doubtful: bool
    place: str | None
    checked_out: str | None
    fault: str | None
    commits: tuple[tuple[str, str, str], ...]
    more_commits: int
    refs: tuple[tuple[str, str], ...]
    more_refs: int
    files: tuple[FileEntry, ...]
    more_files: int
    without: str | None
    left: tuple[tuple[str, tuple[str, ...], int], ...]
    left_as_before: int


@dataclass(frozen=True, slots=True)
class ChangesShown:
    """The newest runs first. earlier: how many more runs there are."""

    runs: tuple[ChangedRun, ...]
    earlier: int


def changes_of(views: Sequence[ChangesView], patch: Callable[[str], PatchView]) -> ChangesShown:
    """Return what is shown. patch: reads the patch of a run; called only while there is room for it."""
    return ChangesShown(tuple(_entries(views, patch)), max(0, len(views) - MAX_RUNS))


def _entries(views: Sequence[ChangesView], patch: Callable[[str], PatchView]) -> Iterator[ChangedRun]:
    room = MAX_PATCH_BYTES
    for view in reversed(views[-MAX_RUNS:]):
        changes, text, without = view.changes, "", None
        if changes is not None and changes.file_count:
            size = changes.patch_bytes or 0
            if size > room:
                without = "Its lines are too many for this page"
            else:
                room -= size
                text = patch(view.run_id).text if size else ""
                without = None if text else "There is no patch of it"
        yield _entry(view, changes or RunChanges(place=""), text, without)


def _entry(view: ChangesView, changes: RunChanges, text: str, without: str | None) -> ChangedRun:
    left = (
        ("Uncommitted", changes.uncommitted, changes.uncommitted_count),
        ("Not known to git", changes.untracked, changes.untracked_count),
    )
    return ChangedRun(
        number=view.number,
        agent=view.agent,
        summary=view.summary,
        is_doubtful=view.is_doubtful,
        place=escaped(changes.place) or None,
        checked_out=escaped(changes.checked_out or "") or None,
        fault=None if changes.is_empty else changes.fault,
        commits=tuple(map(_commit, changes.commits)),
        more_commits=changes.commit_count - len(changes.commits),
        refs=tuple((escaped(name), escaped(words)) for name, words in changes.ref_changes),
        more_refs=changes.ref_count - len(changes.refs),
        files=tuple(_files(view.number, changes.files, text)),
        more_files=changes.file_count - min(MAX_FILES, len(changes.files)),
        without=without,
        left=tuple(
            (word, tuple(map(escaped, names[:MAX_NAMES])), count - len(names[:MAX_NAMES]))
            for word, names, count in left
            if count
        ),
        left_as_before=changes.left_as_before,
    )


def _commit(commit: Commit) -> tuple[str, str, str]:
    return commit.id[:8], escaped(commit.subject), escaped(commit.author)


def _files(number: int, files: Sequence[FileChange], text: str) -> Iterator[FileEntry]:
    patches = patches_of(text)
    for index, file in enumerate(files[:MAX_FILES], start=1):
        patch = patches.get(file.path)
        shown = None if patch is None else patch[:MAX_FILE_CHARS]
        yield FileEntry(
            id=f"change-{number}-{index}",
            path=escaped(file.path),
            change=escaped(file.words),
            lines=None if file.added is None or file.removed is None else f"+{file.added} -{file.removed}",
            patch=tuple(_lines(f"change-{number}-{index}", shown or "")),
            is_cut=patch is not None and len(patch) > MAX_FILE_CHARS,
            is_open=shown is not None and len(files) <= MAX_OPEN_FILES and shown.count("\n") <= MAX_OPEN_LINES,
        )


def _lines(entry: str, patch: str) -> Iterator[PatchLine]:
    """Yield the lines, numbered as in the file after the run, or before it for removed lines."""
    old = new = 0
    for line in patch.removesuffix("\n").split("\n") if patch else ():
        sign = line[:1]
        if (hunk := _HUNK.match(line)) is not None:
            old, new = int(hunk[1]), int(hunk[2])
            yield PatchLine("", None, "hunk", line)
        elif not new and not old:
            if not line.startswith(_HIDDEN_PREFIXES):
                yield PatchLine("", None, "", line)
        elif sign == "-":
            yield PatchLine(f"{entry}-L{old}", old, "removed", line)
            old += 1
        elif sign in ("+", " "):
            yield PatchLine(f"{entry}-R{new}", new, "added" if sign == "+" else "", line)
            new, old = new + 1, old + (sign == " ")
        else:
            yield PatchLine("", None, "", line)


def patches_of(text: str) -> dict[str, str]:
    """Return the hunks of each file of a patch by its path. A line of a file begins with a sign, so that none of them
    is taken for the header of another file.
    """
    places: dict[str, str] = {}
    for part in _FILE.split(text):
        header, _, rest = part.partition("\n")
        if header.startswith(_HEADER):
            renamed = _RENAMED.search(rest.partition("\n@@ ")[0])
            path = _path(header.removeprefix(_HEADER)) if renamed is None else _unquote(renamed[1])
            places[path] = places.get(path, "") + rest
    return places


def _path(names: str) -> str:
    """Return the path in ``a/PATH b/PATH``: both are the same, and nothing else says where the first one ends."""
    return _unquote(names[: len(names) // 2]).removeprefix("a/")


def _unquote(name: str) -> str:
    return _QUOTED.sub(_unquoted, name[1:-1]) if name.startswith('"') else name


def _unquoted(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code, 8)) if len(code) == len("177") else _LETTERS.get(code, code)
