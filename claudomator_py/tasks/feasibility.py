"""Where a valid task could run at all: its agent, its directory, its time zone. Asked before it is accepted."""

from collections.abc import Collection

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.card import Transport
from claudomator_py.domain.errors import Problem, shown, suggestion
from claudomator_py.domain.task import Permissions, TaskSpec
from claudomator_py.domain.worktree import Isolation
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.standing import standing_warnings
from claudomator_py.environment.workdirs import Workdirs, zone_problem
from claudomator_py.schema.agent_settings import BY_NAME_KINDS, MODEL_KINDS
from claudomator_py.schema.known_secrets import secrets_in

_REMOTE = frozenset(transport.value for transport in Transport if transport is not Transport.LOCAL)
"""What the names of agents that are remote specialists begin with, see ``routing.role.agent_name``."""


def placement_problems(spec: TaskSpec, registry: AgentRegistry, workdirs: Workdirs) -> list[Problem]:
    """Return why the task could never run as it asks to."""
    problems = []
    if spec.working_dir is not None and (problem := workdirs.problem(spec.working_dir)):
        problems.append(problem)
    for place, folder in enumerate(spec.add_dirs):
        if (problem := workdirs.problem(folder, f"add_dirs[{place}]")) is not None:
            problems.append(problem)
    if spec.agent.type is not None:
        problems += _agent_problems(spec, spec.agent.type, registry)
    return problems


def placement_warnings(spec: TaskSpec, registry: AgentRegistry) -> list[Problem]:
    """Return what the task asks for and nobody can give it, and it is accepted anyway."""
    agent_type = spec.agent.type
    if agent_type is None or _insists(spec) or any(agent_type in (a.name, a.kind) for a in registry.configured):
        return []
    message = f"no agent `{shown(agent_type)}` is configured, so any other may take the task"
    if spec.agent.model is not None:
        message += f", with a model of its own instead of `{shown(spec.agent.model)}`"
    return [Problem(field="agent.type", message=message, remedy=_remedy(agent_type, registry))]


def open_to(spec: TaskSpec, agents: Collection[AgentSpec]) -> list[AgentSpec]:
    """Return those of the agents that may come to do the task: the one that it insists on, else all that are open to
    balancing and those that it names."""
    named = [agent for agent in agents if spec.agent.type in (agent.name, agent.kind)]
    if named and spec.agent.strict:
        return [agent for agent in named if agent.name == spec.agent.type] or named
    return [agent for agent in agents if agent.auto_select or agent in named]


def acceptance_warnings(spec: TaskSpec, registry: AgentRegistry) -> list[Problem]:
    """Return what is odd about a task that is accepted anyway."""
    return [
        *placement_warnings(spec, registry),
        *standing_warnings(spec),
        *_permission_warnings(spec, registry),
        *_secret_warnings(spec),
        *_tree_warnings(spec),
    ]


def _tree_warnings(spec: TaskSpec) -> list[Problem]:
    """It can only begin where one of them ended."""
    others = [name for name in spec.depends_on if name != spec.continues]
    if spec.isolation is not Isolation.WORKTREE or len(others) < 2 or spec.continues is not None or spec.base:
        return []
    message = (
        f"names {len(others)} tasks, and the work tree begins where that one ended which has what the others committed "
        "in work trees; where none has, at what is checked out in the repository"
    )
    remedy = "name one of them as `base`, or have them merged first"
    return [Problem(field="depends_on", message=message, remedy=remedy)]


def _secret_warnings(spec: TaskSpec) -> list[Problem]:
    """A task file is read by whoever reads the inbox, and the database keeps what is in it."""
    message = "looks like a secret, and task files and the database keep it as it is"
    remedy = "set it for the daemon instead, and name it in `pass_env` of the agent"
    return [
        Problem(field=f"env.{name}", message=message, remedy=remedy)
        for name, value in spec.env.items()
        if secrets_in({name: value})
    ]


def _permission_warnings(spec: TaskSpec, registry: AgentRegistry) -> list[Problem]:
    """A task that is to work in a directory and allows nothing there fails at night, when nobody is asked."""
    if spec.working_dir is None or spec.permissions != Permissions() or spec.approval:
        return []
    able = [agent for agent in registry.configured if agent.auto_select]
    wished = [agent for agent in registry.configured if spec.agent.type in (agent.name, agent.kind)]
    if not any(agent.kind in MODEL_KINDS for agent in wished or able):
        return []
    message = "are not named, so most agents may read in the directory and nothing else, and nobody is there to ask"
    remedy = "write permissions: {mode: acceptEdits}, or name the tools in permissions.allowed_tools"
    return [Problem(field="permissions", message=message, remedy=remedy)]


def zone_problems(spec: TaskSpec) -> list[Problem]:
    """Return why the schedule's zone cannot be used."""
    problem = zone_problem(spec.timezone)
    return [] if problem is None else [problem]


def _agent_problems(spec: TaskSpec, agent_type: str, registry: AgentRegistry) -> list[Problem]:
    named = [agent for agent in registry.configured if agent_type in (agent.name, agent.kind)]
    if not named:
        if not _insists(spec):
            return []
        message = f"no agent `{shown(agent_type)}` is configured, and the task insists on it"
        return [Problem(field="agent.type", message=message, remedy=_remedy(agent_type, registry))]
    bound = [agent for agent in named if agent.name == agent_type] or named
    must = spec.agent.strict or not any(agent.auto_select for agent in bound)
    lacking = registry.unsupported(spec, bound[0]) if must else []
    remedy = "leave it out, or choose another agent"
    return [Problem(field="agent.type", message=sentence, remedy=remedy) for sentence in lacking]


def _insists(spec: TaskSpec) -> bool:
    """Whether only an agent that its ``agent.type`` means will do: one of a kind that has to be named is no wish."""
    return spec.agent.strict or spec.agent.type in BY_NAME_KINDS


def _remedy(agent_type: str, registry: AgentRegistry) -> str:
    """What to do about an agent that nobody has: correct its name, or have one."""
    of, _, specialist = agent_type.partition(":")
    if specialist and of in _REMOTE:
        # Whether or not there is one: the agents of specialists are shown to those who see the specialist.
        return f"write `specialist: {shown(specialist)}` instead"
    if agent_type in registry.kinds:
        return f"configure or install {agent_type}, or leave it out"
    # Nobody who mistypes an agent means the one that only pretends.
    return suggestion(agent_type, [agent.name for agent in registry.configured if agent.kind != "simulated"])
