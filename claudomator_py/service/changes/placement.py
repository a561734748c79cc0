"""Where a valid task could run at all: its agent, its directory, its time zone. Asked before it is accepted."""

from claudomator_py.core.problem import Problem, suggestion
from claudomator_py.core.task import TaskSpec
from claudomator_py.service.registry import AgentRegistry
from claudomator_py.service.surroundings.workdirs import Workdirs, path_problem
from claudomator_py.service.surroundings.zones import zone_problem


def placement_problems(spec: TaskSpec, registry: AgentRegistry, workdirs: Workdirs) -> list[Problem]:
    """Why the task could never run as it asks to."""
    problems = []
    if spec.working_dir is not None and (problem := workdirs.problem(spec.working_dir)):
        problems.append(problem)
    for place, folder in enumerate(spec.add_dirs):
        if (problem := path_problem(f"add_dirs[{place}]", folder)) is not None:
            problems.append(problem)
    if spec.agent.type is not None:
        problems += _agent_problems(spec, spec.agent.type, registry)
    return problems


def zone_problems(spec: TaskSpec) -> list[Problem]:
    """Why the schedule's zone cannot be used."""
    problem = zone_problem(spec.timezone)
    return [] if problem is None else [problem]


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
