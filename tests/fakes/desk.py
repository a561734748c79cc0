"""A complete desk in memory: the same answers and refusals as the real one, without agents behind it."""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self, get_args

from claudomator_py.domain.agent import ModelChoice, Tier
from claudomator_py.domain.errors import (
    Ambiguous,
    BadCursor,
    Conflict,
    Invalid,
    NotFound,
    Problem,
)
from claudomator_py.domain.lifecycle import (
    STATE_NAMES,
    Cancelled,
    Completed,
    Failed,
    NeedsInput,
    Queued,
    Running,
    State,
    Waiting,
    WaitReason,
    available_actions,
)
from claudomator_py.domain.outcome import Provenance, Reason
from claudomator_py.domain.principal import Principal, RequestKey
from claudomator_py.domain.retention import CleanupItemView, CleanupRequest, CleanupView
from claudomator_py.domain.run import Stream
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import format_instant
from claudomator_py.domain.views import (
    AgentView,
    AnswerRequest,
    ApproveRequest,
    BackupView,
    CheckView,
    DrainView,
    FileProblemPage,
    FileProblemView,
    HoldRequest,
    LogChunk,
    OutcomeView,
    Page,
    ReadinessView,
    RejectRequest,
    ReleaseRequest,
    RestartRequest,
    RunCheckView,
    RunView,
    StatusView,
    TaskFilter,
    TaskView,
    WhyView,
)
from claudomator_py.domain.views.base import StateName
from claudomator_py.service.desk import Versions, require_version
from tests.fakes.jobs import Job, actions_of, explained, matches, state_of, view_of
from tests.fakes.live import FakeLive
from tests.fakes.notices import FakeNotices
from tests.fakes.repeats import FakeRepeats
from tests.fakes.schedules import FakeSchedules
from tests.fakes.tokens import FakeTokens

START_MS = 1_790_000_000_000  # 2026-09-21T14:13:20Z
_ID_PREFIX = 4


def _nothing(_task_id: str) -> None:
    pass


@dataclass(slots=True)
class FakeDesk:
    """Answers from memory. Tests put tasks in any state with ``add`` and change them with ``move``."""

    jobs: dict[str, Job] = field(default_factory=dict)
    agent_views: dict[str, AgentView] = field(default_factory=dict)
    file_problems: list[FileProblemView] = field(default_factory=list)
    logs: dict[tuple[str, Stream], bytes] = field(default_factory=dict)
    ready: bool = True
    drained: DrainView | None = None
    now_ms: int = START_MS
    after_submit: Callable[[str], None] = _nothing
    said: list[tuple[str, str, str]] = field(default_factory=list)
    live: FakeLive = field(init=False)
    schedules: FakeSchedules = field(init=False)
    notices: FakeNotices = field(default_factory=FakeNotices)
    tokens: FakeTokens = field(default_factory=FakeTokens)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    repeats: FakeRepeats = field(default_factory=FakeRepeats)

    def __post_init__(self) -> None:
        self.schedules = FakeSchedules(self.submit, self.repeats)
        self.live = FakeLive(lambda ref: self._find(ref).id, self.run, self.logs)

    def as_(self, _by: Principal) -> Self:
        """See ``Desks``: it is the same for all."""
        return self

    # --- what a test arranges ---------------------------------------------------------------------------------------

    def clear(self) -> None:
        """As at the beginning."""
        with self._lock:
            self.jobs.clear()
            self.agent_views.clear()
            self.file_problems.clear()
            self.logs.clear()
            self.live.clear()
            self.notices = FakeNotices()
            self.tokens.given.clear()
            self.schedules.known.clear()
            self.repeats.clear()
            self.said.clear()
            self.drained = None
            self.ready, self.now_ms, self.after_submit = True, START_MS, _nothing

    def add(self, name: str, state: State | None = None, **content: object) -> str:
        """A task in that state (queued unless given); returns its id."""
        source = str(content.pop("source", "api"))
        agent = content.pop("agent_name", None)
        spec = TaskSpec.model_validate({"name": name, "instructions": "Do it.", **content})
        with self._lock:
            self.now_ms += 1_000
            number = len(self.jobs) + 1
            job = Job(f"c0ffee{number:010x}", spec, state or Queued(), self.now_ms, source=source)
            self.jobs[job.id] = replace(job, agent=str(agent) if agent else None)
        self._tell(job.id)
        return job.id

    def move(self, task_id: str, state: State, result_text: str | None = None) -> None:
        """The task is now in that state."""
        with self._lock:
            job = self.jobs[task_id]
            text = result_text if result_text is not None else job.result_text
            self.jobs[task_id] = replace(job, state=state, version=job.version + 1, result_text=text)
        self._tell(task_id)

    def add_run(
        self,
        task_id: str,
        agent: str = "claude",
        *,
        outcome: OutcomeView | None = None,
        stdout: bytes = b"",
        check: RunCheckView | None = None,
    ) -> str:
        """A further run of the task, ended if it has an outcome; returns its id."""
        with self._lock:
            job = self.jobs[task_id]
            run = RunView(
                id=f"run-{task_id}-{len(job.runs) + 1}",
                task_id=task_id,
                generation=job.generation,
                attempt=len(job.runs) + 1,
                agent=agent,
                model="sonnet",
                tier=Tier.BALANCED,
                state="ended" if outcome else "running",
                started_at=format_instant(job.created_ms + 2_000),
                ended_at=format_instant(job.created_ms + 62_000) if outcome else None,
                exit_code=0 if outcome else None,
                outcome=outcome,
                check=check,
            )
            self.jobs[task_id] = replace(job, runs=(*job.runs, run), agent=agent)
            self.logs[run.id, "stdout"] = stdout
            return run.id

    def end_run(self, run_id: str, outcome: OutcomeView) -> None:
        """The run ends."""
        with self._lock:
            job = self._job_of(run_id)
            runs = tuple(
                run.model_copy(update={"state": "ended", "outcome": outcome, "exit_code": 0})
                if run.id == run_id
                else run
                for run in job.runs
            )
            self.jobs[job.id] = replace(job, runs=runs)
        self._tell(job.id)

    def write(self, run_id: str, data: bytes, stream: Stream = "stdout", *, check: bool = False) -> None:
        """The run writes, or its check."""
        written_by = f"{run_id}/check" if check else run_id
        with self._lock:
            self.logs[written_by, stream] = self.logs.get((written_by, stream), b"") + data

    def add_agent(self, name: str, **changes: object) -> None:
        """A configured agent."""
        view = AgentView(
            name=name,
            kind=name,
            program=f"/usr/bin/{name}",
            version="1.0.0",
            installed=True,
            max_concurrent=2,
            models={Tier.FAST: ModelChoice(model="small")},
            default_tier=Tier.BALANCED,
        )
        self.agent_views[name] = view.model_copy(update=changes)

    # --- the desk ---------------------------------------------------------------------------------------------------

    def submit(self, spec: TaskSpec, *, key: RequestKey | None = None) -> TaskView:
        return self.repeats.once(key, lambda: self._submit(spec))

    def _submit(self, spec: TaskSpec) -> TaskView:
        if spec.working_dir == "/forbidden":
            problem = Problem(field="working_dir", message="lies outside the roots", remedy="choose one under ~/src")
            raise Invalid("working_dir lies outside the roots.", remedy="Choose one under ~/src.", problems=[problem])
        with self._lock:
            state = Waiting(WaitReason.DEPENDENCY) if spec.depends_on else Queued()
            task_id = self.add(spec.name, state)
            self.jobs[task_id] = replace(self.jobs[task_id], spec=spec)
            accepted = self.task(task_id)
        self.after_submit(task_id)
        return accepted

    def tasks(self, wanted: TaskFilter, cursor: str | None, limit: int) -> Page[TaskView]:
        with self._lock:
            matching = [job for job in self._newest_first() if matches(job, wanted)]
        if cursor is not None:
            if not re.fullmatch(r"[0-9]+", cursor):
                raise BadCursor(f"{cursor!r} is not a cursor.", remedy="Begin without one.")
            matching = [job for job in matching if job.created_ms < int(cursor)]
        part = matching[:limit]
        more = str(part[-1].created_ms) if len(matching) > limit else None
        return Page[TaskView](items=tuple(view_of(job, whole=False) for job in part), next_cursor=more)

    def task(self, ref: str) -> TaskView:
        with self._lock:
            return view_of(self._find(ref))

    def cancel(self, ref: str, *, if_version: Versions = None, key: RequestKey | None = None) -> TaskView:
        return self.repeats.once(key, lambda: self._cancel(ref, if_version))

    def _cancel(self, ref: str, if_version: Versions = None) -> TaskView:
        with self._lock:
            job = self._find(ref, if_version)
            if "cancel" not in available_actions(job.state):
                raise Conflict(f"{job.spec.name} has ended already.", remedy="Restart it to run it again.")
            self.move(job.id, Cancelled())
            return view_of(self.jobs[job.id])

    def restart(
        self, ref: str, request: RestartRequest, *, if_version: Versions = None, key: RequestKey | None = None
    ) -> TaskView:
        return self.repeats.once(key, lambda: self._restart(ref, request, if_version))

    def _restart(self, ref: str, request: RestartRequest, if_version: Versions = None) -> TaskView:
        with self._lock:
            job = self._find(ref, if_version)
            if request.specialist is not None:
                raise Invalid("specialist is not supported yet.", remedy="Leave it out.")
            if request.resume and not job.runs:
                raise Conflict(f"No run of {job.spec.name} has begun.", remedy="Restart it without `resume`.")
            if isinstance(job.state, Queued):
                raise Conflict(f"{job.spec.name} is queued: there is nothing to do.", remedy="Wait for it.")
            if isinstance(job.state, Running) and not request.force:
                raise Conflict(f"{job.spec.name} is running.", remedy="Use force to cancel that run first.")
            self.jobs[job.id] = replace(job, generation=job.generation + 1, agent=request.agent or job.agent)
            self.move(job.id, Queued())
            return view_of(self.jobs[job.id])

    def answer(
        self, ref: str, request: AnswerRequest, *, if_version: Versions = None, key: RequestKey | None = None
    ) -> TaskView:
        return self.repeats.once(key, lambda: self._heard(ref, "answer", request.text, Queued(), if_version))

    def approve(
        self, ref: str, request: ApproveRequest, *, if_version: Versions = None, key: RequestKey | None = None
    ) -> TaskView:
        said = " ".join(request.tools)
        return self.repeats.once(key, lambda: self._heard(ref, "approve", said, Queued(), if_version))

    def reject(
        self, ref: str, request: RejectRequest, *, if_version: Versions = None, key: RequestKey | None = None
    ) -> TaskView:
        said, state = request.reason or "", Failed(Reason.REJECTED)
        return self.repeats.once(key, lambda: self._heard(ref, "reject", said, state, if_version))

    def _heard(self, ref: str, what: str, said: str, state: State, if_version: Versions) -> TaskView:
        with self._lock:
            job = self._find(ref, if_version)
            if what not in actions_of(job):
                raise Conflict(f"{job.spec.name} asks for no {what}.", remedy="See what needs you.")
            self.said.append((job.spec.name, what, said))
            self.move(job.id, state)
            return view_of(self.jobs[job.id])

    def runs(self, ref: str) -> list[RunView]:
        with self._lock:
            return list(self._find(ref).runs)

    def run(self, run_id: str) -> RunView:
        with self._lock:
            return next(run for run in self._job_of(run_id).runs if run.id == run_id)

    def log(self, run_id: str, stream: Stream, offset: int, limit: int, *, check: bool = False) -> LogChunk:
        with self._lock:
            run = self.run(run_id)
            written = self.logs.get((f"{run_id}/check" if check else run_id, stream), b"")
        data = written[offset : offset + limit]
        following = offset + len(data)
        return LogChunk(data, offset, following, ended=run.state == "ended" and following >= len(written))

    def why(self, ref: str) -> WhyView:
        with self._lock:
            return explained(self._find(ref), self.now_ms)

    def agents(self) -> list[AgentView]:
        with self._lock:
            return list(self.agent_views.values())

    def hold(self, agent: str, request: HoldRequest, *, key: RequestKey | None = None) -> AgentView:
        return self.repeats.once(key, lambda: self._hold(agent, request))

    def _hold(self, agent: str, request: HoldRequest) -> AgentView:
        self._release(agent)
        until = None if request.until is None else format_instant(round(request.until.timestamp() * 1000))
        why = f"by hand: {request.reason}" if request.reason else "by hand"
        held = {"limited": True, "limited_until": until, "hold_reason": why, "provenance": Provenance.OPERATOR}
        with self._lock:
            self.agent_views[agent] = self.agent_views[agent].model_copy(update=held)
            return self.agent_views[agent]

    def release(self, agent: str, request: ReleaseRequest | None = None, *, key: RequestKey | None = None) -> AgentView:
        return self.repeats.once(key, lambda: self._release(agent, request.family if request else None))

    def _release(self, agent: str, family: str | None = None) -> AgentView:
        with self._lock:
            if agent not in self.agent_views:
                known = ", ".join(self.agent_views) or "none"
                raise NotFound(f"There is no agent {agent!r}.", remedy=f"Choose one of: {known}.")
            left = tuple(hold for hold in self.agent_views[agent].holds if family is not None and hold.family != family)
            free = {"limited": False, "limited_until": None, "hold_reason": None, "provenance": None}
            changed = {"holds": left} if family is not None else {**free, "holds": left}
            self.agent_views[agent] = self.agent_views[agent].model_copy(update=changed)
            return self.agent_views[agent]

    def drain(self, reason: str | None) -> DrainView:
        with self._lock:
            self.drained = self.drained or DrainView(
                drained=True, since=format_instant(self.now_ms), reason=reason, running=0
            )
            return self.drain_state()

    def undrain(self) -> DrainView:
        with self._lock:
            self.drained = None
            return self.drain_state()

    def drain_state(self) -> DrainView:
        with self._lock:
            running = sum(isinstance(job.state, Running) for job in self.jobs.values())
            return (self.drained or DrainView(drained=False, running=0)).model_copy(update={"running": running})

    def backup(self) -> BackupView:
        with self._lock:
            self.now_ms += 1_000
            return BackupView(path="/state/backups/it.db", bytes=4096, created_at=format_instant(self.now_ms))

    def clean_up(self, request: CleanupRequest) -> CleanupView:
        with self._lock:
            ended = [job for job in self._newest_first() if job.runs and isinstance(job.state, Completed)]
            items = [
                CleanupItemView(
                    kind="run",
                    path=f"/state/runs/{job.runs[-1].id}",
                    task_id=job.id,
                    task=job.spec.name,
                    bytes=4096,
                    removed=True,
                    why="its task has ended",
                )
                for job in ended
            ]
            return CleanupView(dry_run=request.dry_run, items=tuple(items), freed_bytes=4096 * len(items))

    def status(self) -> StatusView:
        with self._lock:
            jobs = self._newest_first()

            def those(*kinds: type[State]) -> tuple[TaskView, ...]:
                return tuple(view_of(job, whole=False) for job in jobs if isinstance(job.state, kinds))

            counts: dict[StateName, int] = dict.fromkeys(get_args(StateName), 0)
            for job in jobs:
                counts[state_of(job)] += 1
            return StatusView(
                needs_you=those(NeedsInput),
                problems=those(Failed),
                inbox=tuple(self.file_problems),
                running=those(Running),
                queued=those(Waiting, Queued)[::-1],
                recent=those(Completed, Cancelled),
                agents=tuple(self.agent_views.values()),
                schedules=tuple(self.schedules.all()),
                counts=counts,
                trouble=tuple(check for check in self.readiness().checks if not check.ok),
            )

    def inbox_problems(self, cursor: str | None, limit: int) -> FileProblemPage:
        with self._lock:
            return FileProblemPage(items=tuple(self.file_problems[:limit]), total=len(self.file_problems))

    def readiness(self) -> ReadinessView:
        check = CheckView(
            name="database",
            ok=self.ready,
            detail="answers" if self.ready else "is locked by another process",
            remedy=None if self.ready else "Stop the other process.",
        )
        return ReadinessView(ready=self.ready, checks=(check,))

    def _tell(self, task_id: str) -> None:
        state = STATE_NAMES[type(self.jobs[task_id].state)]
        self.live.happen("state", self.now_ms, task_id, state=state)

    # --- inside -----------------------------------------------------------------------------------------------------

    def _newest_first(self) -> list[Job]:
        return sorted(self.jobs.values(), key=lambda job: job.created_ms, reverse=True)

    def _find(self, ref: str, if_version: Versions = None) -> Job:
        job = self.jobs.get(ref) or self._by_prefix(ref) or self._by_name(ref)
        if job is None:
            raise NotFound(f"There is no task {ref!r}.", remedy="See `claudomator status` for the tasks there are.")
        require_version(job.spec.name, job.version, if_version)
        return job

    def _by_prefix(self, ref: str) -> Job | None:
        found = [job for job in self.jobs.values() if len(ref) >= _ID_PREFIX and job.id.startswith(ref)]
        if len(found) > 1:
            raise Ambiguous(f"{len(found)} tasks have an id that begins with {ref!r}.", remedy="Write more of the id.")
        return found[0] if found else None

    def _by_name(self, ref: str) -> Job | None:
        return next((job for job in self._newest_first() if job.spec.name == ref), None)

    def _job_of(self, run_id: str) -> Job:
        for job in self.jobs.values():
            if any(run.id == run_id for run in job.runs):
                return job
        raise NotFound(f"There is no run {run_id!r}.", remedy="See the runs of its task.")
