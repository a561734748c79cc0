"""/repositories: what runs changed on each of the last days, and the unmerged branches of tasks. /repositories/merge:
merge those that are ready. /tasks/{id}/merge and discard: merge one, or remove it, after a preview. What the runs of a
task changed, as its page shows it: bounded, however much it was."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Final

from fastapi import Form, Query
from fastapi.responses import RedirectResponse, Response

from claudomator_py.api.operation import Allowed, UnlistedRoutes
from claudomator_py.api.page.formatting import (
    Chosen,
    Days,
    Ref,
    Version,
    chosen_tasks,
    day_spans,
    read_fields,
    remedy_text,
)
from claudomator_py.api.page.rendering import render
from claudomator_py.domain.changes import FileChange, MergeMethod, RunChanges
from claudomator_py.domain.errors import Conflict, Invalid, NotFound, ServiceError, StaleVersion
from claudomator_py.domain.lifecycle import ENDED
from claudomator_py.resources.branches import (
    BRANCHES,
    BranchView,
    ChangesView,
    DiscardRequest,
    MergeRequest,
    MergeView,
    PatchView,
    undos_of,
)
from claudomator_py.resources.branches.service import BranchService
from claudomator_py.resources.report.night import Nights
from claudomator_py.resources.report.page import REPOSITORIES, REPOSITORY_DAYS
from claudomator_py.resources.report.service import Reports
from claudomator_py.resources.session import Session
from claudomator_py.resources.tasks import TaskView
from claudomator_py.resources.tasks.service import Tasks, require_version
from claudomator_py.surface.table import Table
from claudomator_py.values import dataclass, regex

_SHOWN = 20
"""Branches shown before the list is opened."""
_MAX_AT_ONCE = 20
"""Branches merged with one form; each is previewed, which takes git some tenths of a second."""
_COLUMNS = Table[BranchView](*(column for column in BRANCHES.columns if column.title != "REPOSITORY"))
"""On a page, the path says which repository it is."""
_METHODS: Final = {
    MergeMethod.MERGE: "Merge: keep its commits",
    MergeMethod.SQUASH: "Squash: make one commit",
    MergeMethod.REBASE: "Rebase: repeat its commits on the target",
}
AskedBranch = Annotated[str, Query(max_length=250)]
AskedWord = Annotated[str, Query(max_length=20)]
SentBranch = Annotated[str, Form(max_length=250)]
SentWord = Annotated[str, Form(max_length=20)]


routes = UnlistedRoutes()


@routes.get("/repositories", "getReport")
def show(granted: Allowed, days: Days = 7) -> Response:
    # How the branch of one that runs stands is not known before its run has ended.
    ended = [branch for branch in granted[BranchService].all() if branch.state != "RUNNING"]
    repositories, daily = granted[Reports].repositories(days, granted[Nights].zone())
    unspent = [branch for branch in ended if not branch.standing.is_spent]
    values = {
        "place": "/repositories",
        "spans": day_spans("/repositories", days),
        "table": REPOSITORIES,
        "repositories": repositories,
        "day_table": REPOSITORY_DAYS,
        "daily": daily,
        "branch_table": _COLUMNS,
        "shown": _SHOWN,
        "ended": ENDED,
        "branches": unspent,
        "ready": sum(branch.unready is None for branch in unspent),
    }
    return render("repositories.html", values, granted)


@dataclass(frozen=True, slots=True)
class Merging:
    """The branch of one task among several: what was merged, or would be; or the refusal, in words."""

    task_id: str
    name: str
    merged: MergeView | None = None
    refusal: str | None = None
    version: int | None = None
    """Of the task when it was previewed."""


@routes.get("/repositories/merge", "mergeTask")
def preview_merges(granted: Allowed, method: AskedWord = "") -> Response:
    wanted = _method(method)
    unready = _unready(granted)
    ready = [task_id for task_id, why in unready.items() if why is None]
    shown = [_merging(granted, task_id, None, wanted, unready) for task_id in ready[:_MAX_AT_ONCE]]
    values = {"shown": shown, "more": len(ready) - len(shown), "methods": _METHODS, "method": wanted}
    return render("merge_ready.html", values, granted)


@routes.post("/repositories/merge", "mergeTask")
def merge_ready(granted: Allowed, task: Chosen, method: SentWord = "") -> Response:
    chosen, wanted, unready = chosen_tasks(task), _method(method), _unready(granted)
    done = [_merging(granted, task_id, version, wanted, unready) for task_id, version in chosen]
    merges = [one.merged for one in done if one.merged is not None]
    values = {
        "done": done,
        "merged": sum(merged.commits > 0 for merged in merges),
        "refused": len(done) - len(merges),
        "undos": undos_of(merges),
    }
    return render("merged.html", values, granted)


def _method(word: str) -> MergeMethod:
    """Raises Invalid."""
    return read_fields(MergeRequest, {"method": word}).method


def _unready(granted: Session) -> dict[str, str | None]:
    """Return why each branch is not ready, by the id of its task and in the order in which they are merged; None if it
    is ready."""
    return {view.task_id: view.unready for view in granted[BranchService].all() if view.is_current}


def _merging(
    granted: Session, ref: str, version: int | None, method: MergeMethod, unready: Mapping[str, str | None]
) -> Merging:
    """Merge one of several, unless it is no longer as it was shown: a refusal of one leaves the others.

    version: as shown; None: only try it.
    """
    name = ref[:8]
    try:
        task = granted[Tasks].get(ref)
        name = task.name
        require_version(name, task.version, version)
        if (why := unready.get(ref, "it no longer exists")) is not None:
            raise Conflict(f"The branch of {name} is not ready: {why}.", remedy="See the list of branches.")
        merged = granted[BranchService].merge(ref, MergeRequest(method=method, dry_run=version is None))
    except (StaleVersion, Conflict, Invalid, NotFound) as refusal:
        return Merging(ref, name, refusal=f"{refusal.detail} {remedy_text(refusal)}")
    return Merging(ref, name, merged, version=task.version)


@routes.get("/tasks/{ref}/merge", "mergeTask")
def preview_merge(
    granted: Allowed, ref: Ref, into: AskedBranch = "", method: AskedWord = "", commit: AskedWord = ""
) -> Response:
    return _merge_form(granted, ref, {"into": into.strip(), "method": method, "commit": bool(commit)})


@routes.post("/tasks/{ref}/merge", "mergeTask")
def merge(
    granted: Allowed, ref: Ref, version: Version, into: SentBranch = "", method: SentWord = "", commit: SentWord = ""
) -> Response:
    given = {"into": into.strip(), "method": method, "commit": bool(commit)}
    try:
        _require_seen(granted, ref, version)
        done = granted[BranchService].merge(ref, read_fields(MergeRequest, given))
    except (StaleVersion, Conflict, Invalid) as refusal:
        return _merge_form(granted, ref, given, refusal)
    return _to_changes(done.task_id) if done.commits else _merge_form(granted, ref, given)


@routes.get("/tasks/{ref}/discard", "discardTask")
def preview_discard(granted: Allowed, ref: Ref) -> Response:
    return _discard_form(granted, ref)


@routes.post("/tasks/{ref}/discard", "discardTask")
def discard(granted: Allowed, ref: Ref, version: Version) -> Response:
    try:
        _require_seen(granted, ref, version)
        return _to_changes(granted[BranchService].discard(ref, DiscardRequest()).task_id)
    except (StaleVersion, Conflict) as refusal:
        return _discard_form(granted, ref, refusal)


def _require_seen(granted: Session, ref: str, version: int) -> None:
    """Raise StaleVersion if the task is no longer as its form showed it, such as after a restart."""
    task = granted[Tasks].get(ref)
    require_version(task.name, task.version, version)


def _to_changes(task_id: str) -> Response:
    """Return a redirect to what the task changed, where the command that undoes it is shown as well."""
    return RedirectResponse(f"/tasks/{task_id}#changes-title", 303)


def _merge_form(
    granted: Session, ref: str, given: Mapping[str, object], refusal: ServiceError | None = None
) -> Response:
    """Return the form with a preview. refusal: of what was sent, in place of a preview."""
    preview, impossible = None, refusal
    if refusal is None:
        try:
            preview = granted[BranchService].merge(ref, read_fields(MergeRequest, {**given, "dry_run": True}))
        except (Conflict, Invalid) as refused:
            impossible = refused
    task = granted[Tasks].get(ref)
    branch, others = _branches_of(granted, task)
    values = {
        "task": task,
        "ended": task.state in ENDED,
        "branch": branch,
        "targets": others,
        "methods": _METHODS,
        "given": given,
        "preview": preview,
        "refusal": impossible,
    }
    return render("merge.html", values, granted, refusal=refusal)


def _branches_of(granted: Session, task: TaskView) -> tuple[BranchView | None, list[str]]:
    """Return the task's branch, and the branches of its repository that it can be merged into, as far as known."""
    views = granted[BranchService].all()
    own = next((view for view in views if view.branch == task.branch), None)
    if own is None:
        return None, []
    there = [view for view in views if view.repository == own.repository]
    names = [name for view in (own, *there) for name in (view.onto, view.branch) if name and name != own.branch]
    return own, [*dict.fromkeys(names)]


def _discard_form(granted: Session, ref: str, refusal: ServiceError | None = None) -> Response:
    preview, impossible = None, refusal
    if refusal is None:
        try:
            preview = granted[BranchService].discard(ref, DiscardRequest(dry_run=True))
        except Conflict as refused:
            impossible = refused
    task = granted[Tasks].get(ref)
    values = {"task": task, "ended": task.state in ENDED, "preview": preview, "refusal": impossible}
    return render("discard.html", values, granted, refusal=refusal)


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
    """What a run changed."""

    view: ChangesView
    changes: RunChanges
    files: tuple[FileEntry, ...]
    """The first ones."""
    without: str | None
    """Why no lines are shown, if there are none."""
    left: tuple[tuple[str, Sequence[str], int], ...]
    """Files that it did not commit: a word for them, the names of the first ones, and how many more there are."""


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
        ("Uncommitted", changes.uncommitted[:MAX_NAMES], changes.uncommitted_count),
        ("Not known to git", changes.untracked[:MAX_NAMES], changes.untracked_count),
    )
    return ChangedRun(
        view,
        changes,
        files=tuple(_files(view.number, changes.files, text)),
        without=without,
        left=tuple((word, names, count - len(names)) for word, names, count in left if count),
    )


def _files(number: int, files: Sequence[FileChange], text: str) -> Iterator[FileEntry]:
    patches = patches_of(text)
    for index, file in enumerate(files[:MAX_FILES], start=1):
        patch = patches.get(file.path)
        shown = None if patch is None else patch[:MAX_FILE_CHARS]
        yield FileEntry(
            id=f"change-{number}-{index}",
            path=file.path,
            change=file.words,
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
