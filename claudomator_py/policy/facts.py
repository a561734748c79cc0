"""What rules can look at: the names available to conditions, and their values for a task.

Every name always has a value, so conditions need no ``has()``: if the task does not specify it, the value is an empty
text, an empty list or 0.
"""

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime, tzinfo
from functools import cache, reduce
from math import inf
from typing import Any

from claudomator_py.acts import Reach
from claudomator_py.domain.agent import Tier
from claudomator_py.domain.budget import Budget, Spending
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.routing import Risk
from claudomator_py.domain.task import MAX_INSTRUCTIONS_LENGTH, PermissionMode, Priority, TaskSpec
from claudomator_py.domain.transcript import named_in
from claudomator_py.domain.units import SECOND_MS
from claudomator_py.domain.worktree import Isolation
from claudomator_py.values import dataclass, regex

WEBHOOK = "webhook"
"""Role of anybody who writes through a channel's webhook, who is unknown to the daemon."""
MAX_PATHS = 200
"""Maximum number of paths from a text that rules can look at. If the text names more, no rule on paths is reliable; see
``verdict``."""
_MAX_NAME_LENGTH = 255
"""Maximum characters of a file name; no system allows longer ones. Prevents rescanning a text from each position."""
_PATH = regex(
    rf"(?<![\w./~-])(?:~|\.{{1,2}})?/?(?:[\w.@+-]{{1,{_MAX_NAME_LENGTH}}}+/)++[\w.@+*-]*+"
    rf"|(?<![\w./~-])[\w@+-]{{1,{_MAX_NAME_LENGTH}}}+\.[a-z][a-z0-9]{{0,4}}\b"
)
_URL = regex(r"\b[a-z][a-z0-9+.-]{0,31}://\S+", re.IGNORECASE)
_MAX_FOLDERS = 100
"""Maximum number of folders in a path that is resolved on disk as written; each one costs a system call."""


LONG = ("task.text", "task.paths", "task.tags", "task.add_dirs", "task.allowed_tools")
"""Values that may be long."""
MAX_TEXT = MAX_INSTRUCTIONS_LENGTH
"""Maximum characters of a text that rules can look at. A longer text, extended by a run that handed the task off or by
a person, cannot be reliably judged by a rule on it; see ``verdict``."""


@dataclass(frozen=True, slots=True)
class Facts:
    """A task as rules see it."""

    spec: TaskSpec
    actor: Principal = OPERATOR
    """The creator; for a message in a channel, its author."""
    source: str = "api"
    """How the task arrived; see ``WORDS``."""
    specialist: str | None = None
    """The specialist that does it; None if that is undecided or there is none."""
    skill: str | None = None
    risk: Risk = Risk.LOW
    working_dir: str = ""
    """Absolute, without symbolic links; empty for a scratch folder."""
    paths: tuple[str, ...] = ()
    """The paths that its text names, see ``paths_in``; more than ``MAX_PATHS`` means that there are further ones."""
    now_ms: int = 0
    zone: tzinfo = UTC
    """The operator's zone, in which hours and days are given."""
    spent: Spending = field(default_factory=Spending)
    """Spent today, by everybody's tasks."""
    limits: Budget = field(default_factory=Budget)
    """The day's budget for all agents."""
    role: str | None = None
    """The actor's effective role, if it differs from the actor's own: ``webhook``, or a lesser role."""
    creator: str | None = None
    """The principal in whose name it was created; None for the actor."""

    @property
    def values(self) -> dict[str, Any]:
        """The values under the names used by conditions."""
        role = self.role or self.actor.role.value
        spec, at = self.spec, datetime.fromtimestamp(self.now_ms / SECOND_MS, self.zone)
        return {
            "task": {
                "name": spec.name,
                "text": spec.instructions,
                "tags": list(spec.tags),
                "priority": spec.priority.label,
                "working_dir": self.working_dir,
                "paths": list(self.paths),
                "add_dirs": list(spec.add_dirs),
                "creator": self.creator or self.actor.id,
                "author": self.actor.id,
                "organisation": self.actor.organisation or "",
                "source": self.source,
                "specialist": self.specialist or "",
                "skill": self.skill or "",
                "agent": spec.agent.type or "",
                "model": spec.agent.model or "",
                "tier": spec.agent.tier.value if spec.agent.tier is not None else "",
                "risk": self.risk.value,
                "mode": spec.permissions.mode.value,
                "allowed_tools": list(spec.permissions.allowed_tools),
                "isolation": spec.isolation.value,
                "reach": "" if spec.reach is None else spec.reach.value,
                "approval": spec.approval,
                "continues": spec.continues or "",
                "timeout_s": spec.timeout // SECOND_MS,
                "budget": _budget(spec.budget, 0),
            },
            "actor": {
                "id": self.actor.id,
                "role": role,
                "roles": [role],
                "organisation": self.actor.organisation or "",
            },
            "now": {
                "hour": at.hour,
                "minute": at.minute,
                "weekday": at.isoweekday(),
                "date": at.date().isoformat(),
            },
            "spent": {
                "day": {"usd": self.spent.usd, "tokens": float(self.spent.tokens), "runs": float(self.spent.runs)}
            },
            "limits": {"day": _budget(self.limits, inf)},
        }


def _budget(budget: Budget, nothing: float) -> dict[str, float]:
    amounts = {"usd": budget.usd, "tokens": budget.tokens, "runs": budget.runs}
    return {unit: float(nothing if amount is None else amount) for unit, amount in amounts.items()}


@cache
def sample() -> Facts:
    """Return a task in which everything is set; see ``shapes``."""
    values = {
        "name": "sample",
        "instructions": "Change src/app.py and infra/main.tf, then run the tests.",
        "working_dir": "/srv/sample",
        "tags": ["docs"],
        "add_dirs": ["/srv/shared"],
        "permissions": {"allowed_tools": ["Read"]},
        "budget": {"usd": 1.0, "tokens": 1000, "runs": 1},
    }
    return Facts(
        TaskSpec.model_validate(values),
        specialist="sample",
        working_dir="/srv/sample",
        paths=("src/app.py", "infra/main.tf"),
        spent=Spending(1.0, 1000, 1),
        limits=Budget(usd=10.0, tokens=100_000, runs=100),
    )


@cache
def shapes() -> tuple[tuple[str, dict[str, Any]], ...]:
    """Return tasks of every shape, on which each rule is tried when it is loaded, each with a description in words: one
    with everything set, one with nothing, and one for each word of a fixed vocabulary."""
    everything, nothing = sample(), Facts(TaskSpec(name="sample", instructions="Run the tests."))
    shapes = [
        ("", everything.values),
        ("where the day has no limit, that is an infinite one", replace(everything, limits=Budget()).values),
        ("for a task that says nothing but its text", replace(nothing, limits=everything.limits).values),
        ("for a task that says nothing but its text, where the day has no limit", nothing.values),
    ]
    for path, possible in WORDS.items():
        *roots, name = path.split(".")
        for word in possible:
            values = everything.values
            group = reduce(lambda within, root: within[root], roots, values)
            group[name] = [word] if isinstance(group[name], list) else word
            shapes.append((f"where `{path}` is {json.dumps(word)}", values))
    return tuple(shapes)


def value_at(path: str) -> Any:
    """Return the value there for a task with everything set; None if there is none."""
    values: Any = sample().values
    for name in path.split("."):
        values = values.get(name) if isinstance(values, dict) else None
    return values


WORDS: dict[str, Sequence[str] | Sequence[int]] = {
    "task.risk": tuple(Risk),
    "task.priority": tuple(level.label for level in Priority),
    "task.tier": ("", *Tier),
    "task.mode": tuple(PermissionMode),
    "task.isolation": tuple(Isolation),
    "task.reach": ("", *Reach),
    "task.source": ("file", "api", "schedule", "run", "channel"),
    "actor.role": (*Role, WEBHOOK),
    "actor.roles": (*Role, WEBHOOK),
    "now.hour": range(24),
    "now.minute": range(60),
    "now.weekday": range(1, 8),
}
"""Values with a fixed vocabulary of words or numbers, or lists of these."""


def names() -> dict[str, frozenset[str]]:
    """Return the names available to conditions: for each root, the dotted members that may follow it."""
    return {root: frozenset(_below(values)) for root, values in sample().values.items()}


def _below(values: Mapping[str, Any], before: str = "") -> Iterable[str]:
    for name, value in values.items():
        yield before + name
        if isinstance(value, dict):
            yield from _below(value, f"{before}{name}.")


def paths_in(text: str, working_dir: str, real: Callable[[str], str] = posixpath.normpath) -> tuple[str, ...]:
    """Return the files and folders that the text names, in order and without duplicates: relative to the working
    directory if inside it, otherwise absolute; at most one more than ``MAX_PATHS``. real: resolves ``..``, and symbolic
    links if it can access the disk."""
    names: dict[str, None] = {}
    for match in _PATH.finditer(_URL.sub(" ", named_in(text))):
        named = match.group()
        if named.startswith("~"):
            home, _, rest = named.partition("/")
            path = f"{home}/{posixpath.normpath(rest)}"  # only the user who runs it knows which folder that is
        elif not working_dir:
            path = posixpath.normpath(named)
        else:
            path = _looked_for(posixpath.join(working_dir, named), real).removeprefix(f"{working_dir.rstrip('/')}/")
        names.setdefault(path)
        if len(names) > MAX_PATHS:
            break
    return tuple(names)


def _looked_for(path: str, real: Callable[[str], str]) -> str:
    """The real path. A path with very many folders is first normalised, and then resolved only if few enough are
    left."""
    if path.count("/") <= _MAX_FOLDERS:
        return real(path)
    path = posixpath.normpath(path)
    return real(path) if path.count("/") <= _MAX_FOLDERS else path
