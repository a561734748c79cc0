"""The kind ``a2a``: start the client of a remote agent and read its events."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from claudomator_py.agents.a2a import INFO
from claudomator_py.agents.ending import Result, RunVerdict, failed, limited
from claudomator_py.agents.event_kind import RemoteKind
from claudomator_py.agents.jsonlines import instant_of
from claudomator_py.agents.programs import own_program
from claudomator_py.agents.run_events import ClientEvents, OutputEnd, shown, usage_parts
from claudomator_py.domain.agent import AgentHealth, AgentSpec
from claudomator_py.domain.outcome import OutcomeStatus, Reason, Tokens
from claudomator_py.domain.run import Conversations, Launch, LaunchRequest, Part
from claudomator_py.json_fields import Event, amount_of, count_of, event_of, text_of
from claudomator_py.values import dataclass

OUTCOMES: Mapping[str, Reason | None] = MappingProxyType(
    {
        "completed": None,
        "question": None,
        "failed": Reason.AGENT_ERROR,
        "rejected": Reason.REFUSED,
        "canceled": Reason.INTERRUPTED,
        "interrupted": Reason.INTERRUPTED,
        "limited": Reason.RATE_LIMITED,
        "overloaded": Reason.OVERLOADED,
        "unreachable": Reason.UNREACHABLE,
        "auth": Reason.AUTH,
        "no_credit": Reason.NO_CREDIT,
        "setup": Reason.SETUP_FAILED,
        "invalid": Reason.BAD_INVOCATION,
        "unknown": Reason.BAD_INVOCATION,
        "too_large": Reason.OUTPUT_LIMIT,
        "lost": Reason.LOST,
    }
)
"""The reason for each ``outcome`` of the client's last event; None: the run did not fail."""


@dataclass(kw_only=True)
class A2aEvents(ClientEvents):
    """The events of one run."""

    def take(self, event: Event) -> list[Part]:
        match event.get("type"):
            case "begin":
                return [Part("notice", f"begins: {shown(event.get('server'))}, {shown(event.get('protocol'))}")]
            case "task":
                # From here on the agent may have worked on it, whatever is heard of the task later.
                self.answered = True
                self.conversation_id = text_of(event, "conversation") or self.conversation_id
                return [Part("notice", f"remote task {shown(event.get('task'))}")]
            case "status":
                state, text = shown(event.get("state")), text_of(event, "text")
                return [Part("notice", state), *([Part("message", text)] if text else [])]
            case "artifact":
                name, text = text_of(event, "name"), text_of(event, "text") or ""
                return [Part("message", f"{name}: {text}" if name else text)]
            case "notice":
                return [Part("notice", shown(event.get("text")))]
            case "end":
                return self._take_end(event)
        return []

    def _take_end(self, event: Event) -> list[Part]:
        self.end = event
        self.answered = self.answered or event.get("outcome") in ("completed", "question")
        self.conversation_id = text_of(event, "conversation")
        error = text_of(event, "error")
        parts = [Part("error", error)] if error else []
        # Only in the log: errors are shown in many places, where only the configured address is redacted.
        if elsewhere := text_of(event, "elsewhere"):
            parts.append(Part("notice", f"it names {shown(elsewhere)}"))
        if text := text_of(event, "question") or text_of(event, "text"):
            parts.append(Part("message", text))
        used = self._tokens()
        return parts + usage_parts(used.input, used.output, self._cost())

    def end_verdict(self, end: Event, ending: OutputEnd) -> RunVerdict:
        outcome = text_of(end, "outcome") or ""
        error = text_of(end, "error") or "it gave no reason"
        match outcome:
            case "completed":
                return RunVerdict(OutcomeStatus.SUCCEEDED)
            case "question":
                return RunVerdict(OutcomeStatus.NEEDS_INPUT)
            case "limited":
                return limited(error, instant_of(end, "reset_at"))
            case "lost":
                return RunVerdict(OutcomeStatus.LOST, Reason.LOST, error)
            case "unknown":
                return replace(failed(Reason.BAD_INVOCATION, error), conversation_lost=self.resumed)
        return failed(OUTCOMES.get(outcome) or Reason.AGENT_ERROR, error)

    def result(self) -> Result:
        end = self.end or {}
        return Result(
            conversation_id=self.conversation_id,
            text=text_of(end, "text"),
            tokens=self._tokens(),
            cost_usd=self._cost(),
            question=text_of(end, "question"),
        )

    def _tokens(self) -> Tokens:
        usage = event_of(self.end or {}, "usage")
        return Tokens(input=count_of(usage, "input_tokens"), output=count_of(usage, "output_tokens"))

    def _cost(self) -> float | None:
        return amount_of(event_of(self.end or {}, "usage"), "cost_usd")


class A2a(RemoteKind):
    """The kind ``a2a``."""

    info = INFO
    conversations = Conversations.NAMED

    def launch(self, request: LaunchRequest) -> Launch:
        """Return the client's command. Its order is in argv, where no variable of a task can change it. Raises
        ValueError for an agent without an address."""
        remote = request.agent.remote
        if remote is None:
            raise ValueError(f"{request.agent.name} has no address; give agents.{request.agent.name}.url")
        if request.skill is not None:
            remote = remote.model_copy(update={"skill": request.skill})
        argv = [*own_program("a2a")]
        argv += [f"--remote={remote.model_dump_json()}", f"--message={request.run_id}"]
        if request.resume:
            argv.append(f"--conversation={request.conversation_id}")
        return Launch(tuple(argv), {}, request.prompt)

    def events(self, request: LaunchRequest | None) -> A2aEvents:
        return A2aEvents(resumed=request is not None and request.resume)

    def health(self, agent: AgentSpec, path: str) -> AgentHealth:
        """Return the health of a remote agent, which has a problem without an address."""
        problem = None if agent.remote is not None else f"it has no address; give agents.{agent.name}.url"
        return super().health(agent, path).model_copy(update={"problem": problem})


KIND = A2a()
