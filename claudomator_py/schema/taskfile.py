"""Task files: from bytes or a mapping to valid tasks, or to problems; from a task to a document, or a hash."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from claudomator_py.domain.errors import Lines, Problem, printable
from claudomator_py.domain.fields import name_from
from claudomator_py.domain.redaction import MARK
from claudomator_py.domain.task import TaskSpec, cycle_problem
from claudomator_py.domain.units import counted
from claudomator_py.schema.documents import ParsedFile, beside, documents_of, misread, parsed_file, refusal_of
from claudomator_py.schema.known_secrets import secrets_in
from claudomator_py.schema.validation import (
    MAX_PROBLEMS,
    described,
    key_suggestion,
    other_key,
    problem_at,
    validate,
    value_problems,
)
from claudomator_py.schema.yamlfaults import BadText
from claudomator_py.schema.yamltext import Document, decode
from claudomator_py.schema.zones import zone_problem

EXTRA_PREFIX: Final = "x-"

_ACTED_ON = tuple(name for name in TaskSpec.model_fields if name != "extra")


def is_extra(key: str) -> bool:
    """Return whether the key belongs to somebody else: kept, never interpreted."""
    return len(key) > len(EXTRA_PREFIX) and key.startswith(EXTRA_PREFIX)


def parse_task(
    mapping: Mapping[str, object], *, default_name: str | None = None, lines: Lines | None = None
) -> TaskSpec | list[Problem]:
    """Return the task that the mapping describes, or what is wrong with it. Nothing in it is ignored. default_name:
    used if the mapping has no name. lines: line of each path, for the problems."""
    where = lines or {}
    if problems := value_problems(mapping, where, model=TaskSpec):
        return problems[:MAX_PROBLEMS]
    if (nested := _nested(mapping, where)) is not None:
        return [nested]
    fields: dict[str, object] = {} if default_name is None else {"name": default_name}
    extra: dict[str, object] = {}
    for key, value in mapping.items():
        if len(problems) == MAX_PROBLEMS:
            return problems
        if is_extra(key):
            extra[key] = value
        elif key not in _ACTED_ON:
            place = other_key("elsewhere", key)
            remedy = f"write {place}" if place is not None else key_suggestion(key, _ACTED_ON)
            problems.append(problem_at(where, (key,), "is not a known key", remedy))
        else:
            fields[key] = value
    environment = fields.get("env")
    for name in [name for name, value in environment.items() if value == MARK] if isinstance(environment, dict) else ():
        problems.append(problem_at(where, ("env", name), "is not the value, which was not shown", "write the value"))
    parsed = validate(TaskSpec, {**fields, "extra": extra}, where)
    if isinstance(parsed, TaskSpec):
        return problems or parsed
    return sorted(problems + parsed, key=lambda problem: problem.line or 0)


def _nested(mapping: Mapping[str, object], where: Lines) -> Problem | None:
    """Return the problem of a document whose only content is a task, or several, below a key of another program."""
    below = {key: value for key, value in mapping.items() if key not in _ACTED_ON and not is_extra(key)}
    for key, value in below.items() if "instructions" not in mapping else ():
        tasks = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
        if _is_task(value):
            message, remedy = "contains a task, but a document is the task itself", "write its keys at the top level"
        elif tasks and all(map(_is_task, tasks)):
            message = f"contains {counted(len(tasks), 'task')}, but a document is one task"
            remedy = "write the keys of each at the top level, in a YAML file with `---` between the tasks"
        else:
            continue
        return problem_at(where, (key,), message, remedy)
    return None


def _is_task(value: object) -> bool:
    """Return whether the value is meant as a task: it has instructions, by whatever name."""
    names = (str(key) for key in value) if isinstance(value, dict) else ()
    return any("instructions" in (name, *(other_key("same", name) or ())) for name in names)


def to_document(spec: TaskSpec, *, defaults: bool = True) -> dict[str, Any]:
    """Return the task as written in a file: durations, times and priority as text, ``x-*`` keys in their place.
    defaults: include values that the file could have omitted."""
    document = spec.model_dump(mode="json", exclude_defaults=not defaults, exclude_none=True, exclude={"extra"})
    return {**document, **spec.extra}


def shown_document(spec: TaskSpec) -> dict[str, Any]:
    """Write the task like ``to_document``, for display: variables that look like secrets have MARK as their value."""
    document = to_document(spec)
    hidden = {name: MARK for name, value in spec.env.items() if secrets_in({name: value})}
    return {**document, "env": {**document["env"], **hidden}} if hidden else document


_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def canonical_json(spec: TaskSpec) -> str:
    """Return the task's content in canonical form, the same however it is written. Defaults are omitted, so that adding
    a field to the schema does not change the content of existing tasks."""
    return _canonical(to_document(spec, defaults=False))


def content_hash(spec: TaskSpec) -> str:
    """Return the SHA-256 of the canonical content in hexadecimal; comments, order and formatting do not matter."""
    return hashlib.sha256(canonical_json(spec).encode()).hexdigest()


_MAX_SHOWN = 50


def parse_task_file(data: bytes, filename: str) -> ParsedFile[TaskSpec]:
    """Return the tasks in a file with that content, or all of its problems. Never raises. filename: without folders;
    its suffix determines the format, its stem names a task that has no name."""
    try:
        documents = documents_of(decode(data), filename, body="instructions", noun="task")
    except BadText as bad:
        return ParsedFile((), (refusal_of(bad, TaskSpec),))
    if not documents:
        return ParsedFile((), (Problem(message="there is no task in the file", remedy="write `instructions: ...`"),))
    default_name = default_task_name(filename) if len(documents) == 1 else None
    parsed = parsed_file(documents, lambda document: _task(document, default_name), _name_problems(documents, filename))
    specs = parsed.items
    if (cycle := _cycle(specs)) is not None:
        first = next(spec for spec in specs if spec.name == cycle[0])
        return ParsedFile((), (parsed.located(first, cycle_problem(cycle, specs)),), names=parsed.names)
    return parsed


def _cycle(specs: Sequence[TaskSpec]) -> list[str] | None:
    """Return tasks that wait for each other, the first one again at the end; None if there are none. Nothing waits for
    a schedule."""
    waits = {spec.name: spec.prerequisites for spec in specs if spec.schedule is None}
    if not any(waits.values()):
        return None
    try:
        TopologicalSorter(waits).prepare()
    except CycleError as error:
        names: list[str] = error.args[1][::-1]
        first = min(names[1:], key=list(waits).index)
        begin = names.index(first)
        return [*names[begin:-1], *names[:begin], first]
    return None


def default_task_name(filename: str) -> str | None:
    """Return the task name derived from a file name: ``Fix Login.yaml`` gives ``fix-login``. None if nothing is left of
    it."""
    return name_from(filename.rpartition(".")[0])


def render_problems(filename: str, problems: Sequence[Problem], without: str = "nothing in it was run") -> str:
    """Return the note placed next to a file that was not accepted. without: the consequence."""
    lines = [f"{printable(filename)} was not accepted, and {without}.", ""]
    lines += [problem.render(filename) for problem in problems[:_MAX_SHOWN]]
    if len(problems) > _MAX_SHOWN:
        lines.append(f"... and {len(problems) - _MAX_SHOWN} more")
    lines += ["", "Fix the file and save it; it is read again automatically."]
    return "\n".join(lines) + "\n"


def _task(document: Document, default_name: str | None) -> TaskSpec | list[Problem]:
    if not isinstance(document.value, dict):
        message = f"{described(document.value)}, but a task is a mapping"
        remedy = "write `key: value` lines, and `---` between tasks"
        return [Problem(line=document.lines.get(()), message=message, remedy=remedy)]
    # A missing name is reported by _name_problems, which knows the reason.
    fallback = default_name or "unnamed"
    parsed = parse_task(document.value, default_name=fallback, lines=document.lines)
    parsed = beside(misread(TaskSpec, document), parsed)
    if not isinstance(parsed, TaskSpec):
        return parsed
    problem = zone_problem(parsed.timezone, document.lines, ("timezone",))
    return parsed if problem is None else [problem]


def _name_problems(documents: Sequence[Document], filename: str) -> list[Problem]:
    """Documents that need a name, and duplicate names."""
    several = len(documents) > 1
    problems: list[Problem] = []
    line_of_name: dict[str, int] = {}
    for number, document in enumerate(documents, 1):
        if not isinstance(document.value, dict):
            continue
        name = document.value.get("name")
        line = document.lines.get(("name",), document.lines.get((), 1))
        message = remedy = None
        if "name" not in document.value and several:
            message, remedy = "is missing, and the file has several documents", "give each of them a name"
        elif "name" not in document.value and default_task_name(filename) is None:
            message, remedy = "is missing, and the file's own name makes none", "add `name: ...`"
        elif isinstance(name, str) and name in line_of_name:
            message, remedy = f"is the name in line {line_of_name[name]}, too", "give each document a name of its own"
        if message is not None:
            place = {"line": line, "field": "name", "document": number if several else None}
            problems.append(Problem.model_validate({**place, "message": message, "remedy": remedy}))
        if isinstance(name, str):
            line_of_name.setdefault(name, line)
    return problems
