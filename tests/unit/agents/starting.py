"""How an agent of a kind is started for a plain task, or for one with some of what tasks can ask for."""

from collections.abc import Mapping

from claudomator_py.domain.agent import AgentSpec, ModelChoice
from claudomator_py.domain.run import Launch, LaunchRequest
from claudomator_py.domain.task import TaskSpec
from claudomator_py.ports import AgentKind


def task(**fields: object) -> TaskSpec:
    return TaskSpec.model_validate({"name": "t", "instructions": "Do it.", **fields})


def launched(
    kind: AgentKind,
    prompt: str,
    conversation: str,
    spec: TaskSpec | None = None,
    agent: Mapping[str, object] | None = None,
    model: ModelChoice | None = None,
    resume: bool = False,
) -> Launch:
    """agent: fields of its configuration, besides name and kind."""
    configured = AgentSpec.model_validate({"name": kind.kind, "kind": kind.kind, **(agent or {})})
    return kind.launch(LaunchRequest("run", configured, spec or task(), prompt, model, conversation, resume))


def unsupported_by(kind: AgentKind, env: dict[str, str] | None = None, /, **fields: object) -> list[str]:
    """fields: of the task. env: of the agent."""
    return kind.unsupported(task(**fields), AgentSpec(name=kind.kind, kind=kind.kind, env=env or {}))
