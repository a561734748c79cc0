"""The task file's schema: a mapping becomes a valid task or problems; a task becomes a document, or a hash."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from claudomator_py.domain.errors import Lines, Problem, problems_text
from claudomator_py.domain.redaction import MARK
from claudomator_py.domain.task import TaskSpec
from claudomator_py.schema.known_secrets import secrets_in
from claudomator_py.schema.validation import MAX_PROBLEMS, key_suggestion, odd_values, problem_at, validate

EXTRA_PREFIX: Final = "x-"


_ELSEWHERE = {
    "model": "agent: {model: ...}",
    "tier": "agent: {tier: ...}",
    "type": "agent: {type: ...}",
    "strict": "agent: {strict: ...}",
    "max_tokens": "budget: {tokens: ...}",
    "tokens": "budget: {tokens: ...}",
    "token_budget": "budget: {tokens: ...}",
    "max_cost": "budget: {usd: ...}",
    "max_cost_usd": "budget: {usd: ...}",
    "max_budget_usd": "budget: {usd: ...}",
    "cost_usd": "budget: {usd: ...}",
    "usd": "budget: {usd: ...}",
    "max_runs": "budget: {runs: ...}",
    "permission_mode": "permissions: {mode: ...}",
    "allowed_tools": "permissions: {allowed_tools: [...]}",
    "disallowed_tools": "permissions: {disallowed_tools: [...]}",
    "tools": "permissions: {allowed_tools: [...]}",
    "max_attempts": "retry: {max_attempts: ...}",
    "backoff": "retry: {backoff: ...}",
    "retries": "retry: {max_attempts: ...}, the first attempt included",
    "max_retries": "retry: {max_attempts: ...}, the first attempt included",
    "cron": 'schedule: "..."',
    "worktree": "isolation: worktree",
    "work_tree": "isolation: worktree",
    "base_branch": "base: ...",
    "branch": "base: ..., the branch where its own begins",
    "at": "not_before: ...",
    "when": "not_before: ..., or schedule: ...",
    "time_limit": "timeout: ...",
    "after": "depends_on: [...]",
}
"""Keys that people expect, as in other programs, and what to write here."""
_ACTED_ON = tuple(name for name in TaskSpec.model_fields if name != "extra")


def is_extra(key: str) -> bool:
    """Return whether the key belongs to somebody else: kept, never interpreted."""
    return len(key) > len(EXTRA_PREFIX) and key.startswith(EXTRA_PREFIX)


def parse_task(
    mapping: Mapping[str, object], *, default_name: str | None = None, lines: Lines | None = None
) -> TaskSpec | list[Problem]:
    """Return the task that the mapping describes, or what is wrong with it. Nothing in it is ignored.

    default_name: used if the mapping has no name. lines: line of each path, for the problems.
    """
    where = lines or {}
    if problems := odd_values(mapping, where, model=TaskSpec):
        return problems[:MAX_PROBLEMS]
    fields: dict[str, object] = {} if default_name is None else {"name": default_name}
    extra: dict[str, object] = {}
    for key, value in mapping.items():
        if len(problems) == MAX_PROBLEMS:
            return problems
        if is_extra(key):
            extra[key] = value
        elif key not in _ACTED_ON:
            place = _ELSEWHERE.get(key.lower().replace("-", "_"))
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


def to_document(spec: TaskSpec, *, defaults: bool = True) -> dict[str, Any]:
    """Return the task as written in a file: durations, times and priority as text, ``x-*`` keys in their place.

    defaults: include values that the file could have omitted.
    """
    document = spec.model_dump(mode="json", exclude_defaults=not defaults, exclude_none=True, exclude={"extra"})
    return {**document, **spec.extra}


def shown_document(spec: TaskSpec) -> dict[str, Any]:
    """Write the task like ``to_document``, for display: variables that look like secrets have MARK as their value."""
    document = to_document(spec)
    hidden = {name: MARK for name, value in spec.env.items() if secrets_in({name: value})}
    return {**document, "env": {**document["env"], **hidden}} if hidden else document


def from_document(document: Mapping[str, object]) -> TaskSpec:
    """Return the task that ``to_document`` wrote. Raises ValueError, naming every problem, for any other document."""
    parsed = parse_task(document)
    if isinstance(parsed, TaskSpec):
        return parsed
    raise ValueError(problems_text(parsed))


def canonical_json(spec: TaskSpec) -> str:
    """Return the task's content in canonical form, the same however it is written.

    Defaults are omitted, so that adding a field to the schema does not change the content of existing tasks.
    """
    document = to_document(spec, defaults=False)
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def content_hash(spec: TaskSpec) -> str:
    """Return the SHA-256 of the canonical content in hexadecimal; comments, order and formatting do not matter."""
    return hashlib.sha256(canonical_json(spec).encode()).hexdigest()
