"""Read the events of the ACP client, and what the run came to."""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import ClassVar

from claudomator_py.agents.acp.profiles import named
from claudomator_py.agents.acp.verdict import LOST_SESSION, TurnEnd
from claudomator_py.agents.ending import Result, RunVerdict
from claudomator_py.agents.fence import questions
from claudomator_py.agents.plaintext import readable, shortened
from claudomator_py.agents.run_events import ClientEvents, OutputEnd, shown, usage_parts
from claudomator_py.domain.outcome import Denied, OutcomeStatus, Tokens
from claudomator_py.domain.run import Part
from claudomator_py.json_fields import Event, amount_of, count_of, event_of, text_of
from claudomator_py.values import dataclass

_MAX_SUBJECT = 300


@dataclass(kw_only=True)
class AcpEvents(ClientEvents):
    """The events of one run. profile: the agent's, from its command or else from the client's first event."""

    lost: ClassVar = LOST_SESSION

    profile: str = ""
    prior: Tokens = field(default_factory=Tokens)
    prior_cost_usd: float | None = None

    def take(self, event: Event) -> list[Part]:
        text = text_of(event, "text") or ""
        match event.get("type"):
            case "begin":
                self.profile = self.profile or text_of(event, "profile") or ""
                return [Part("notice", f"begins: {shown(event.get('agent'))}, ACP 1")]
            case "session":
                self.conversation_id = text_of(event, "session") or self.conversation_id
                return [Part("notice", f"session {shown(event.get('session'))}")]
            case "message":
                self.answered = self.spoke = True
                return [Part("message", text)]
            case "thinking":
                self.answered = True
                return [Part("thinking", text)]
            case "tool":
                self.answered = True
                self.called(text_of(event, "id"), text_of(event, "tool"))
                return [Part("tool_call", shown(event.get("subject")), text_of(event, "tool"))]
            case "tool_result":
                message = text or shown(event.get("status"))
                return [Part("tool_result", message, text_of(event, "tool") or self.tool_of(text_of(event, "id")))]
            case "permission":
                return self._take_permission(event)
            case "notice":
                return [Part("notice", text)] if text else []
            case "retry":
                return [Part("notice", f"asks its service again: {text}")]
            case "end":
                return self._take_end(event)
        return []

    def _take_permission(self, event: Event) -> list[Part]:
        decision, tool = text_of(event, "decision"), text_of(event, "tool") or "tool"
        if decision == "allowed":
            return []
        subject = shown(event.get("subject"))
        if (asked := questions(event_of(event, "given"))) is not None:
            self.question = asked
            return [Part("notice", f"asks: {asked}", tool)]
        self.denied.append(tool)
        beyond = text_of(event, "beyond")
        line = readable(subject) if beyond else shortened(" ".join(readable(subject).split()), _MAX_SUBJECT)
        self.denied_calls.append(Denied(tool=tool, input=line, rule=text_of(event, "rule"), beyond=beyond))
        why = "denied" if decision != "unoffered" else "denied, as it could only have been allowed permanently"
        why = f"{why}, as {beyond}" if beyond else why
        return [Part("notice", f"{why}: {line}", tool)]

    def _take_end(self, event: Event) -> list[Part]:
        self.end = event
        error, tokens = text_of(event, "error"), self._tokens()
        parts = [Part("error", error)] if error else []
        return parts + usage_parts(tokens.input, tokens.output, self._cost())

    def end_verdict(self, end: Event, ending: OutputEnd) -> RunVerdict:
        turn = TurnEnd(
            end,
            named(self.profile),
            ending.printed_ms,
            zone=self.zone,
            rejected=self.denied,
            asked=self.question is not None,
            stderr=ending.stderr,
        )
        return turn.verdict()

    def to_come(self, at_ms: int, *, stopped: bool) -> Mapping[str, int]:
        """Return the number of commands that were still in the background when the turn ended."""
        tasks = count_of(self.end or {}, "background")
        return {"background task": tasks} if tasks else {}

    def result(self) -> Result:
        end = self.end or {}
        verdict = self.terminal_verdict(OutputEnd(None, 0, "", ""))
        answered = verdict is not None and verdict.status is OutcomeStatus.SUCCEEDED
        text = text_of(end, "text") if answered else None
        return replace(self.so_far, text=text, tokens=self._tokens(), cost_usd=self._cost())

    def _tokens(self) -> Tokens:
        """Return the tokens of this run. Some agents count the whole session, over all its processes."""
        usage = event_of(self.end or {}, "usage")
        used, made = count_of(usage, "input_tokens"), count_of(usage, "output_tokens")
        means = named(self.profile).usage
        if not self.resumed or means not in ("session", "file", "unknown"):
            return Tokens(input=used, output=made)
        if means == "unknown":
            return Tokens()
        return Tokens(input=_less(used, self.prior.input), output=_less(made, self.prior.output))

    def _cost(self) -> float | None:
        """Return dollars: the session's cost less its cost before this run."""
        cost = amount_of(self.end or {}, "cost_usd")
        if cost is None or not self.resumed:
            return cost
        prior = self.prior_cost_usd or 0.0
        return cost - prior if cost >= prior else cost


def _less(total: int | None, before: int | None) -> int | None:
    return None if total is None else max(0, total - (before or 0))
