"""Tasks of the desk in memory: what they are, and how they are told."""

from dataclasses import dataclass

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.lifecycle import (
    STATE_NAMES,
    Failed,
    InputKind,
    NeedsInput,
    Queued,
    Running,
    State,
    Waiting,
    available_actions,
)
from claudomator_py.domain.outcome import REASON_POLICIES, Denied, Tokens
from claudomator_py.domain.task import Priority, TaskSpec
from claudomator_py.domain.units import MINUTE_MS, format_instant
from claudomator_py.domain.views import (
    Action,
    CandidateView,
    ClassificationView,
    DecisionView,
    DependencyView,
    EventView,
    InputView,
    PriorityLabel,
    RunView,
    TaskFilter,
    TaskView,
    WhyView,
)
from claudomator_py.domain.views.base import StateName
from claudomator_py.schema.taskfile import to_document

_ACTIONS: dict[str, Action] = {
    "cancel": "cancel",
    "restart": "restart",
    "restart_force": "restart_force",
    "answer": "answer",
    "approve": "approve",
    "reject": "reject",
}
PUBLISH = Denied(tool="Bash", input="npm publish", rule="Bash(npm publish)")
_NAMES: dict[str, StateName] = {
    "WAITING": "WAITING",
    "QUEUED": "QUEUED",
    "RUNNING": "RUNNING",
    "NEEDS_INPUT": "NEEDS_INPUT",
    "COMPLETED": "COMPLETED",
    "FAILED": "FAILED",
    "CANCELLED": "CANCELLED",
}
_PRIORITIES: dict[Priority, PriorityLabel] = {
    Priority.LOW: "low",
    Priority.NORMAL: "normal",
    Priority.HIGH: "high",
    Priority.URGENT: "urgent",
}


@dataclass(frozen=True, slots=True)
class Job:
    """A task of the fake: its content, its state, and what its runs left behind."""

    id: str
    spec: TaskSpec
    state: State
    created_ms: int
    version: int = 1
    generation: int = 1
    source: str = "api"
    agent: str | None = None
    runs: tuple[RunView, ...] = ()
    result_text: str | None = None


def view_of(job: Job, *, whole: bool = True) -> TaskView:
    """The shape of a task."""
    reason, reason_text, until = _reason(job.state)
    asks = _asks(job)
    return TaskView(
        id=job.id,
        name=job.spec.name,
        version=job.version,
        state=state_of(job),
        phase=job.state.phase if isinstance(job.state, Running) else None,
        reason=reason,
        reason_text=reason_text if asks is None else asks.text,
        reason_short=reason_text if asks is None else asks.text,
        waiting_until=None if until is None else format_instant(until),
        priority=_PRIORITIES[job.spec.priority],
        tags=job.spec.tags,
        working_dir=job.spec.working_dir,
        agent=job.agent or job.spec.agent.type,
        tier=job.spec.agent.tier,
        model=job.runs[-1].model if job.runs else None,
        attempts=len(job.runs),
        runs=len(job.runs),
        result_text=job.result_text,
        tokens=Tokens(input=1_000, output=200) if job.runs else Tokens(),
        cost_usd=0.25 if job.runs else None,
        created_at=format_instant(job.created_ms),
        updated_at=format_instant(job.created_ms + job.version * 1_000),
        started_at=job.runs[-1].started_at if job.runs else None,
        asks=asks,
        available_actions=tuple(_ACTIONS[action] for action in actions_of(job)),
        generation=job.generation,
        depends_on=tuple(DependencyView(name=name) for name in job.spec.depends_on),
        source=job.source,
        file_path="tasks/it.yaml" if job.source == "file" else None,
        spec=to_document(job.spec) if whole else None,
    )


def state_of(job: Job) -> StateName:
    """Its state by name."""
    return _NAMES[STATE_NAMES[type(job.state)]]


def explained(job: Job, now_ms: int) -> WhyView:
    """Why it is where it is, as a daemon might say it."""
    events = (
        EventView(id=1, at=format_instant(job.created_ms), task_id=job.id, kind="task_accepted", data={"by": "api"}),
    )
    if not job.runs:
        return WhyView(task=view_of(job), sentences=(f"{job.spec.name} waits for a free slot.",), events=events)
    candidates = (
        CandidateView(
            agent="claude",
            active=1,
            max_concurrent=2,
            limited=True,
            limited_until=format_instant(now_ms + 47 * MINUTE_MS),
            eligible=False,
            rejected_because="limited",
        ),
        CandidateView(agent="codex", active=0, max_concurrent=2, eligible=True),
    )
    decision = DecisionView(
        route="default",
        agent=job.runs[-1].agent,
        tier=Tier.BALANCED,
        model="sonnet",
        reason="least active",
        classification=ClassificationView(source="default"),
        candidates=candidates,
        run_id=job.runs[-1].id,
        at=job.runs[-1].started_at,
    )
    sentences = (
        f"{job.spec.name} ran on {job.runs[-1].agent} (attempt {len(job.runs)} of 3).",
        "claude is limited until 14:20 (reported); codex has 0 of 2 slots in use, picked: least active.",
        "Tier balanced: default of the agent.",
    )
    return WhyView(task=view_of(job), sentences=sentences, decisions=(decision,), events=events)


def actions_of(job: Job) -> tuple[str, ...]:
    """What an operator can do with it."""
    return available_actions(job.state, begun=bool(job.runs))


def _asks(job: Job) -> InputView | None:
    if not isinstance(job.state, NeedsInput):
        return None
    run = job.runs[-1] if job.runs else None
    tools = (PUBLISH,) if job.state.kind is InputKind.APPROVAL and run is not None else ()
    return InputView(
        kind=job.state.kind,
        text=job.result_text or _reason(job.state)[1] or "",
        since=format_instant(job.created_ms),
        agent=None if run is None else run.agent,
        run_id=None if run is None else run.id,
        tools=tools,
    )


def _reason(state: State) -> tuple[str | None, str | None, int | None]:
    match state:
        case Waiting(reason, until):
            return reason.value, f"Waits for: {reason.value}.", until
        case Queued(reason, until):
            return reason.value, None, until
        case NeedsInput(kind):
            return kind.value, f"A person is needed: {kind.value}.", None
        case Failed(reason):
            return reason.value, REASON_POLICIES[reason].meaning, None
        case _:
            return None, None, None


def matches(job: Job, wanted: TaskFilter) -> bool:
    """Whether the filter finds it."""
    return (
        wanted.state in (None, STATE_NAMES[type(job.state)])
        and wanted.name in (None, job.spec.name)
        and (wanted.text is None or wanted.text.lower() in job.spec.name.lower())
        and (wanted.tag is None or wanted.tag in job.spec.tags)
        and wanted.agent in (None, job.agent)
        and wanted.source in (None, job.source)
    )
