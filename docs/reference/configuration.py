"""The page of the configuration, from the models that a file is read with."""

from collections.abc import Mapping
from typing import Any

from claudomator_py.domain.agent import TIERS, ModelChoice
from claudomator_py.domain.host import HostSpec, HostType
from claudomator_py.domain.notice import NotifyTarget
from claudomator_py.schema.agent_settings import MODEL_KINDS, SUPPORTED_KINDS, AgentEntry, default_agent
from claudomator_py.schema.settings import Settings
from docs.reference.markdown import code, page, table
from docs.reference.schema_words import Schema, default_words, fields, type_words

_INTRODUCTION = """
Every key is optional, and so is the file: without one, the agents found on PATH are used. It is searched for in this
order: `--config`, `$CLAUDOMATOR_CONFIG`, `./claudomator.yaml`, `$XDG_CONFIG_HOME/claudomator/claudomator.yaml` (by
default in `~/.config`), `/etc/claudomator/claudomator.yaml`. Relative paths are relative to the file, and `~` is the
user's home. A file with a mistake is refused, with the line, the key and a remedy.
"""
_AGENTS = """
`agents` maps names to agents. With `agents` in the file, only these exist; without it, those found on PATH. Two logins
of one program are two agents of one kind. An agent that is named like its kind needs no `kind`.
"""
_NOTICES = """
`notify` maps names to targets, each of which receives the events it lists. A notification is stored together with its
event and retried with growing pauses until the target accepts it, or it is given up. A target may therefore receive
the same notification twice, under the same id.
"""
_HOSTS = """
`hosts` maps names to clusters, to which runs of agents with that name in their `hosts` go
([how](../how-to/hosts.md)). A change takes effect with the next start of the daemon.
"""
_HOST = HostSpec(kind=HostType.SLURM, root="/").model_dump(mode="json", exclude={"kind", "root"})
_DEFAULTS = "The kinds, what they start and which models stand behind their tiers where the file says nothing:"
_HEAD = ("key", "type", "default", "meaning")
_NOT_IN_FILES = ("agents", "agents_configured", "reach_configured")


def configuration() -> str:
    """Every key of the configuration."""
    keys = Settings.model_json_schema()
    for name in _NOT_IN_FILES:
        del keys["properties"][name]
    return page(
        "Configuration",
        _INTRODUCTION,
        table(_HEAD, _rows(keys, Settings().model_dump(mode="json"))),
        "## Agents",
        _AGENTS,
        table(_HEAD, _rows(AgentEntry.model_json_schema(), AgentEntry().model_dump(mode="json"))),
        _DEFAULTS,
        table(("kind", "program", "fast", "balanced", "powerful", "by itself"), map(_kind, SUPPORTED_KINDS)),
        "## Hosts",
        _HOSTS,
        table(_HEAD, _rows(HostSpec.model_json_schema(), _HOST)),
        "## Notices",
        _NOTICES,
        table(_HEAD, _rows(NotifyTarget.model_json_schema(), NotifyTarget.model_construct().model_dump(mode="json"))),
    )


def _rows(schema: Schema, values: Mapping[str, Any]) -> list[list[str]]:
    return [
        [code(name), type_words(part), default_words(value, required=False), part["description"]]
        for name, part, value in fields(schema, values)
        if "properties" not in part
    ]


def _kind(kind: str) -> list[str]:
    if kind in ("acp", "command"):
        return [code(kind), "as configured", "", "", "", _open(kind)]
    if kind == "a2a":
        return [code(kind), "built in, with `url`", "", "", "", _open(kind)]
    agent = default_agent(kind)
    models = [_model(agent.models.get(tier)) for tier in TIERS]
    return [code(kind), code(" ".join(agent.command)) if agent.command else "built in", *models, _open(kind)]


def _open(kind: str) -> str:
    return "yes" if kind in MODEL_KINDS else "no"


def _model(choice: ModelChoice | None) -> str:
    if choice is None:
        return ""
    return code(choice.model) + (f", effort {choice.effort}" if choice.effort else "")
