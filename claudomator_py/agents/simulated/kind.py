"""The simulated agent: to try everything without a model, an account or a cost. It says in all it writes what it is."""

import sys
from dataclasses import replace
from pathlib import Path

from claudomator_py.agents.denied import denied_call, distinct
from claudomator_py.agents.ending import Result, Verdict, failed, outcome, settle
from claudomator_py.agents.jsonlines import (
    MAX_PEEK_BYTES,
    Event,
    EventSplitter,
    amount_of,
    count_of,
    event_of,
    parse_events,
    text_of,
)
from claudomator_py.agents.plaintext import MAX_DETAIL, MAX_TEXT, Tail, shortened, storable
from claudomator_py.agents.simulated import INFO
from claudomator_py.agents.simulated.transcript import SimulatedTranscript
from claudomator_py.agents.transcript import LineTranscript, of_stream
from claudomator_py.domain.agent import AgentHealth, AgentSpec
from claudomator_py.domain.conversation import Conversations
from claudomator_py.domain.outcome import Denied, Outcome, OutcomeStatus, Provenance, Reason, Tokens
from claudomator_py.domain.pricing import Used
from claudomator_py.domain.run import ExitRecord, Launch, LaunchRequest, Stream
from claudomator_py.domain.task import TaskSpec

PROGRAM = Path(__file__).with_name("program.py")
SCRIPT_NAME = "CLAUDOMATOR_SIMULATED_SCRIPT"
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
        )
    },
}


class Simulated:
    """The kind ``simulated``."""

    kind = INFO.name
    conversations = Conversations.GIVEN

    def launch(self, request: LaunchRequest) -> Launch:
        """Its program, isolated from whatever else is installed."""
        argv = [sys.executable, "-I", "-S", str(PROGRAM), "--conversation", request.conversation_id]
        if request.resume:
            argv.append("--resume")
        if request.model is not None:
            argv.append(f"--model={request.model.model}")
        for tool in request.task.permissions.allowed_tools:
            argv += ["--allow", tool]
        script = request.agent.script
        return Launch(tuple(argv), {SCRIPT_NAME: script} if script is not None else {}, request.prompt)

    def reader(self, request: LaunchRequest | None = None) -> "SimulatedReader":
        """A reader for one run."""
        return SimulatedReader()

    def transcript(self, stream: Stream, offset: int = 0) -> LineTranscript:
        """What a run said and did, from that byte of the stream on."""
        return of_stream(SimulatedTranscript, stream, offset)

    def health(self, agent: AgentSpec, path: str) -> AgentHealth:
        """It is always there."""
        return AgentHealth(installed=True, program=str(PROGRAM), version="simulated")

    def unsupported(self, task: TaskSpec, agent: AgentSpec) -> list[str]:
        """Nothing: it asks for the tools that its script names, takes no turns and reads no folders."""
        return []


class SimulatedReader:
    """Reads one run of the simulated agent."""

    stuck_until: int | None = None
    stuck_since: int | None = None

    def __init__(self) -> None:
        self._events = EventSplitter()
        self._stderr = Tail(MAX_DETAIL)
        self._start: Event = {}
        self._end: Event | None = None
        self._denied: list[Denied] = []
        self._progress: Event | None = None

    def feed(self, stream: Stream, data: bytes) -> None:
        """Take the next bytes of a stream."""
        if stream == "stderr":
            self._stderr.feed(data)
            return
        for part in self._events.feed(data):
            if isinstance(part, list):
                self._start, self._end = self._after(part)
                self._denied += [_call(event) for event in part if event.get("type") == "denied"]

    @property
    def answered(self) -> bool:
        """Whether it has worked for a second, or has ended well."""
        return self._progress is not None or (self._end or {}).get("outcome") in ("success", "question")

    @property
    def terminal(self) -> bool:
        """Whether a complete terminal event has been seen."""
        short = self._events.rest_bytes <= MAX_PEEK_BYTES
        end = self._after(parse_events(self._events.rest) or [])[1] if short else self._end
        return end is not None

    def outcome(self, exit_record: ExitRecord | None, now_ms: int) -> Outcome:
        """What the run came to."""
        start, end = self._after(parse_events(self._events.rest) or [])
        verdict = settle(None if end is None else _said(end), exit_record, self._unsaid)
        used = self.used if end is None else Used(_tokens(end), amount_of(end, "cost_usd"))
        end = end or {}
        text = text_of(end, "text")
        result = Result(
            conversation_id=storable(text_of(start, "conversation_id") or "")[:100] or None,
            text=shortened(storable(text), MAX_TEXT) if text is not None else None,
            tokens=used.tokens,
            cost_usd=used.cost_usd,
            question=storable(text) if text is not None and end.get("outcome") == "question" else None,
            denied=distinct(self._denied),
        )
        return outcome(verdict, result)

    def _after(self, events: list[Event]) -> tuple[Event, Event | None]:
        """Start and end as they are with these events."""
        start, end = self._start, self._end
        for event in events:
            if event.get("type") == "start":
                start = event
            elif event.get("type") == "end":
                end = event
            elif event.get("type") == "progress":
                self._progress = event
        return start, end

    @property
    def used(self) -> Used:
        """What the run has used so far, as far as it has said."""
        said = self._end if self._end is not None else self._progress or {}
        return Used(_tokens(said), amount_of(said, "cost_usd"))

    def _unsaid(self, exit_record: ExitRecord) -> Verdict:
        said = self._stderr.text()
        return failed(Reason.AGENT_ERROR, said or f"it exited with {exit_record.exit_code} without a terminal event")


def _tokens(event: Event) -> Tokens:
    tokens = event_of(event, "tokens")
    return Tokens(input=count_of(tokens, "input"), output=count_of(tokens, "output"))


def _call(event: Event) -> Denied:
    given = {"command": text_of(event, "input") or ""}
    return denied_call(text_of(event, "tool") or "a tool", given, text_of(event, "rule"))


def _said(end: Event) -> Verdict:
    error = shortened(storable(text_of(end, "error") or "it gave no reason"), MAX_DETAIL)
    match end.get("outcome"):
        case "success":
            return Verdict(OutcomeStatus.SUCCEEDED)
        case "question":
            return Verdict(OutcomeStatus.NEEDS_INPUT)
        case "unknown":
            return replace(failed(Reason.BAD_INVOCATION, error), conversation_lost=True)
        case "limited":
            reset_at = count_of(end, "reset_at")
            provenance = Provenance.ESTIMATED if reset_at is None else Provenance.REPORTED
            return Verdict(OutcomeStatus.LIMITED, Reason.RATE_LIMITED, error, reset_at, provenance, "simulated")
        case str() as named:
            return failed(_FAILURES.get(named, Reason.AGENT_ERROR), error)
    return failed(Reason.AGENT_ERROR, error)


KIND = Simulated()
