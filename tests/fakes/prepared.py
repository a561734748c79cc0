"""The real service on a SQLite file of its own, where a test puts tasks and runs into any state without running them.

What is asked of it, and what it refuses, is the product's own code; only agents and their processes are missing.
"""

import json
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert, select, text, update

from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.errors import Problem
from claudomator_py.domain.health import CheckView
from claudomator_py.domain.inputs import InputRequest
from claudomator_py.domain.lifecycle import Failed, InputKind, NeedsInput, Queued, State, rank
from claudomator_py.domain.limits import Bucket, Hold
from claudomator_py.domain.notice import DeliveryFault, DeliveryState, Notice, NoticeKind
from claudomator_py.domain.outcome import Denied, Outcome, OutcomeStatus, Provenance, Reason
from claudomator_py.domain.run import CheckResult, ExitRecord, RunLimits, RunSpec, Stream
from claudomator_py.domain.task import AgentHint, TaskSpec
from claudomator_py.domain.units import SECOND_MS, format_instant
from claudomator_py.environment.workdirs import Workdirs
from claudomator_py.ports import Transcript
from claudomator_py.resources.access.service import Keyring
from claudomator_py.resources.agents import AgentView
from claudomator_py.resources.events import EventView
from claudomator_py.resources.overview import StatusView
from claudomator_py.resources.overview.service import Overview
from claudomator_py.resources.schedules.service import Schedules
from claudomator_py.resources.session import Access
from claudomator_py.resources.tasks import TaskView
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.scheduler.lanes import eligibility, hint
from claudomator_py.store import dependency_rows, hold_rows, pruning, run_rows, task_rows
from claudomator_py.store.database import StoreUnavailable
from claudomator_py.store.events import EventQuery, last_id, record
from claudomator_py.store.tables import EVENT, OUTBOX, RUN, TASK, Run, Task
from tests.databases import empty, open_migrated
from tests.fakes.agents import CLAUDE_MODELS, CODEX_MODELS, ScriptedKind
from tests.fakes.runs import Directory
from tests.fakes.world import START_MS, World

__all__ = ["PUBLISH", "START_MS", "PreparedService"]

PUBLISH = Denied(tool="Bash", input="npm publish", rule="Bash(npm publish)")
_MODELS = {"claude": CLAUDE_MODELS, "codex": CODEX_MODELS}


class PreparedService:
    """The service of a world, with rows as a test wants them. It is empty, and no agent is configured, at first.

    now_ms: the present, which each task that is added moves on by a second. No task may work in ``/forbidden``.
    """

    def __init__(self, now_ms: int = START_MS) -> None:
        folder = Path(tempfile.mkdtemp(prefix="claudomator-prepared-"))
        self.database = open_migrated(folder)
        self._end = weakref.finalize(self, _end, self.database.close, folder)
        self.world = World(self.database, agents=(), workdirs=Workdirs((), (Path("/forbidden"),)))
        self.world.now_ms = now_ms
        for kind in self.world.kinds:
            self.world.kinds[kind] = _ToldAsItIs(kind)
        self._tasks = 0
        self._problems: dict[str, str] = {}
        self.world.checks = self._checks
        self.ready = True
        self._act: Callable[[str], None] | None = None
        self._seen: set[str] = set()
        self._woken = threading.Event()
        self._follower: threading.Thread | None = None

    def close(self) -> None:
        """Let go of the file, and remove it."""
        self._end()

    def clear(self) -> None:
        """As at the beginning; who listens, listens on."""
        self._act = None
        self.database.write(empty)
        self.world.registry.replace((), {})
        for refusal in self.world.refusals.page():
            self.world.refusals.drop(refusal.path)
        host = self.world.host
        for kept in (host.directories, host.changed, host.patches, host.clusters, host.hosts_of_runs):
            kept.clear()
        self.world.messengers.clear()
        self.world.keyring.reload()
        self._problems.clear()
        self.world.now_ms, self._tasks, self.ready = START_MS, 0, True

    def _checks(self) -> list[CheckView]:
        if self.ready:
            return []
        text = "is locked by another process"
        return [CheckView(name="database", ok=False, detail=text, remedy="Stop the other process.")]

    # --- the service ------------------------------------------------------------------------------------------------

    @property
    def access(self) -> Access:
        """The service for each who asks."""
        return self.world.access

    @property
    def keyring(self) -> Keyring:
        """Who has which token besides the operator."""
        return self.world.keyring

    @property
    def service(self) -> Tasks:
        """What the operator may change."""
        return self.world.service

    @property
    def overview(self) -> Overview:
        """What the operator may know."""
        return self.world.overview

    @property
    def schedules(self) -> Schedules:
        """The operator's schedules."""
        return self.world.schedules

    def task(self, ref: str) -> TaskView:
        return self.service.get(ref)

    def agents(self) -> list[AgentView]:
        return self.world.roster.all()

    def status(self) -> StatusView:
        return self.overview.status()

    def task_ids(self) -> list[str]:
        """The ids of all tasks, oldest first."""
        query = select(TASK.c.id).order_by(TASK.c.created_ms, text("rowid"))
        return self.database.read(lambda connection: list(connection.execute(query).scalars()))

    def specs(self) -> list[TaskSpec]:
        """What all tasks are, oldest first."""

        def read(connection: Connection) -> list[TaskSpec]:
            return [task_rows.spec_of(connection, entry, task_rows.get(connection, entry).revision) for entry in ids]

        ids = self.task_ids()
        return self.database.read(read)

    def heard(self) -> list[tuple[str, str, dict[str, Any]]]:
        """What people have said to tasks that asked: name of the task, what happened and what was said."""
        kinds = ("answered", "approved", "rejected")
        query = select(TASK.c.name, EVENT.c.kind, EVENT.c.data).join_from(EVENT, TASK, TASK.c.id == EVENT.c.task_id)
        query = query.where(EVENT.c.kind.in_(kinds)).order_by(EVENT.c.id)
        return self.database.read(
            lambda connection: [(name, kind, data) for name, kind, data in connection.execute(query)]
        )

    # --- tasks and runs ---------------------------------------------------------------------------------------------

    def add(self, name: str, state: State | None = None, **content: object) -> str:
        """A task in that state (queued unless given); returns its id.

        source: ``api`` or ``file``. agent_name: the agent that it asks for. done_by: the specialist it was routed to.
        """
        source = str(content.pop("source", "api"))
        done_by = content.pop("done_by", None)
        if (agent := content.pop("agent_name", None)) is not None:
            content["agent"] = AgentHint.model_validate({"type": agent})
        spec = TaskSpec.model_validate({"name": name, "instructions": "Do it.", **content})
        self._tasks += 1
        self.world.now_ms += SECOND_MS
        now_ms, task_id = self.world.now_ms, f"c0ffee{self._tasks:02x}-0000-4000-8000-{self._tasks:012x}"
        state = state or Queued()
        task = Task(
            id=task_id,
            name=spec.name,
            **task_rows.columns_of(state),
            priority=int(spec.priority),
            rank_ms=rank(spec.priority, now_ms),
            eligibility=eligibility(spec),
            hint=hint(spec),
            dir_key=spec.working_dir or "",
            tags=list(spec.tags),
            source=source,
            file_path="tasks/it.yaml" if source == "file" else None,
            asks=self._asked(state, None, None),
            specialist=None if done_by is None else str(done_by),
            created_ms=now_ms,
            updated_ms=now_ms,
        )

        def write(connection: Connection) -> None:
            task_rows.add(connection, task, now_ms)
            task_rows.add_content(connection, task_id, 1, spec, task.dir_key, now_ms)
            dependency_rows.replace(connection, task_id, spec.prerequisites)

        self.database.write(write)
        return task_id

    def move(self, task_id: str, state: State, result_text: str | None = None) -> None:
        """The task is now in that state. result_text: what its last run said, or asks; a run is made if there is none.

        Nobody checks that the state can be reached; a live run ends with it, unless the task runs.
        """
        runs = self.database.read(lambda connection: run_rows.of_task(connection, task_id))
        last = runs[-1].id if runs else None
        if result_text is not None:
            last = last or self.add_run(task_id, outcome=_outcome_in(state, result_text))
        now_ms = self.world.now_ms

        def write(connection: Connection) -> None:
            current = task_rows.get(connection, task_id)
            if result_text is not None and last is not None:
                run = run_rows.find(connection, last)
                assert run is not None
                outcome = {**(run.outcome or _outcome_in(state, result_text).model_dump(mode="json"))}
                connection.execute(update(RUN).where(RUN.c.id == last).values(outcome={**outcome, "text": result_text}))
            asks = self._asked(state, last, result_text)
            columns = task_rows.columns_of(state)
            task_rows.change(connection, current, now_ms, **columns, asks=asks)
            fields = {
                "until" if key == "until_ms" else key: value for key, value in columns.items() if value is not None
            }
            record(connection, now_ms, "state", task_id=task_id, data={"generation": current.generation, **fields})

        self.database.write(write)

    def _asked(
        self, state: State, run_id: str | None, text: str | None, agent: str = "claude"
    ) -> dict[str, Any] | None:
        if not isinstance(state, NeedsInput):
            return None
        asked = InputRequest(
            kind=state.kind,
            text=text or f"A person is needed: {state.kind.value}.",
            since_ms=self.world.now_ms,
            agent=None if run_id is None else agent,
            run_id=run_id,
            tools=(PUBLISH,) if state.kind is InputKind.APPROVAL and run_id is not None else (),
        )
        return asked.model_dump(mode="json")

    def add_run(
        self,
        task_id: str,
        agent: str = "claude",
        *,
        outcome: Outcome | None = None,
        stdout: bytes = b"",
        check: CheckResult | None = None,
    ) -> str:
        """A further run of the task, ended if it has an outcome; returns its id. A task that needs input asks by it."""
        now_ms = self.world.now_ms

        def write(connection: Connection) -> Run:
            task = task_rows.get(connection, task_id)
            number = len(run_rows.of_task(connection, task_id)) + 1
            run_id, conversation_id = run_rows.identity(task_id, task.generation, number, number)
            run = Run(
                id=run_id,
                task_id=task_id,
                generation=task.generation,
                attempt=number,
                seq=number,
                revision=task.revision,
                agent=agent,
                kind=agent if agent in self.world.kinds else "claude",
                model="sonnet",
                tier="balanced",
                dir_key=task.dir_key,
                conversation_id=conversation_id,
                thread=task.thread or task_id,
                state="running",
                live=True,
                check_seq=int(check is not None),
                check_result=None if check is None else check.model_dump(mode="json"),
                started_ms=task.created_ms + 2 * SECOND_MS,
            )
            run_rows.add(connection, run)
            changes: dict[str, Any] = {"last_run_id": run_id, "seq": number, "attempt": number}
            state = task_rows.state_of(task)
            if isinstance(state, NeedsInput):
                changes["asks"] = self._asked(state, run_id, task.asks["text"] if task.asks else None, agent)
            # Its version stays: nobody looked at the task in between.
            connection.execute(update(TASK).where(TASK.c.id == task_id).values(**changes))
            if outcome is not None:
                _ended(connection, run, outcome)
            return run

        run = self.database.write(write)
        order = RunSpec(run.id, (("true",),), None, (), (), "", RunLimits(None, None, 0, 0))
        ended = None if outcome is None else ExitRecord(0, None, now_ms, now_ms)
        for step in (0, 1) if check is not None else (0,):
            self.world.host.directories[run.id, step] = Directory(order, shim=ended is None, started=True, exit=ended)
        self.write(run.id, stdout)
        return run.id

    def end_run(self, run_id: str, outcome: Outcome) -> None:
        """The run ends."""

        def write(connection: Connection) -> None:
            run = run_rows.find(connection, run_id)
            assert run is not None
            _ended(connection, run, outcome)

        self.database.write(write)

    def settle(self) -> None:
        """Let the daemon do what it was asked for: runs that are to end have ended after this."""
        for _ in range(2):
            self.world.tick()

    def write(self, run_id: str, data: bytes, stream: Stream = "stdout", *, check: bool = False) -> None:
        """The run writes, or its check."""
        self.world.host.write(run_id, data, stream, step=int(check))

    def happen(self, kind: str, task_id: str | None = None, *, times: int = 1, **data: object) -> EventView:
        """An event, or so many; everybody who listens is told. Returns the last of them."""

        def write(connection: Connection) -> int:
            for _ in range(times):
                record(connection, self.world.now_ms, kind, task_id=task_id, data=data)
            return last_id(connection)

        number = self.database.write(write)
        (event,) = self.world.events.events(EventQuery(), number - 1, 1).items
        return event

    # --- agents, and what else there is -----------------------------------------------------------------------------

    def add_agent(self, name: str, *, problem: str | None = None, **spec: Any) -> None:
        """A configured agent, in place of one of that name. problem: why it cannot run. spec: fields of AgentSpec."""
        kind = spec.pop("kind", name if name in self.world.kinds else "claude")
        fields = {"max_concurrent": 2, "models": _MODELS.get(kind, CLAUDE_MODELS), **spec}
        agent = AgentSpec(name=name, kind=kind, **fields)
        if problem is not None:
            self.world.kinds[kind].problems[name] = problem
        else:
            self.world.kinds[kind].problems.pop(name, None)
        registry = self.world.registry
        agents = [known for known in registry.agents if known.name != name]
        registry.replace((*agents, agent), registry.look((*agents, agent)))

    def limit(
        self,
        agent: str,
        until_ms: int | None = None,
        *,
        reason: Reason | None = Reason.RATE_LIMITED,
        source: str = "429",
        **hold: Any,
    ) -> None:
        """A run of the agent has met a limit of its account. hold: further fields of ``domain.limits.Hold``.

        family: the models that it is for, if not for all.
        """
        spec = self.world.registry.find(agent)
        assert spec is not None
        bucket = Bucket(kind=spec.kind, account=spec.quota_account, family=hold.pop("family", None))
        provenance = hold.pop("provenance", Provenance.REPORTED)
        result = Hold(bucket, reason, until_ms, provenance, source, self.world.now_ms, **hold)
        self.database.write(lambda connection: hold_rows.add(connection, result, result.run_id))

    def refuse_file(self, path: str, *problems: Problem) -> None:
        """A file of the inbox was refused."""
        self.world.refusals.put(path, problems)

    def add_delivery(
        self, target: str, state: DeliveryState, error: str | None = None, title: str | None = None
    ) -> None:
        """A notice to the target, in that state."""

        def write(connection: Connection) -> None:
            number = len(connection.execute(select(OUTBOX.c.id)).all()) + 1
            at = format_instant(self.world.now_ms)
            words = title or f"task-{number}: failed (lost)"
            notice = Notice(id=f"event-{number}", kind=NoticeKind.FAILED, at=at, title=words)
            row = {"event_id": number, "state": state.value, "attempts": 1, "error": error}
            times = {"next_ms": self.world.now_ms, "created_ms": self.world.now_ms}
            connection.execute(
                insert(OUTBOX).values(target=target, notice=json.loads(notice.model_dump_json()), **row, **times)
            )

        self.database.write(write)

    def deliveries(self) -> list[str]:
        """The states of all notices, oldest first."""
        query = select(OUTBOX.c.state).order_by(OUTBOX.c.id)
        return self.database.read(lambda connection: list(connection.execute(query).scalars()))

    def add_target(self, target: str, error: str | None = None) -> None:
        """Somebody who can be told. error: why nothing gets there."""
        self.world.messengers[target] = _Target(error)

    def forget_events(self, upto: int) -> None:
        """Events up to this one are no longer kept."""

        def write(connection: Connection) -> None:
            gone = list(connection.execute(select(EVENT.c.id).where(EVENT.c.id <= upto)).scalars())
            pruning.events(connection, gone)

        self.database.write(write)

    def when_accepted(self, act: Callable[[str], None]) -> None:
        """Call act, on a thread of its own, with the id of each task that is accepted from now on."""
        self._act = act
        self._seen = set(self.task_ids())
        if self._follower is None:
            self._follower = threading.Thread(target=self._follow, name="follow", daemon=True)
            self.database.on_commit(self._woken.set)
            self._follower.start()

    def _follow(self) -> None:
        while self._woken.wait():
            self._woken.clear()
            with suppress(StoreUnavailable):  # the test is over
                for task_id in self.task_ids():
                    if (act := self._act) is not None and task_id not in self._seen:
                        self._seen.add(task_id)
                        act(task_id)


class _ToldAsItIs(ScriptedKind):
    """Its output is told as that of the real kind is."""

    def transcript(self, stream: Stream, offset: int = 0) -> Transcript:
        return AGENT_KINDS[self.kind].transcript(stream, offset)


class _Target:
    """Implements ``ports.Messenger``."""

    def __init__(self, error: str | None) -> None:
        self._error = error

    def send(self, notice: Notice) -> None:
        if self._error is not None:
            raise DeliveryFault(self._error)

    def close(self) -> None:
        pass


def _outcome_in(state: State, text: str) -> Outcome:
    """How a run may have ended that left its task in that state."""
    match state:
        case Failed(reason):
            return Outcome(status=OutcomeStatus.FAILED, reason=reason, text=text)
        case NeedsInput():
            return Outcome(status=OutcomeStatus.NEEDS_INPUT, text=text)
        case _:
            return Outcome(status=OutcomeStatus.SUCCEEDED, text=text)


def _ended(connection: Connection, run: Run, outcome: Outcome) -> None:
    run_rows.change(
        connection,
        run,
        state="ended",
        live=False,
        ended_ms=run.started_ms + 60 * SECOND_MS,
        exit_code=0,
        outcome=outcome.model_dump(mode="json"),
        conversation_id=outcome.conversation_id,
        warned_until_ms=outcome.near_limit_until,
        ended_as=outcome.status.value,
        reason=outcome.reason,
        input_tokens=outcome.tokens.input,
        output_tokens=outcome.tokens.output,
        cost_usd=outcome.cost_usd,
        windows={name: use.model_dump(mode="json") for name, use in outcome.windows.items()} or None,
        windows_ms=run.started_ms + 60 * SECOND_MS if outcome.windows else None,
    )


def _end(close: Callable[[], None], folder: Path) -> None:
    close()
    shutil.rmtree(folder, ignore_errors=True)
