"""A kind of agent whose program is a test: what it writes is the outcome itself, as JSON."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.domain.agent import AgentHealth, AgentSpec, ModelChoice, Tier
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason
from claudomator_py.domain.report import Stage, Used
from claudomator_py.domain.run import Conversations, ExitRecord, Launch, LaunchRequest, Stream
from claudomator_py.domain.task import TaskSpec
from claudomator_py.ports import Transcript

CLAUDE_MODELS = {tier: ModelChoice(model=name) for tier, name in zip(Tier, ("haiku", "sonnet", "opus"), strict=True)}
CODEX_MODELS = {
    Tier.FAST: ModelChoice(model="luna", effort="low"),
    Tier.BALANCED: ModelChoice(model="sol"),
    Tier.POWERFUL: ModelChoice(model="sol", effort="high"),
}
CLAUDE = AgentSpec(name="claude", kind="claude", models=CLAUDE_MODELS)
CODEX = AgentSpec(name="codex", kind="codex", models=CODEX_MODELS)
LINT = AgentSpec(name="lint", kind="command", auto_select=False, reads_task=False)


class OutcomeReader:
    """Takes the last line of standard output for the outcome, if it is whole.

    A number on standard error is the epoch millisecond until which the program sleeps in a limit.
    """

    stuck_since: int | None = None

    @property
    def answered(self) -> bool:
        """A line that begins with a hash is what its model says."""
        return self._data.startswith(b"#")

    def __init__(self, poison: bytes) -> None:
        self._data = b""
        self._sleeps = b""
        self._poison = poison

    @property
    def stage(self) -> Stage:
        """It is done once the last whole line is the outcome; a line ``#background`` opens a background task."""
        lines = [line for line in self._data.splitlines(keepends=True) if line.endswith(b"\n")]
        if not lines or lines[-1].startswith(b"#"):
            return Stage.WORKING
        return Stage.BACKGROUND if b"#background\n" in lines else Stage.DONE

    @property
    def used(self) -> Used:
        """A line that begins with ``#used `` says so, as JSON of an outcome's fields."""
        texts = [line for line in self._data.splitlines() if line.startswith(b"#used ")]
        if not texts:
            return Used()
        fields = json.loads(texts[-1].removeprefix(b"#used "))
        return Used.by(Outcome(status=OutcomeStatus.SUCCEEDED, **fields))

    @property
    def stuck_until(self) -> int | None:
        return int(self._sleeps) if self._sleeps else None

    def feed(self, stream: Stream, data: bytes) -> None:
        if stream == "stdout":
            self._data += data
        else:
            self._sleeps += data

    def outcome(self, exit_record: ExitRecord | None, now_ms: int) -> Outcome:
        if self._poison and self._poison in self._data:
            raise KeyError("a fault of the reader")
        if exit_record is not None and self.stuck_until is not None:
            return Outcome(status=OutcomeStatus.LIMITED, reason=Reason.RATE_LIMITED, reset_at=self.stuck_until)
        if exit_record is not None and exit_record.ended_by == "cancel":
            return Outcome(status=OutcomeStatus.CANCELLED, reason=Reason.CANCELLED)
        lines = [
            line for line in self._data.splitlines(keepends=True) if line.endswith(b"\n") and not line.startswith(b"#")
        ]
        if lines:
            return Outcome.model_validate_json(lines[-1])
        if exit_record is None:
            return Outcome(status=OutcomeStatus.LOST, reason=Reason.LOST)
        if exit_record.ended_by == "timeout":
            return Outcome(status=OutcomeStatus.FAILED, reason=Reason.TIMEOUT)
        return Outcome(status=OutcomeStatus.FAILED, reason=Reason.AGENT_ERROR, detail="no terminal event")


@dataclass
class ScriptedKind:
    """Implements ``ports.AgentKind``. refusal: why it cannot be launched; lacking: what it cannot enforce.

    lacking_of: what it cannot enforce of a task. without_fence: why it cannot be kept within a reach.

    requests: every launch asked for. problems: by agent, what a look at its program finds. poison: output that its
    reader stumbles over.
    """

    kind: str = "claude"
    conversations: Conversations = Conversations.GIVEN
    refusal: str | None = None
    lacking: list[str] = field(default_factory=list)
    lacking_of: Callable[[TaskSpec], list[str]] = field(default=lambda task: [])
    problems: dict[str, str] = field(default_factory=dict)
    requests: list[LaunchRequest] = field(default_factory=list)
    poison: bytes = b""
    without_fence: str | None = None

    def launch(self, request: LaunchRequest) -> Launch:
        if self.refusal is not None:
            raise ValueError(self.refusal)
        self.requests.append(request)
        return Launch(argv=(self.kind, request.model.model if request.model else "-"), stdin=request.prompt)

    def reader(self, _request: LaunchRequest | None = None) -> OutcomeReader:
        return OutcomeReader(self.poison)

    def transcript(self, stream: Stream, offset: int = 0) -> Transcript:
        return AGENT_KINDS["command"].transcript(stream, offset)

    def health(self, agent: AgentSpec, path: str) -> AgentHealth:
        problem = self.problems.get(agent.name)
        return AgentHealth(installed=problem is None, program=f"/bin/{self.kind}", version="1.0", problem=problem)

    def unfenced(self, agent: AgentSpec) -> str | None:
        return self.without_fence

    def unsupported(self, task: TaskSpec, agent: AgentSpec) -> list[str]:
        return [*self.lacking, *self.lacking_of(task)]


def scripted_kinds() -> dict[str, ScriptedKind]:
    """Those of a world: some of them name their conversations, some have none."""
    kinds = {kind: ScriptedKind(kind) for kind in ("claude", "codex", "gemini", "command", "hub", "a2a")}
    kinds["codex"].conversations = Conversations.NAMED
    for kind in ("command", "hub", "a2a"):
        kinds[kind].conversations = Conversations.NONE
    return kinds
