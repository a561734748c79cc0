"""What only the service can say against a valid task: its agent, its directory, a circle of dependencies."""

from collections.abc import Sequence

from sqlalchemy import Connection

from claudomator_py.core.problem import Problem, suggestion
from claudomator_py.core.task import TaskSpec
from claudomator_py.service.registry import AgentRegistry
from claudomator_py.service.surroundings.workdirs import Workdirs
from claudomator_py.service.surroundings.zones import known_zone
from claudomator_py.store import dependency_rows
from claudomator_py.store.tables import Task


def placement_problems(spec: TaskSpec, registry: AgentRegistry, workdirs: Workdirs) -> list[Problem]:
    """Why the task could never run as it asks to."""
    problems = []
    if spec.working_dir is not None and (problem := workdirs.problem(spec.working_dir)):
        problems.append(problem)
    if spec.agent.type is not None:
        problems += _agent_problems(spec, spec.agent.type, registry)
    return problems


def zone_problems(spec: TaskSpec) -> list[Problem]:
    """Why the schedule's zone cannot be used."""
    if spec.timezone is None or known_zone(spec.timezone):
        return []
    message = f"there is no time zone `{spec.timezone}`"
    return [Problem(field="timezone", message=message, remedy="write a name such as Europe/Berlin or UTC")]


def circle_problem(connection: Connection, contents: Sequence[tuple[Task, TaskSpec]]) -> Problem | None:
    """A circle that these tasks close with this content, which is stored or will be, or None."""
    circle = dependency_rows.circle(connection, {task.id: spec.needs for task, spec in contents})
    if circle is None:
        return None
    message = f"the tasks would wait for each other for ever: {' -> '.join(circle)}"
    field = "depends_on" if any(spec.depends_on for _, spec in contents) else "continues"
    return Problem(field=field, message=message, remedy="leave out one of these dependencies")


def _agent_problems(spec: TaskSpec, agent_type: str, registry: AgentRegistry) -> list[Problem]:
    named = [agent for agent in registry.agents if agent_type in (agent.name, agent.kind)]
    if not named and agent_type not in registry.kinds:
        known = [agent.name for agent in registry.agents]
        message = f"there is no agent `{agent_type}`"
        return [Problem(field="agent.type", message=message, remedy=suggestion(agent_type, known))]
    bound = [agent for agent in named if agent.name == agent_type] or named
    if not named and spec.agent.strict:
        message = f"no agent of kind `{agent_type}` is configured, and the task insists on it"
        return [Problem(field="agent.type", message=message, remedy="configure one, or leave out `strict`")]
    must = bound and (spec.agent.strict or not any(agent.auto_select for agent in bound))
    lacking = registry.unsupported(spec, bound[0]) if must else []
    remedy = "leave it out, or choose another agent"
    return [Problem(field="agent.type", message=sentence, remedy=remedy) for sentence in lacking]
