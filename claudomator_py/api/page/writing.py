"""Write a task on the page: a new one, a copy, a continuation of another, or new content for one.

Common settings have fields; all others are written below them, as in a task file.
"""

from collections.abc import Mapping
from typing import Annotated, Final

from fastapi import Depends, Query, Request
from fastapi.responses import Response

from claudomator_py.api.operation import Allowed, UnlistedRoutes
from claudomator_py.api.page.formatting import Ref, Version, unix_lines
from claudomator_py.api.page.rendering import render, to_task
from claudomator_py.domain.agent import TIERS
from claudomator_py.domain.errors import Conflict, Forbidden, Invalid, Problem, ServiceError, StaleVersion
from claudomator_py.domain.fields import name_of_text
from claudomator_py.domain.task import PermissionMode, Priority, TaskSpec
from claudomator_py.domain.worktree import Isolation
from claudomator_py.resources.agents.service import Agents
from claudomator_py.resources.session import Session
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.resources.tasks import TaskView
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.schema.cardfile import card_text
from claudomator_py.schema.documents import documents_of, refusal_of
from claudomator_py.schema.taskfile import parse_task, to_document
from claudomator_py.schema.yamlfaults import BadText
from claudomator_py.values import dataclass

Of = Annotated[str, Query(max_length=128)]
_TEXTS: Final = ("name", "instructions", "working_dir", "isolation", "specialist", "priority", "continues")
_LISTS: Final = ("tags", "depends_on")
_PARTS: Final = {"agent": ("type", "tier"), "permissions": ("mode",)}
"""Settings of which only some keys have fields."""
_FIELDS: Final = (*_TEXTS, *_LISTS, *(key for keys in _PARTS.values() for key in keys))
_DEFAULTS: Final = to_document(TaskSpec(name="x", instructions="x"))


@dataclass(frozen=True, slots=True)
class Written:
    """The fields of the form. more: other settings, as in a task file."""

    given: Mapping[str, str]
    more: str = ""

    def document(self) -> dict[str, object]:
        """Return the task in the form of a task file. Raises Invalid for faults in ``more``."""
        document: dict[str, object] = {**_mapping_of(self.more)}
        document |= {key: self.given[key] for key in _TEXTS if self.given.get(key)}
        document |= {
            key: [part.strip() for part in self.given[key].split(",")] for key in _LISTS if self.given.get(key)
        }
        for name, keys in _PARTS.items():
            if part := {key: self.given[key] for key in keys if self.given.get(key)}:
                other = document.get(name)
                document[name] = {**(other if isinstance(other, dict) else {}), **part}
        if "name" not in document:
            document["name"] = name_of_text(self.given.get("instructions", "")) or "task"
        return document

    def spec(self) -> TaskSpec:
        """Return the parsed task. Raises Invalid."""
        parsed = parse_task(self.document())
        if isinstance(parsed, list):
            raise Invalid.of(parsed)
        return parsed


def written_as(task: TaskView) -> Written:
    """Return the fields filled in from that task."""
    content = _own(task.spec or {}, _DEFAULTS)
    given: dict[str, str] = {key: str(content.pop(key)) for key in _TEXTS if key in content}
    for key in _LISTS:
        removed = content.pop(key, None)
        given[key] = ", ".join(map(str, removed)) if isinstance(removed, list) else ""
    for name, keys in _PARTS.items():
        part = content.pop(name, None)
        if isinstance(part, dict):
            given |= {key: str(part[key]) for key in keys if key in part}
            if rest := {key: value for key, value in part.items() if key not in keys}:
                content[name] = rest
    return Written(given, card_text(content) if content else "")


async def _read(request: Request) -> Written:
    form = {key: unix_lines(value) for key, value in (await request.form()).items() if isinstance(value, str)}
    return Written({key: form.get(key, "").strip() for key in _FIELDS}, form.get("more", ""))


Sent = Annotated[Written, Depends(_read)]


def _own(content: Mapping[str, object], usual: Mapping[str, object]) -> dict[str, object]:
    """Return what differs from the defaults."""
    changed = {key: value for key, value in content.items() if value != usual.get(key)}
    for key, value in changed.items():
        if isinstance(value, dict) and isinstance(below := usual.get(key), dict):
            changed[key] = _own(value, below)
    return changed


routes = UnlistedRoutes()


@routes.get("/new", "submitTask")
def begin(granted: Allowed, again: Of = "", after: Of = "") -> Response:
    written = Written({})
    if again:
        written = written_as(granted[Tasks].get(again))
    elif after:
        before = granted[Tasks].get(after)
        written = Written({"continues": before.name, "working_dir": before.working_dir or ""})
    return _form(granted, written)


@routes.post("/new/check", "submitTask")
def check(granted: Allowed, written: Sent) -> Response:
    problems: list[Problem] = []
    warnings: list[Problem] = []
    name = ""
    try:
        spec = written.spec()
        name = spec.name
        problems, warnings = granted[Tasks].check(spec)
    except Invalid as refusal:
        problems = list(refusal.problems)
    shown = {"problems": problems, "warnings": warnings, "name": name, "begun": any(written.given.values())}
    return render("write_check.html", shown, granted)


@routes.post("/new", "submitTask")
def send(granted: Allowed, written: Sent) -> Response:
    try:
        return to_task(granted[Tasks].submit(written.spec()))
    except (Conflict, Invalid, Forbidden) as refusal:
        return _form(granted, written, refusal=refusal)


@routes.get("/tasks/{ref}/edit", "restartTask")
def edit(granted: Allowed, ref: Ref) -> Response:
    task = granted[Tasks].get(ref)
    return _form(granted, written_as(task), task)


@routes.post("/tasks/{ref}/edit", "restartTask")
def change(granted: Allowed, written: Sent, ref: Ref, version: Version) -> Response:
    try:
        return to_task(granted[Tasks].edit(ref, written.spec(), versions=version))
    except (StaleVersion, Conflict, Invalid, Forbidden) as refusal:
        return _form(granted, written, granted[Tasks].get(ref), refusal)


def _mapping_of(text: str) -> Mapping[str, object]:
    try:
        documents = documents_of(text, "-.yaml", body="instructions", noun="task") if text.strip() else []
    except BadText as bad:
        raise Invalid.of([refusal_of(bad, TaskSpec)]) from bad
    value = documents[0].value if documents else {}
    if len(documents) > 1 or not isinstance(value, dict):
        raise Invalid.of(
            [Problem(message="is not a single mapping", remedy="write `key: value` lines, as in a task file")]
        )
    return value


def _form(
    granted: Session, written: Written, task: TaskView | None = None, refusal: ServiceError | None = None
) -> Response:
    """task: the one that gets new content; None: a new task."""
    values = {
        "task": task,
        "given": {key: written.given.get(key, "") for key in _FIELDS},
        "more": written.more,
        "agents": [agent.name for agent in granted[Agents].all()],
        "tiers": TIERS,
        "priorities": [priority.label for priority in Priority],
        "isolations": [isolation.value for isolation in Isolation],
        "modes": [mode.value for mode in PermissionMode],
        "specialists": [(specialist.id, specialist.name) for specialist in granted[Specialists].page(limit=200).items],
    }
    return render("write.html", values, granted, refusal=refusal)
