"""What a person is asked: an agent's question, or permission to use denied tools or to start at all."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pydantic import BaseModel

from claudomator_py.acts import digest_in
from claudomator_py.domain.claims import after_marker
from claudomator_py.domain.errors import sentence
from claudomator_py.domain.lifecycle import InputKind
from claudomator_py.domain.outcome import Denied, Outcome, OutcomeStatus, Reason, RefusedHandoff
from claudomator_py.domain.rationale import StoredRationale
from claudomator_py.domain.task import OnInput, PermissionMode, TaskSpec
from claudomator_py.texts import cut, cut_line

MARKER = "CLAUDOMATOR QUESTION:"
"""Starts a line in an agent's last message; everything from there to the end is a question to the operator."""
MAX_QUESTION = 4_000
"""Maximum characters kept of a question."""
ASKS_FIRST = "asks for approval before its first run"
UNSAID = "It ended with a question, and did not say which."
_NAMED = 5
_MAX_CALL = 300
"""Characters of a call in a list of several."""


class InputRequest(BaseModel, frozen=True):
    """What the task needs from a person."""

    kind: InputKind
    text: str = ""
    """The question, or the part of it that names no specialist; see ``words``."""
    refused_handoff: RefusedHandoff | None = None
    """The handoff that the run, or its card's fallback, attempted; on approval the same specialist continues."""
    unclear: StoredRationale | None = None
    """Why it is unknown which specialist is meant."""
    candidates: tuple[str, ...] = ()
    """Specialists that may be meant, best first; before an approval, the one that does the task then."""
    since_ms: int
    """Time of the request, in epoch milliseconds."""
    agent: str | None = None
    """The agent whose run asks; None before the first run."""
    run_id: str | None = None
    """The run that asks; None before the first run."""
    tools: tuple[Denied, ...] = ()
    """The tools it requests."""
    commands: tuple[str, ...] = ()
    """Commands beyond the usual reach that the task, judging by its text, evidently needs; asked before its first run.
    On approval, they may be run."""
    handoff: str | None = None
    """The route of a card's fallback for a task that failed; on approval the same specialist continues."""
    rejected: str | None = None
    """Comment of the person who rejected it."""
    rules: tuple[str, ...] = ()
    """The policy rules that require approval."""
    approvers: tuple[tuple[str, ...], ...] = ()
    """For each rule that names approvers: roles or names of principals, one of which the approver must have or be."""
    until_ms: int | None = None
    """Deadline in epoch milliseconds; None if there is none."""
    answer: str | None = None
    """The answer of the person asked, before the first run, which specialist is meant."""

    def within(self, expires_ms: int | None) -> "InputRequest":
        """Return the request with a deadline at most this many milliseconds after it was made; None changes nothing."""
        if expires_ms is None:
            return self
        due_ms = self.since_ms + expires_ms
        return self.model_copy(update={"until_ms": due_ms if self.until_ms is None else min(self.until_ms, due_ms)})

    @property
    def words(self) -> str:
        """The question. Callers who may not know of a specialist get it without that name; see
        ``resources/concealment.py``."""
        if self.refused_handoff is not None:
            refused = self.refused_handoff
            text = (
                f"{self.text} {refused.text}"
                if self.text
                else f"would hand it on to {refused.to}, but {refused.why.text}."
            )
            return f"{text} If you approve, {self.agent} continues with it"
        if self.unclear is not None and self.kind is InputKind.APPROVAL:
            return f"{self.text}; {self.unclear.text}, so whoever approves it says which specialist is meant"
        if self.unclear is not None:
            choice = f" Candidates: {', '.join(self.candidates)}." if self.candidates else ""
            asks = "Which specialist is meant? Answer with its id, or say more about the task."
            return f"{sentence(self.unclear.text)} {asks}{choice}"
        return self.text

    @property
    def specialist(self) -> str | None:
        """The specialist that does the task once its first run is approved; None if none does, or if a run asks."""
        before = self.kind is InputKind.APPROVAL and self.run_id is None
        return self.candidates[0] if before and self.candidates else None

    @property
    def asks_to_continue(self) -> bool:
        """True if the question is whether the same specialist continues with the task."""
        return self.refused_handoff is not None or self.handoff is not None

    @property
    def event_data(self) -> dict[str, Any]:
        """What an event keeps of the request; see ``request_in_event``."""
        kept = {"kind", "text", "commands", "refused_handoff", "unclear", "candidates", "since_ms", "agent"}
        return {"asked": self.model_dump(mode="json", include=kept, exclude_defaults=True)}


def request_in_event(data: Mapping[str, Any]) -> InputRequest | None:
    """Return the request to a person recorded in an event, as far as needed for its words; None if there is none."""
    asked = data.get("asked")
    return None if asked is None else InputRequest.model_validate(asked)


class ToolGrant(BaseModel, frozen=True):
    """What a person allows a task in addition to its own permissions."""

    kind: str
    """The kind of agent whose names ``tools`` uses; empty if no run has asked for any yet."""
    tools: tuple[str, ...]
    commands: tuple[str, ...] = ()
    """Commands that the task's text evidently asks for, for agents of any kind, as found by ``acts.reading``."""

    @property
    def stored(self) -> dict[str, Any]:
        """The grant as stored in a row."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def granted(self, spec: TaskSpec, kind: str) -> TaskSpec:
        """Return the task extended by the grant, for an agent of that kind."""
        allowed = spec.permissions.allowed_tools
        more = tuple(tool for tool in self.tools if tool not in allowed and digest_in(tool) is None)
        if kind != self.kind or not more:
            return spec
        permissions = spec.permissions.model_copy(update={"allowed_tools": (*allowed, *more)})
        return spec.model_copy(update={"permissions": permissions})

    def acts(self, kind: str) -> tuple[str, ...]:
        """Return the digests of the allowed calls beyond the task's reach, for an agent of that kind."""
        digests = (digest_in(tool) for tool in self.tools) if kind == self.kind else ()
        return tuple(digest for digest in digests if digest is not None)


def question_in(text: str) -> str | None:
    """Return the question that follows ``MARKER`` in the message; None if there is none."""
    question = after_marker(text, MARKER)
    return None if question is None else cut(question, MAX_QUESTION)


def heard(outcome: Outcome, spec: TaskSpec, *, converses: bool) -> Outcome:
    """Return the outcome as the task treats it. converses: True if the agent can continue its conversation.

    A question from a run that ended well, or denied tools, need a person if the task waits for one. Denials do not
    matter if the task's check decides and passes.
    """
    well = outcome.status in (OutcomeStatus.SUCCEEDED, OutcomeStatus.NEEDS_INPUT)
    question = _question(outcome, converses) if well else None
    if question is not None:
        if spec.on_input is OnInput.WAIT:
            return _changed(outcome, status=OutcomeStatus.NEEDS_INPUT, question=question)
        unheard = f"It asked a question, which nobody gets because on_input is deny: {question}"
        detail = "\n".join(part for part in (outcome.detail, unheard) if part)
        return _changed(outcome, status=OutcomeStatus.SUCCEEDED, question=question, detail=detail)
    refused = outcome.status is OutcomeStatus.FAILED and outcome.reason is Reason.PERMISSION_DENIED
    if wants_permission(outcome, spec) and (refused or (well and not spec.check)):
        return needing_permission(outcome)
    return outcome


def wants_permission(outcome: Outcome, spec: TaskSpec) -> bool:
    """Return whether the run was denied tools that the task itself does not forbid, and the task waits for a person."""
    own_wish = spec.permissions.mode is PermissionMode.PLAN
    return bool(outcome.denied) and spec.on_input is OnInput.WAIT and not own_wish


def needing_permission(outcome: Outcome) -> Outcome:
    """Return the outcome of a run that needs permission for the tools it was denied."""
    return _changed(outcome, status=OutcomeStatus.NEEDS_INPUT)


def asked_by(outcome: Outcome, agent: str, run_id: str, now_ms: int) -> InputRequest:
    """Return the request to a person made by a run that needs input."""
    request = partial(InputRequest, since_ms=now_ms, agent=agent, run_id=run_id)
    if outcome.refused_handoff is not None:
        return request(kind=InputKind.APPROVAL, refused_handoff=outcome.refused_handoff)
    if outcome.question is None and outcome.denied:
        text = f"{agent} asks to use {named(outcome.denied)}"
        return request(kind=InputKind.APPROVAL, text=text, tools=outcome.denied)
    return request(kind=InputKind.QUESTION, text=outcome.question or UNSAID)


def named(tools: Sequence[Denied]) -> str:
    """Return the tool calls in words: ``Bash(npm publish)``."""
    calls = list(dict.fromkeys(_short_text(call) for call in tools))
    more = len(calls) - _NAMED
    return ", ".join(calls[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _short_text(call: Denied) -> str:
    short = cut_line(call.input, _MAX_CALL)
    return f"{call.tool}({short})" if short else call.tool


def call_text(call: Denied) -> str:
    """Return the call on one line: ``Bash(npm publish)``."""
    return f"{call.tool}({' '.join(call.input.split())})"


def grant_text(rule: str) -> str:
    """Return what a person allowed, in words; a call beyond a reach without its digest."""
    digest = digest_in(rule)
    if digest is None:
        return rule
    return rule.partition(" ")[2] or "a call that cannot be shown"


def _question(outcome: Outcome, converses: bool) -> str | None:
    if outcome.question is not None:
        return cut(outcome.question, MAX_QUESTION)
    if outcome.status is OutcomeStatus.NEEDS_INPUT:
        return cut(outcome.text or UNSAID, MAX_QUESTION)
    return question_in(outcome.text) if converses and outcome.text is not None else None


def _changed(outcome: Outcome, **changes: object) -> Outcome:
    return Outcome.model_validate(outcome.model_dump() | {"reason": None, **changes})
