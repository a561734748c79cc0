"""What a bug report may contain: the configuration and the daemon's answers, without secrets and people's texts.

Structure decides first: only what is listed here is kept. The rest is then searched for known secrets and for what
looks like a key, in case a secret stands where none belongs.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from claudomator_py.domain.redaction import MARK, Redactor
from claudomator_py.resources.agents import AgentView
from claudomator_py.resources.events import EventView
from claudomator_py.resources.overview import StatusView
from claudomator_py.resources.tasks import TaskView
from claudomator_py.schema.known_secrets import secrets_of
from claudomator_py.schema.settings import Settings
from claudomator_py.values import regex

_OPTION = regex(r"--?[A-Za-z][\w-]*")
_TASK = frozenset(
    {"id", "name", "version", "state", "phase", "reason", "waiting_until", "priority", "specialist", "agent", "tier"}
    | {"model", "attempts", "runs", "tokens", "cost_usd", "created_at", "updated_at", "started_at", "generation"}
    | {"revision", "source", "depends_on", "continues", "thread", "available_actions", "budget"}
)
_AGENT = frozenset(
    {"name", "kind", "account", "version", "installed", "active", "max_concurrent", "auto_select", "limited"}
    | {"limited_until", "provenance", "models", "default_tier", "cannot_enforce", "budget", "spent_today"}
)
_EVENT_DATA = frozenset(
    {"agent", "attempt", "cause", "from", "generation", "holds", "kind", "model", "phase", "provenance", "reason"}
    | {"resumes", "revision", "seq", "source", "state", "status", "tier", "to", "until"}
)
_TASK_LISTS = ("needs_you", "problems", "running", "queued", "recent")

Document = dict[str, Any]


def known_secrets(settings: Settings, environ: Mapping[str, str], own: Iterable[str]) -> Redactor:
    """Return a redactor of the secrets that the daemon would know with these settings and variables, of all values that
    agents are given, and of our own."""
    given = {value for agent in settings.agents.values() for value in agent.env.values()}
    return Redactor([*secrets_of(settings, settings.agents.values(), environ), *given, *own])


def configuration(settings: Settings) -> Document:
    """Return the settings: variables, options and notifiers by name only, URLs as scheme and host."""
    document = settings.model_dump(mode="json")
    document["database"] = _bare_url(settings.database)
    document["classifier"]["base_url"] = _bare_url(settings.classifier.base_url)
    document["classifier"]["command"] = _command(settings.classifier.command)
    document["routing"]["encoder"]["base_url"] = _bare_url(settings.routing.encoder.base_url)
    document["telemetry"]["endpoint"] = _bare_url(settings.telemetry.endpoint)
    document["notify"] = sorted(settings.notify)
    for name, agent in settings.agents.items():
        section = document["agents"][name]
        section["env"] = dict.fromkeys(agent.env, MARK)
        section["command"] = _command(agent.command)
        section["extra_args"] = _options(agent.extra_args)
        section["script"] = MARK if agent.script else None
    return document


def status(view: StatusView, *, tasks: bool) -> Document:
    """Return the status. tasks: with the texts of people and agents."""
    if tasks:
        # Without the spec, which contains variables.
        return view.model_dump(mode="json", exclude={name: {"__all__": {"spec"}} for name in _TASK_LISTS})
    document: Document = {name: [task(row) for row in getattr(view, name)] for name in _TASK_LISTS}
    problems = [[{"line": problem.line, "field": problem.field} for problem in file.problems] for file in view.inbox]
    return {
        **document,
        "counts": dict(view.counts),
        "inbox": problems,
        "agents": [_agent(agent) for agent in view.agents],
    }


def task(view: TaskView) -> Document:
    """Return a task without its texts and paths."""
    return view.model_dump(mode="json", include=set(_TASK))


def event(view: EventView, *, tasks: bool) -> Document:
    """Return an event, without texts unless ``tasks``."""
    document = view.model_dump(mode="json")
    if not tasks:
        document["data"] = _codes(view.data)
    return document


def _agent(view: AgentView) -> Document:
    document = view.model_dump(mode="json", include=set(_AGENT))
    return {**document, "problem": MARK if view.problem else None}


def _codes(data: Mapping[str, object]) -> Document:
    """Return an event's data as codes and numbers."""
    return {key: value for key, value in data.items() if key in _EVENT_DATA and isinstance(value, str | int | None)}


def _command(words: Sequence[str]) -> list[str]:
    """Return the program and the names of its options."""
    return [*words[:1], *_options(words[1:])]


def _options(words: Sequence[str]) -> list[str]:
    """Return the names of the options among arguments: a value may be a key, or a script that contains one."""
    shown = []
    for word in words:
        name, equals, _ = word.partition("=")
        is_option = _OPTION.fullmatch(name) is not None
        shown.append(MARK if not is_option else f"{name}={MARK}" if equals else name)
    return shown


def _bare_url(url: str | None) -> str | None:
    """Return the URL without user, password, path and query."""
    if url is None or "://" not in url:
        return url
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.hostname or ''}" + (f":{parts.port}" if parts.port else "")
    except ValueError:
        return MARK
