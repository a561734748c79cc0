"""Rows of runs."""

import uuid
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, TypeVar

from sqlalchemy import Connection, bindparam, func, insert, literal_column, select, update

from claudomator_py.domain.agent import AgentSpec, ModelChoice
from claudomator_py.domain.limits import RanOn
from claudomator_py.domain.outcome import OUTAGES
from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.domain.report import Used
from claudomator_py.domain.run import LaunchRequest, Usage
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import named_id
from claudomator_py.store.statement import Selection, Statement
from claudomator_py.store.tables import RUN, TASK, Run, Task
from claudomator_py.store.visibility import runs_seen

_RUNS = uuid.UUID("6f7a1f0e-3e0b-5d8e-9a51-0b7f4a0f2c11").bytes
_NOTHING_USED = Usage()
MAX_COUNTED = 32
MAX_USED = 10**12
"""Tokens or US dollars; far above anything that one run can have used."""
Number = TypeVar("Number", int, float)


# Compiled once, as they run for every task.
_FIND = Selection(Run, select(RUN).where(RUN.c.id == bindparam("run")))
_WITH_TASK = Statement(select(RUN, TASK).join(TASK, TASK.c.id == RUN.c.task_id).where(RUN.c.id == bindparam("run")))
_WIDTH = len(RUN.columns)
_ADD = Statement(insert(RUN))
_CHANGE = Statement(
    update(RUN).where(
        RUN.c.id == bindparam("run"),
        RUN.c.state == bindparam("state_read"),
        RUN.c.check_seq == bindparam("check_read"),
        RUN.c.live,
    )
)
BEGUN = RUN.c.state != literal_column("'revoked'")
"""Whether a run was not given up before it started: literally the condition of the partial indexes, so that these are
used."""
_BY_AGE = (RUN.c.started_ms, RUN.c.id)
_LIVE = Selection(Run, select(RUN).where(RUN.c.live).order_by(*_BY_AGE))
_LIVE_STEPS = Statement(select(RUN.c.id, RUN.c.state, RUN.c.check_seq).where(RUN.c.live).order_by(*_BY_AGE))
NEAR_LIMIT = RUN.c.warned_until_ms > bindparam("now")
_WARNED_RUNS = Selection(Run, select(RUN).where(NEAR_LIMIT).order_by(RUN.c.ended_ms, RUN.c.id))
_WARNED = Statement(select(RUN.c.kind, RUN.c.account).where(NEAR_LIMIT).distinct())
_ENDED = (
    RUN.c.task_id == bindparam("task"),
    RUN.c.generation == bindparam("of_generation"),
    RUN.c.seq <= bindparam("last"),
    RUN.c.state == "ended",
)
_LATEST_REASONS = Statement(select(RUN.c.reason).where(*_ENDED).order_by(RUN.c.seq.desc()).limit(MAX_COUNTED))
_ANSWERED_OUTAGES = Statement(
    select(func.count()).where(*_ENDED, RUN.c.reason.in_(sorted(OUTAGES)), RUN.c.answered_ms.is_not(None))
)

_CONVERSATIONS = uuid.UUID("c4b0b6de-7c1d-5f43-8a0f-2f1f5f9d7e02").bytes


def identity(task_id: str, generation: int, attempt: int, seq: int) -> tuple[str, str]:
    """Return a run's id and its conversation's UUID, which are the same however often the run is planned."""
    name = f"{task_id}/{generation}/{attempt}/{seq}"
    return named_id(_RUNS, name), named_id(_CONVERSATIONS, name)


def launch_request(run: Run, spec: TaskSpec, agent: AgentSpec, effort: str | None = None) -> LaunchRequest:
    """Return the agent kind's view of the run, as far as it is stored: enough to read its output. effort: of its
    model, which is needed only to start it."""
    prior = _NOTHING_USED if run.prior is None else Usage.model_validate(run.prior)
    return LaunchRequest(
        run_id=run.id,
        agent=agent,
        task=spec,
        prompt="",
        model=None if run.model is None else ModelChoice(model=run.model, effort=effort),
        conversation_id=run.conversation_id or "",
        resume=run.resumes is not None,
        prior_tokens=prior.tokens,
        prior_cost_usd=prior.cost_usd,
    )


def find(connection: Connection, run_id: str, by: Principal = OPERATOR) -> Run | None:
    """Return the run, or None if there is none or it is hidden from the principal."""
    if by is OPERATOR:
        return _FIND.first(connection, run=run_id)
    return Run.find(connection, RUN.c.id == run_id, runs_seen(by))


def with_task(connection: Connection, run_id: str) -> tuple[Run, Task] | None:
    """Return the run and its task, or None."""
    row = _WITH_TASK.row(connection, run=run_id)
    return None if row is None else (Run.load(row[:_WIDTH]), Task.load(row[_WIDTH:]))


def beginning(connection: Connection, prefix: str, by: Principal) -> Sequence[Run]:
    """Return up to 10 runs visible to the principal whose id begins with the prefix, newest first."""
    query = select(RUN).where(RUN.c.id.startswith(prefix.lower(), autoescape=True), runs_seen(by))
    return Run.rows(connection, query.order_by(RUN.c.started_ms.desc(), RUN.c.id).limit(10))


def get(connection: Connection, run_id: str) -> Run:
    """Return the run. Raises LookupError."""
    run = find(connection, run_id)
    if run is None:
        raise LookupError(f"there is no run {run_id}")
    return run


def add(connection: Connection, run: Run) -> None:
    """Insert a run. Raises IntegrityError for a second live run of a task, or a second run with the same identity."""
    _ADD.run_all(connection, [run.stored()])


def change(connection: Connection, run: Run, **changes: Any) -> bool:
    """Update columns of a live run. Return False if its state or check has changed since it was read."""
    return _CHANGE.run(connection, run=run.id, state_read=run.state, check_read=run.check_seq, **changes) == 1


def subtasks(connection: Connection, run_id: str) -> int:
    """Return the number of tasks that the run has created."""
    query = select(func.count()).select_from(TASK).where(TASK.c.parent_run == run_id)
    return connection.execute(query).scalar_one()


def mean_costs(connection: Connection) -> Mapping[tuple[str, str], float]:
    """Return the mean cost of past runs in US dollars by agent and tier, where known."""
    query = select(RUN.c.agent, RUN.c.tier, func.avg(RUN.c.cost_usd)).where(RUN.c.cost_usd.is_not(None))
    rows = connection.execute(query.where(RUN.c.tier.is_not(None)).group_by(RUN.c.agent, RUN.c.tier))
    return {(agent, tier): float(mean) for agent, tier, mean in rows}


def mark_unanswered(connection: Connection, run_id: str) -> None:
    """Record that the ended run was in vain: it only met a limit that was known, or an outage."""
    connection.execute(update(RUN).where(RUN.c.id == run_id).values(in_vain=True))


def live(connection: Connection) -> Sequence[Run]:
    """Return all live runs, oldest first."""
    return _LIVE.all(connection)


def live_steps(connection: Connection) -> Sequence[tuple[str, str, int]]:
    """Return id, state and check number of all live runs, oldest first."""
    return [(run_id, state, check_seq) for run_id, state, check_seq in _LIVE_STEPS.rows(connection)]


def begun_of_kind(connection: Connection, kind: str) -> Sequence[Run]:
    """Return the live runs of a kind of agent whose process is known to have started, oldest first."""
    query = select(RUN).where(RUN.c.live, RUN.c.kind == kind, RUN.c.state != "starting")
    return Run.rows(connection, query.order_by(RUN.c.started_ms, RUN.c.id))


def of_task(connection: Connection, task_id: str) -> Sequence[Run]:
    """Return all runs of the task, oldest first."""
    query = select(RUN).where(RUN.c.task_id == task_id).order_by(RUN.c.generation, RUN.c.seq)
    return Run.rows(connection, query)


def of_generation(connection: Connection, task_id: str, generation: int) -> Sequence[Run]:
    """Return the runs of one generation of the task, oldest first."""
    query = select(RUN).where(RUN.c.task_id == task_id, RUN.c.generation == generation).order_by(RUN.c.seq)
    return Run.rows(connection, query)


def newest_in(connection: Connection, places: Sequence[str]) -> Mapping[str, Run]:
    """Return the newest run that worked in each of these directories, whichever task it was of."""
    query = select(RUN).where(RUN.c.dir_key.in_(places)).order_by(*_BY_AGE)
    return {run.dir_key: run for run in Run.rows(connection, query)}


def in_scratch_of(connection: Connection, run_id: str) -> Sequence[str]:
    """Return the ids of runs, of any task, that used the scratch folder created for this run."""
    return list(connection.execute(select(RUN.c.id).where(RUN.c.scratch_of == run_id).order_by(RUN.c.id)).scalars())


def newest_in_conversation(connection: Connection, run: Run) -> Run:
    """Return the last ended run in this run's conversation, of any task. It may be the run itself."""
    query = select(RUN).where(
        RUN.c.conversation_id == run.conversation_id,
        RUN.c.agent == run.agent,
        RUN.c.kind == run.kind,
        RUN.c.state == "ended",
    )
    runs = Run.rows(connection, query.order_by(RUN.c.started_ms.desc(), RUN.c.id))
    continued = {other.resumes for other in runs}
    return next((other for other in runs if other.id not in continued), run)


def answered_since(connection: Connection, since_ms: int) -> Sequence[RanOn]:
    """Return the quota that was used by runs which began from ``since_ms`` on and have answered."""
    query = select(RUN.c.agent, RUN.c.kind, RUN.c.account, RUN.c.model, RUN.c.ran_model)
    query = query.where(RUN.c.answered_ms.is_not(None), RUN.c.started_ms >= since_ms)
    return [RanOn(*row) for row in connection.execute(query)]


def default_model(connection: Connection, agent: str) -> str | None:
    """Return the model that the agent last chose by itself, or None if it never reported one."""
    chosen = RUN.c.model.is_(None) & RUN.c.ran_model.is_not(None)
    query = select(RUN.c.ran_model).where(RUN.c.agent == agent, chosen)
    newest = query.order_by(RUN.c.started_ms.desc(), RUN.c.id).limit(1)
    return connection.execute(newest).scalar_one_or_none()


def warned(connection: Connection, now_ms: int) -> set[tuple[str, str]]:
    """Return kind and account of those near a limit that has not reset since."""
    return {(kind, account) for kind, account in _WARNED.rows(connection, now=now_ms)}


def warnings(connection: Connection, now_ms: int) -> dict[tuple[str, str], Run]:
    """Return the last run warned of a limit that has not reset since, by kind and account."""
    return {(run.kind, run.account): run for run in _WARNED_RUNS.all(connection, now=now_ms)}


def ids(connection: Connection) -> set[str]:
    """Return the ids of all runs, ended ones included."""
    return set(connection.execute(select(RUN.c.id)).scalars())


def consecutive_revocations(connection: Connection, run: Run) -> int:
    """Return how many consecutive runs of the generation, ending with this one, were given up before they started."""
    query = select(RUN.c.state).where(
        RUN.c.task_id == run.task_id, RUN.c.generation == run.generation, RUN.c.seq <= run.seq
    )
    states = connection.execute(query.order_by(RUN.c.seq.desc()).limit(MAX_COUNTED)).scalars()
    return sum(1 for _ in takewhile(lambda state: state == "revoked", states))


def outages(connection: Connection, run: Run) -> tuple[int, int]:
    """Return how many consecutive runs, ending with this one, an outage ended, and how many runs of the generation one
    ended after the model had answered. Runs given up before they started do not count."""
    upto = {"task": run.task_id, "of_generation": run.generation, "last": run.seq}
    in_a_row = sum(1 for _ in takewhile(OUTAGES.__contains__, _LATEST_REASONS.values(connection, **upto)))
    return in_a_row, _ANSWERED_OUTAGES.value(connection, **upto)


def used_columns(run: Run, used: Used, now_ms: int) -> dict[str, Any]:
    """Return the columns of the run's use, as far as reported; unreported values keep what was known before."""
    windows = {name: use.model_dump(mode="json") for name, use in used.windows.items()}
    columns: dict[str, Any] = {
        "input_tokens": _plausible(used.tokens.input),
        "output_tokens": _plausible(used.tokens.output),
        "cost_usd": _plausible(used.cost_usd),
    }
    columns = {column: getattr(run, column) if value is None else value for column, value in columns.items()}
    return columns if not windows or windows == run.windows else {**columns, "windows": windows, "windows_ms": now_ms}


def _plausible(used: Number | None) -> Number | None:
    """The reported use; None if it is negative or more than any run can use, which would make every sum worthless."""
    return used if used is not None and 0 <= used <= MAX_USED else None
