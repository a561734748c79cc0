"""Where a real agent CLI is started as a run starts it: by its kind, under a shim, against a fake of its service."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.agents.event_reader import EventReader
from claudomator_py.domain.agent import AgentSpec, ModelChoice
from claudomator_py.domain.outcome import Outcome, Tokens
from claudomator_py.domain.run import LaunchRequest, RunLimits, Stream
from claudomator_py.domain.task import TaskSpec
from claudomator_py.hosts.local.output import read_output
from claudomator_py.ports import OutputReader
from tests.fakes.http_api import ScriptedApi
from tests.integration.hosts.rig import Ended, Rig, alive, ended
from tests.integration.hosts.rig import Shim as RunningShim
from tests.patience import wait_until
from tests.real_clis.clis import Cli, bare

RUN = "CLAUDOMATOR_RUN"
CONVERSATION = "6f1c3a52-0b7e-5d7e-9c55-2f0f6a4d9b11"
STREAMS: tuple[Stream, ...] = ("stdout", "stderr")
TIMEOUT_MS = 840_000
LIMITS = RunLimits(timeout_ms=TIMEOUT_MS, stall_ms=None, grace_ms=5_000, output_bytes=1 << 26)


def task(**fields: object) -> TaskSpec:
    """A task with the fields that matter."""
    return TaskSpec.model_validate({"name": "greet", "instructions": "Write a greeting.", **fields})


@dataclass
class Bench:
    """A git repository to work in, a home of its own, and runs of one CLI."""

    cli: Cli
    rig: Rig
    repository: Path
    home: Path
    extra_args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    model: ModelChoice | None = None
    stall_ms: int | None = None

    def run(self, spec: TaskSpec, *, resume: str | None = None, prior: Tokens | None = None) -> Outcome:
        """Run the task to its end."""
        running = self.start(spec, resume=resume, prior=prior)
        running.shim.wait()
        return running.outcome()

    def start(
        self,
        spec: TaskSpec,
        *,
        resume: str | None = None,
        prior: Tokens | None = None,
    ) -> "Running":
        """Start the task. resume: the conversation to go on with; prior: what it had used."""
        agent = AgentSpec(
            name=self.cli.kind,
            kind=self.cli.agent_kind,
            command=(str(self.cli.program), *self.cli.words),
            extra_args=self.extra_args,
            env={**bare(self.home), **self.env},
        )
        request = LaunchRequest(
            run_id="run",
            agent=agent,
            task=spec,
            prompt=spec.instructions,
            model=self.model,
            conversation_id=resume or CONVERSATION,
            resume=resume is not None,
            prior_tokens=prior or Tokens(),
        )
        launch = AGENT_KINDS[self.cli.agent_kind].launch(request)
        env = {**launch.env, **agent.env, **spec.env}
        path = self.rig.prepare(
            launch.argv,
            cwd=self.repository,
            env_names=(*env, RUN),
            stdin=launch.stdin,
            limits=replace(LIMITS, stall_ms=self.stall_ms, idle_share=launch.idle_share),
        )
        return Running(request, path, self.rig.shim(path, {**env, RUN: path.name}))


@dataclass(frozen=True)
class Running:
    """A run that has been started."""

    request: LaunchRequest
    path: Path
    shim: RunningShim

    def cancel(self) -> None:
        """Ask for its end, and wait for that."""
        (self.path / "cancel").touch()
        self.shim.wait()

    def ended(self) -> Ended:
        """Its end; it has to have come."""
        return ended(self.path)

    def outcome(self, **changes: Any) -> Outcome:
        """What its reader makes of it, with these changes to the record of its end."""
        record = replace(self.ended().exit, **changes)
        return self._fed().outcome(record, record.ended_ms)

    def conversation(self) -> str | None:
        """The conversation that it is in, by what it has said."""
        return self._fed().outcome(None, 0).conversation_id

    def until_stuck(self) -> None:
        """Wait until its reader sees that it waits out a limit."""

        def stuck() -> bool:
            reader = self._fed()
            assert isinstance(reader, EventReader)
            return reader.stuck_since is not None

        self.until(stuck)

    def _fed(self) -> OutputReader:
        reader = AGENT_KINDS[self.request.agent.kind].reader(self.request)
        for stream in STREAMS:
            position = 0
            while (chunk := read_output(self.path, stream, position)).data:
                reader.feed(stream, chunk.data)
                position = chunk.next
        return reader

    def until_made(self, place: Path) -> None:
        """Wait until a tool has made the file."""
        self.until(place.exists)

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until it holds, which it has to do before the run is over; the run's own time bounds the wait."""
        wait_until(lambda: condition() or self._is_over(), deadline_s=2 * TIMEOUT_MS / 1000)
        assert condition(), self.outcome()

    def _is_over(self) -> bool:
        return not alive(self.shim.process.pid)


def bench_for(cli: Cli, api: ScriptedApi, rig: Rig, root: Path, model: ModelChoice | None) -> Bench:
    """A bench under that folder, set up for the service, with its key."""
    home, place = root / "home", root / "repository"
    home.mkdir()
    cli.settle_in(home, api.origin)
    repository(place, home)
    env = {**cli.env(api.origin), **cli.key}
    return Bench(cli, rig, place, home, cli.extra_args(api.origin), env, model)


def repository(place: Path, home: Path) -> None:
    """A new git repository."""
    place.mkdir(exist_ok=True)
    subprocess.run(["git", "init", "-q", place], check=True, env=bare(home))
