"""Builds a shim's order from a run's row: prompt, command line, limits and environment."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.command_line import SHELLS
from claudomator_py.domain.report import LiveOutput, Stage
from claudomator_py.domain.run import Bounds, Launch, RunLimits, RunSpec, WindDown
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.trace import SpanName, check_span, own_span
from claudomator_py.domain.units import MINUTE_MS, SECOND_MS
from claudomator_py.environment.secrets import VARIABLE, environment
from claudomator_py.environment.worktrees import folder_in_tree
from claudomator_py.store.tables import Run
from claudomator_py.values import dataclass

_CODE_OPTIONS = {"python": "cm", "perl": "eE", "ruby": "e", "node": "ep"}
"""Options of other interpreters after which the program is an argument."""


@dataclass(frozen=True, slots=True)
class LaunchRules:
    """The configuration that launching depends on."""

    bounds: Bounds
    """Bounds of the directories that tasks name."""
    grace_ms: int
    output_bytes: int
    environ: Mapping[str, str]
    linger_ms: int = 20 * SECOND_MS
    """How long a program may keep running after its final message."""
    background_idle_ms: int = 2 * MINUTE_MS
    """How long its background processes may be idle: no output and no CPU time."""
    input_hold_ms: int = 30 * MINUTE_MS
    """How long the directory of a task that needs input is kept for it."""
    max_handoffs: int = 2
    """How often a task may be handed on in a generation."""
    run_token: Callable[[str], str] | None = None
    """Returns the token for this daemon's API by run id; None if runs get no token."""
    mcp_command: tuple[str, ...] = ()
    """Command of the MCP server through which an agent's CLI calls this daemon; empty if there is none."""
    max_subtasks: int = 0
    """How many tasks a run may create."""
    traced: bool = False
    """Whether runs get a ``TRACEPARENT``."""

    def wind_down(self, output: LiveOutput, now_ms: int) -> WindDown | None:
        """Return how to end a live run that has sent its final message; None if it has not."""
        match output.stage:
            case Stage.DONE:
                left_ms = output.stage_since + self.linger_ms - now_ms
                return WindDown(output.stdout, max(0, left_ms), idle=False)
            case Stage.BACKGROUND:
                return WindDown(output.stdout, self.background_idle_ms, idle=True)
        return None


@dataclass(frozen=True, slots=True)
class Prepared:
    """The content of a run directory, and the environment that is passed at the spawn."""

    order: RunSpec
    environment: dict[str, str]


def agent_run(
    run: Run,
    spec: TaskSpec,
    agent: AgentSpec,
    launch: Launch,
    rules: LaunchRules,
    *,
    handoff: str | None,
    note: str | None,
    hosts: tuple[str, ...],
) -> Prepared:
    """Return the prepared run of the agent. spec: with resolved ``add_dirs``. handoff, note: see ``RunSpec``. hosts:
    where it may run."""
    token = {} if rules.run_token is None else {VARIABLE: rules.run_token(run.id)}
    own = _own(run, rules, own_span)
    variables = environment(rules.environ, agent, spec, launch.env, {**launch.over, **own, **token})
    context = {"handoff": handoff, "note": note, "agent": agent.name, "resumes": run.resumes}
    return _prepared(
        run,
        spec,
        (launch.argv,),
        launch.stdin,
        variables,
        rules,
        launch.idle_share,
        folders=spec.add_dirs,
        hosts=hosts,
        **context,
    )


def check_run(run: Run, spec: TaskSpec, rules: LaunchRules) -> Prepared:
    """Return the prepared check of the task. It gets neither the agent's variables nor the run's token."""
    nobody = AgentSpec(name="check", kind="check")
    variables = environment(rules.environ, nobody, spec, {}, _own(run, rules, check_span))
    return _prepared(run, spec, spec.check, "", variables, rules)


def _prepared(
    run: Run,
    spec: TaskSpec,
    commands: tuple[tuple[str, ...], ...],
    stdin: str,
    variables: dict[str, str],
    rules: LaunchRules,
    idle_share: float | None = None,
    **more: Any,
) -> Prepared:
    """Return the prepared commands. more: further fields of the ``RunSpec``."""
    cwd, bounds = folder_of(run, spec), _bounds(run, spec, rules)
    order = RunSpec(
        run_id=run.id,
        commands=commands,
        cwd=cwd,
        roots=bounds.roots,
        env_names=tuple(sorted(variables)),
        stdin=stdin,
        limits=RunLimits(spec.timeout, spec.stall_timeout, rules.grace_ms, rules.output_bytes, idle_share),
        scratch_of=run.scratch_of,
        reserved=bounds.reserved,
        folder_bounds=rules.bounds,
        needs=spec.needs,
        **more,
    )
    return Prepared(order, variables)


def folder_of(run: Run, spec: TaskSpec) -> str | None:
    """Return the working directory; None for a scratch folder."""
    if (isolated_dir := spec.isolated_dir) is not None:
        return folder_in_tree(isolated_dir, run.dir_key)
    return None if spec.working_dir is None else str(Path(spec.working_dir).expanduser())


def _bounds(run: Run, spec: TaskSpec, rules: LaunchRules) -> Bounds:
    """Return where the working directory may be. A work tree, which is in the state folder, is its own bound."""
    if spec.isolated_dir is not None:
        return Bounds(roots=(run.dir_key,))
    return Bounds() if spec.working_dir is None else rules.bounds


def _own(run: Run, rules: LaunchRules, span: Callable[[str, str], SpanName]) -> dict[str, str]:
    """Return the variables of every process of the run. span: names that of the process, by the task's and run's id."""
    return {
        **({"TRACEPARENT": span(run.task_id, run.id).traceparent} if rules.traced else {}),
        "CLAUDOMATOR_RUN": run.id,
        "CLAUDOMATOR_TASK": run.task_id,
        "CLAUDOMATOR_ATTEMPT": str(run.attempt),
        "CLAUDOMATOR_IDEMPOTENCY_KEY": run.id,
    }


def runs_its_input(words: Sequence[str]) -> bool:
    """Return whether the command is an interpreter that takes its standard input as a program: ``sh``, ``bash -e``,
    ``python3 -``."""
    if not words or any(not option.startswith("-") for option in words[1:]):
        return False
    program = words[0].rpartition("/")[2].rstrip("0123456789.")
    code = "c" if program in SHELLS else _CODE_OPTIONS.get(program)
    short = "".join(option for option in words[1:] if not option.startswith("--"))
    return code is not None and not set(code) & set(short)
