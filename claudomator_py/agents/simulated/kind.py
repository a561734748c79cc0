"""The kind ``simulated``: try everything without a model, an account or costs. All its output is labelled as such."""

import sys
from dataclasses import field, replace
from pathlib import Path
from typing import ClassVar

from claudomator_py.agents.ending import Result, RunVerdict, failed, limited
from claudomator_py.agents.event_kind import EventKind
from claudomator_py.agents.fence import denied_call
from claudomator_py.agents.run_events import ClientEvents, OutputEnd, shown, usage_parts
from claudomator_py.agents.simulated import INFO
from claudomator_py.domain.agent import AgentHealth, AgentSpec
from claudomator_py.domain.outcome import OutcomeStatus, Reason, Tokens
from claudomator_py.domain.run import Conversations, Launch, LaunchRequest, Part
from claudomator_py.domain.task import TaskSpec
from claudomator_py.json_fields import Event, amount_of, count_of, event_of, text_of
from claudomator_py.values import dataclass

_FAILURES = {
    "fail": Reason.AGENT_ERROR,
    "overloaded": Reason.OVERLOADED,
    "network": Reason.NETWORK,
    "auth": Reason.AUTH,
    "invalid": Reason.BAD_INVOCATION,
    **{
        reason.value: reason
        for reason in (
            *(Reason.NO_CREDIT, Reason.INVALID_MODEL, Reason.CONTEXT_TOO_LONG, Reason.REFUSED, Reason.TURN_LIMIT),
            *(Reason.BUDGET, Reason.PERMISSION_DENIED, Reason.OUTPUT_LIMIT, Reason.DISK_FULL),
            *(Reason.UNFINISHED, Reason.NO_ANSWER),
        )
    },
}


@dataclass(kw_only=True)
class SimulatedEvents(ClientEvents):
    """The events of one run."""

    program: ClassVar = "it"

    progress: Event = field(default_factory=dict)
    """The last event with tokens and dollars."""

    def take(self, event: Event) -> list[Part]:
        """Take the next event and return what the log shows of it. An unknown event is shown as it is."""
        match event.get("type"):
            case "start":
                self.conversation_id = text_of(event, "conversation_id")
                return [Part("notice", f"begins: attempt {shown(event.get('attempt'))}, simulated")]
            case "progress":
                self.progress, self.answered = event, True
                if "seconds_left" in event:
                    return [Part("notice", f"works, {shown(event.get('seconds_left'))} s left")]
            case "denied":
                given = {"command": text_of(event, "input") or ""}
                tool = text_of(event, "tool") or "a tool"
                self.denied.append(tool)
                self.denied_calls.append(denied_call(tool, given, text_of(event, "rule")))
                return [Part("notice", f"denied: {shown(event.get('tool'))}({shown(event.get('input'))})")]
            case "end":
                return self._take_end(event)
        return [Part("text", text_of(event, "text") or shown(event))]

    def _take_end(self, event: Event) -> list[Part]:
        self.end = event
        self.answered = self.answered or event.get("outcome") in ("success", "question")
        error = text_of(event, "error")
        parts = [Part("error" if error else "message", error or text_of(event, "text") or shown(event))]
        tokens = _tokens(event)
        return parts + usage_parts(tokens.input, tokens.output, amount_of(event, "cost_usd"))

    def end_verdict(self, end: Event, ending: OutputEnd) -> RunVerdict:
        error = text_of(end, "error") or "it gave no reason"
        match end.get("outcome"):
            case "success":
                return RunVerdict(OutcomeStatus.SUCCEEDED)
            case "question":
                return RunVerdict(OutcomeStatus.NEEDS_INPUT)
            case "unknown":
                return replace(failed(Reason.BAD_INVOCATION, error), conversation_lost=True)
            case "limited":
                return limited(error, count_of(end, "reset_at"), "simulated")
            case str() as named:
                return failed(_FAILURES.get(named, Reason.AGENT_ERROR), error)
        return failed(Reason.AGENT_ERROR, error)

    def result(self) -> Result:
        end = self.end or {}
        payload = self.progress if self.end is None else end
        text = text_of(end, "text")
        return replace(
            self.so_far,
            text=text,
            tokens=_tokens(payload),
            cost_usd=amount_of(payload, "cost_usd"),
            question=text if end.get("outcome") == "question" else None,
        )


def _tokens(event: Event) -> Tokens:
    tokens = event_of(event, "tokens")
    return Tokens(input=count_of(tokens, "input"), output=count_of(tokens, "output"))


PROGRAM = Path(__file__).with_name("program.py")
SCRIPT_NAME = "CLAUDOMATOR_SIMULATED_SCRIPT"


class Simulated(EventKind):
    """The kind ``simulated``."""

    info = INFO
    conversations = Conversations.GIVEN

    def launch(self, request: LaunchRequest) -> Launch:
        """Return the program's command, isolated from other installed packages."""
        argv = [sys.executable, "-I", "-S", str(PROGRAM), "--conversation", request.conversation_id]
        if request.resume:
            argv.append("--resume")
        if request.model is not None:
            argv.append(f"--model={request.model.model}")
        for tool in request.task.permissions.allowed_tools:
            argv += ["--allow", tool]
        script = request.agent.script
        return Launch(tuple(argv), {SCRIPT_NAME: script} if script is not None else {}, request.prompt)

    def events(self, request: LaunchRequest | None) -> SimulatedEvents:
        return SimulatedEvents()

    def health(self, agent: AgentSpec, path: str) -> AgentHealth:
        """Return that it is always installed."""
        return AgentHealth(installed=True, program=str(PROGRAM), version="simulated")

    def unsupported(self, task: TaskSpec, agent: AgentSpec) -> list[str]:
        """Return nothing: it needs only the tools in its script, has no turns and reads no folders."""
        return []


KIND = Simulated()
