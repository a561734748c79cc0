"""What a person is asked: a question of an agent, or permission to use the tools it was denied or to start at all."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from claudomator_py.acts.reach import digest_in
from claudomator_py.domain.errors import sentence
from claudomator_py.domain.lifecycle import InputKind
from claudomator_py.domain.outcome import Denied, Outcome, OutcomeStatus, Reason, RefusedHandoff
from claudomator_py.domain.rationale import StoredRationale
from claudomator_py.domain.task import OnInput, PermissionMode, TaskSpec
from claudomator_py.values import regex

MARKER = "CLAUDOMATOR QUESTION:"
"""Begins a line of an agent's last message; from there to its end it is a question to the operator."""
MAX_QUESTION = 4_000
"""Characters kept of a question."""
BEFORE_FIRST_RUN = "asks for approval before its first run"
UNSAID = "It ended with a question, and did not say which."
_NAMED = 5
_MAX_CALL = 300
"""Characters of a call in a list of several."""
_EMPHASIS = r"(?:\*\*|__)?"
_MARKED_OR_FENCE = regex(
    rf"^ {{0,3}}(?:(?P<fence>`{{3,}}|~{{3,}})|(?:#{{1,6}} )?{_EMPHASIS}{re.escape(MARKER)}{_EMPHASIS})", re.MULTILINE
)


class InputRequest(BaseModel):
    """What the task needs from a person."""

    model_config = ConfigDict(frozen=True)

    kind: InputKind
    text: str = ""
    """What it asks, or the part of that that names no specialist; see ``words``."""
    refused_handoff: RefusedHandoff | None = None
    """That its run, or its card's fallback, would have handed the task on; approved, whoever had it continues."""
    unclear: StoredRationale | None = None
    """Why it is not known which specialist is meant."""
    candidates: tuple[str, ...] = ()
    """Specialists who may be meant, the best first."""
    since_ms: int
    """Since when, in epoch milliseconds."""
    agent: str | None = None
    """Whose run asks; None: it is asked before the first run."""
    run_id: str | None = None
    """See ``agent``."""
    tools: tuple[Denied, ...] = ()
    """The tools it requests."""
    commands: tuple[str, ...] = ()
    """What it evidently needs to run beyond the usual reach, as its text says, before its first run; approved, these
    may be run."""
    handoff: str | None = None
    """The route on which a card's fallback leads a task that failed; approved, whoever had it continues."""
    rejected: str | None = None
    """What the person said who rejected it."""
    rules: tuple[str, ...] = ()
    """The rules of the policy that demand approval."""
    approvers: tuple[tuple[str, ...], ...] = ()
    """For each rule that says who: roles, or names of principals, one of which the person who approves has or is."""
    until_ms: int | None = None
    """By when, in epoch milliseconds; None: any time."""
    answer: str | None = None
    """What the person said who was asked before the first run which specialist is meant."""

    def within(self, expires_ms: int | None) -> "InputRequest":
        """Return the same, which nobody may leave open for longer than so many milliseconds; None: that changes
        nothing."""
        if expires_ms is None:
            return self
        due_ms = self.since_ms + expires_ms
        return self.model_copy(update={"until_ms": due_ms if self.until_ms is None else min(self.until_ms, due_ms)})

    @property
    def words(self) -> str:
        """What it asks. Who may not be told of a specialist is shown it from the same without that name, see
        ``resources/concealment.py``."""
        if self.refused_handoff is not None:
            refused = self.refused_handoff
            said = (
                f"{self.text} {refused.text}"
                if self.text
                else f"would hand it on to {refused.to}, but {refused.why.text}."
            )
            return f"{said} If you approve, {self.agent} continues with it"
        if self.unclear is not None:
            choice = f" Candidates: {', '.join(self.candidates)}." if self.candidates else ""
            asks = "Which specialist is meant? Answer with its id, or say more about the task."
            return f"{sentence(self.unclear.text)} {asks}{choice}"
        return self.text

    @property
    def asks_to_continue(self) -> bool:
        """Whether it asks if whoever had the task continues with it."""
        return self.refused_handoff is not None or self.handoff is not None

    @property
    def event_data(self) -> dict[str, Any]:
        """What an event keeps of it; see ``request_in_event``."""
        kept = {"kind", "text", "commands", "refused_handoff", "unclear", "candidates", "since_ms", "agent"}
        return {"asked": self.model_dump(mode="json", include=kept, exclude_defaults=True)}


def request_in_event(data: Mapping[str, Any]) -> InputRequest | None:
    """Return what an event says that a person is asked, as far as its words go; None: nothing."""
    asked = data.get("asked")
    return None if asked is None else InputRequest.model_validate(asked)


class ToolGrant(BaseModel):
    """What a person allows a task besides its own permissions."""

    model_config = ConfigDict(frozen=True)

    kind: str
    """Of the agents that name ``tools`` so; empty: no run has asked for any yet."""
    tools: tuple[str, ...]
    commands: tuple[str, ...] = ()
    """Those that its text evidently asks for, for agents of any kind, as ``acts.reading`` has them."""

    @property
    def stored(self) -> dict[str, Any]:
        """As a row has it."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def granted(self, spec: TaskSpec, kind: str) -> TaskSpec:
        """Return the task with it, for an agent of that kind."""
        allowed = spec.permissions.allowed_tools
        more = tuple(tool for tool in self.tools if tool not in allowed and digest_in(tool) is None)
        if kind != self.kind or not more:
            return spec
        permissions = spec.permissions.model_copy(update={"allowed_tools": (*allowed, *more)})
        return spec.model_copy(update={"permissions": permissions})

    def acts(self, kind: str) -> tuple[str, ...]:
        """Return the digests of calls beyond the task's reach that it allows, for an agent of that kind."""
        found = (digest_in(tool) for tool in self.tools) if kind == self.kind else ()
        return tuple(digest for digest in found if digest is not None)


def question_in(text: str) -> str | None:
    """Return the question with which the message ends; None: it asks none.

    It begins with ``MARKER`` at the start of a line, where a heading or emphasis may stand before it. In a quotation or
    a fenced block that is no question.
    """
    opened: str | None = None
    for found in _MARKED_OR_FENCE.finditer(text):
        fence = found["fence"]
        if fence is None:
            if opened is None:
                return _fit(text[found.end() :].strip()) or None
        elif opened is None:
            opened = fence
        elif fence.startswith(opened):
            opened = None
    return None


def _fit(question: str) -> str:
    return question if len(question) <= MAX_QUESTION else f"{question[: MAX_QUESTION - 3]}..."


def heard(outcome: Outcome, spec: TaskSpec, *, converses: bool) -> Outcome:
    """Return the outcome as its task takes it. converses: whether the agent can continue in its conversation.

    A question of a run that ended well, or tools that it was denied, need a person if the task waits for one. What was
    denied does not matter if the task's check decides and passes.
    """
    well = outcome.status in (OutcomeStatus.SUCCEEDED, OutcomeStatus.NEEDS_INPUT)
    question = _question(outcome, converses) if well else None
    if question is not None:
        if spec.on_input is OnInput.WAIT:
            return _changed(outcome, status=OutcomeStatus.NEEDS_INPUT, question=question)
        unheard = f"It asked, and on_input is deny, so nobody is told: {question}"
        detail = "\n".join(part for part in (outcome.detail, unheard) if part)
        return _changed(outcome, status=OutcomeStatus.SUCCEEDED, question=question, detail=detail)
    refused = outcome.status is OutcomeStatus.FAILED and outcome.reason is Reason.PERMISSION_DENIED
    if wants_permission(outcome, spec) and (refused or (well and not spec.check)):
        return asked_for_permission(outcome)
    return outcome


def wants_permission(outcome: Outcome, spec: TaskSpec) -> bool:
    """Return whether the run was denied tools that the task has not itself forbidden, and the task waits for a
    person."""
    own_wish = spec.permissions.mode is PermissionMode.PLAN
    return bool(outcome.denied) and spec.on_input is OnInput.WAIT and not own_wish


def asked_for_permission(outcome: Outcome) -> Outcome:
    """Return the outcome of a run that needs permission for the tools it was denied."""
    return _changed(outcome, status=OutcomeStatus.NEEDS_INPUT)


def asked_by(outcome: Outcome, agent: str, run_id: str, now_ms: int) -> InputRequest:
    """Return what a person is asked by a run that needs input."""
    if outcome.refused_handoff is not None:
        return InputRequest(
            kind=InputKind.APPROVAL,
            refused_handoff=outcome.refused_handoff,
            since_ms=now_ms,
            agent=agent,
            run_id=run_id,
        )
    if outcome.question is None and outcome.denied:
        text = f"{agent} asks to use {named(outcome.denied)}"
        return InputRequest(
            kind=InputKind.APPROVAL, text=text, since_ms=now_ms, agent=agent, run_id=run_id, tools=outcome.denied
        )
    text = outcome.question or UNSAID
    return InputRequest(kind=InputKind.QUESTION, text=text, since_ms=now_ms, agent=agent, run_id=run_id)


def named(tools: Sequence[Denied]) -> str:
    """Return the tool calls in words: ``Bash(npm publish)``."""
    calls = list(dict.fromkeys(_short_text(one) for one in tools))
    more = len(calls) - _NAMED
    return ", ".join(calls[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _short_text(call: Denied) -> str:
    line = " ".join(call.input.split())
    short = line if len(line) <= _MAX_CALL else f"{line[: _MAX_CALL - 3]}..."
    return f"{call.tool}({short})" if short else call.tool


def call_text(call: Denied) -> str:
    """Return the call on one line: ``Bash(npm publish)``."""
    return f"{call.tool}({' '.join(call.input.split())})"


def grant_text(rule: str) -> str:
    """Return what a person allowed, in words: of a call beyond a reach the call itself, without its digest."""
    digest = digest_in(rule)
    if digest is None:
        return rule
    return rule.partition(" ")[2] or "a call that cannot be shown"


def _question(outcome: Outcome, converses: bool) -> str | None:
    if outcome.question is not None:
        return _fit(outcome.question)
    if outcome.status is OutcomeStatus.NEEDS_INPUT:
        return _fit(outcome.text or UNSAID)
    return question_in(outcome.text) if converses and outcome.text is not None else None


def _changed(outcome: Outcome, **changes: object) -> Outcome:
    return Outcome.model_validate(outcome.model_dump() | {"reason": None, **changes})
