"""Notices: which events are worth telling a person, and where the configuration says to send them."""

from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, model_validator

from claudomator_py.domain.budget import SpentBudget
from claudomator_py.domain.errors import sentence
from claudomator_py.domain.fields import Distinct, Duration, EnvName, Line, OneOrMore, Strict, Words, refusal
from claudomator_py.domain.inputs import request_in_event
from claudomator_py.domain.outcome import CHECK_REASONS, REASON_POLICIES, Outcome, Provenance, Reason
from claudomator_py.domain.units import MINUTE_MS, SECOND_MS, enumerated
from claudomator_py.texts import clause, subject_line
from claudomator_py.values import dataclass

MAX_TEXT = 1_000
MAX_REPORT = 10_000
"""Maximum characters of a report, which may be longer than other notices."""


class NoticeKind(StrEnum):
    """What happened."""

    NEEDS_INPUT = "needs_input"
    FAILED = "failed"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    AGENT_HELD = "agent_held"
    LIMITED = "limited"
    BUDGET_SPENT = "budget_spent"
    REPORT = "report"
    TEST = "test"


class Notice(BaseModel, frozen=True):
    """One event, in words."""

    id: str = Field(description="Of the event, and the same however often it is sent.")
    kind: NoticeKind
    at: str = Field(description="RFC 3339, UTC.")
    title: str = Field(description="One line.")
    text: str = Field("", description="What an operator wants to know next; may be empty.")
    task_id: str | None = None
    task_name: str | None = None
    run_id: str | None = None
    agent: str | None = None
    reason: Reason | None = None


class TargetKind(StrEnum):
    """How a notice is delivered."""

    WEBHOOK = "webhook"
    COMMAND = "command"


class DeliveryState(StrEnum):
    """Delivery state of a notice for one target. dead: given up; an operator may send it again."""

    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"


class PayloadFormat(StrEnum):
    """Body of a webhook request: the notice as JSON, or what these services expect."""

    JSON = "json"
    NTFY = "ntfy"
    SLACK = "slack"


def _webhook_url(value: str) -> str:
    if value.startswith(("http://", "https://")) and not any(c.isspace() for c in value):
        return value
    # The value is not shown: such URLs are secrets.
    raise refusal("is not a URL of a webhook", "begin it with https://")


class NotifyTarget(Strict):
    """Where notices are sent."""

    kind: TargetKind = Field(TargetKind.WEBHOOK, description="An HTTP POST, or a program to run.")
    url: Line | None = Field(None, description="The URL to post to.")
    url_env: EnvName | None = Field(
        None, description="Environment variable of the daemon that holds the URL, to keep it out of this file."
    )
    format: PayloadFormat = Field(
        PayloadFormat.JSON, description="Format of the body: the notification as JSON, or what ntfy or Slack expects."
    )
    secret_env: EnvName | None = Field(
        None, description="Environment variable of the daemon that holds the secret for signing the body (HMAC-SHA256)."
    )
    command: Words = Field(
        (), description="The program and its arguments. It receives the notification as JSON on stdin."
    )
    events: Annotated[tuple[NoticeKind, ...], OneOrMore, Distinct] = Field(
        (NoticeKind.NEEDS_INPUT, NoticeKind.FAILED, NoticeKind.AGENT_HELD, NoticeKind.REPORT),
        description="Events to send to this target.",
    )
    timeout: Duration = Field(10 * SECOND_MS, ge=100, le=5 * MINUTE_MS, description="Maximum duration of a delivery.")

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.kind is TargetKind.COMMAND:
            if not self.command:
                raise refusal("has no command", "write command: [program, argument]")
            if self.url is not None or self.url_env is not None or self.secret_env is not None:
                raise refusal("is a command, and has keys of a webhook", "remove url, url_env and secret_env")
            return self
        if self.command:
            raise refusal("is a webhook, and has a command", "remove `command`, or write kind: command")
        if (self.url is None) == (self.url_env is None):
            raise refusal("needs one of url and url_env", "write url: https://...")
        if self.url is not None:
            _webhook_url(self.url)
        return self


class DeliveryFault(Exception):
    """A notice could not be delivered. lasting: retrying is pointless. after_s: earliest retry. The message gives the
    reason, without the URL, which may be a secret."""

    def __init__(self, detail: str, *, lasting: bool = False, after_s: float = 0.0) -> None:
        super().__init__(detail)
        self.detail = detail
        self.lasting = lasting
        self.after_s = after_s


@dataclass(frozen=True, slots=True)
class EventContext:
    """An event row with what is known about its task and run."""

    id: int
    at: str
    """RFC 3339."""
    kind: str
    data: dict[str, Any]
    task_id: str | None
    task_name: str | None
    run_id: str | None
    agent: str | None
    outcome: Outcome | None


_STATES = {
    "NEEDS_INPUT": NoticeKind.NEEDS_INPUT,
    "FAILED": NoticeKind.FAILED,
    "COMPLETED": NoticeKind.COMPLETED,
    "CANCELLED": NoticeKind.CANCELLED,
}


def notice_of(event: EventContext) -> Notice | None:
    """Return the notice for the event, or None if it is not worth one. It uses the event's words, which contain no
    secrets."""
    if event.kind == "budget_spent":
        return _of_budget(event)
    if event.kind == "hold":
        # A limit that a probe met again was already reported when it was first met.
        is_reported = event.data.get("reason") is None or event.data.get("provenance") == Provenance.PROBED
        return None if is_reported else _of_hold(event)
    if event.kind == "schedule_held_up":
        return _of_schedule(event)
    if event.kind == "report_made":
        return _notice(event, NoticeKind.REPORT, event.data["headline"], event.data["text"], None, MAX_REPORT)
    if event.kind != "state" or event.data.get("state") not in _STATES or event.data.get("event") == "PhaseReached":
        return None
    kind = _STATES[event.data["state"]]
    name = event.task_name or event.task_id or "a task"
    code = event.data.get("reason")
    reason = Reason(code) if kind is NoticeKind.FAILED and code is not None else None
    title = f"{name}: {kind.value.replace('_', ' ')}" + (f" ({code})" if code is not None else "")
    return _notice(event, kind, title, _text(event, reason), reason)


def _of_budget(event: EventContext) -> Notice:
    agent, budget = event.data.get("agent"), event.data.get("budget")
    # Earlier versions stored the words.
    figures = event.data.get("figures") if budget is None else SpentBudget.model_validate(budget).figures.text
    whose = (
        f"agent {agent} has used up its daily budget"
        if agent is not None
        else "the daily budget of all agents is used up"
    )
    text = "Nothing starts there until the day ends or the budget is raised."
    return _notice(event, NoticeKind.BUDGET_SPENT, f"{whose}: {figures}", text, None)


def _of_schedule(event: EventContext) -> Notice:
    title = f"{event.task_name or event.task_id}: still needs input, and holds up its schedule {event.data['schedule']}"
    until = event.data["until"]
    text = f"{_text(event, None)}\nUntil this task ends, or {until}, its schedule creates no further task."
    return _notice(event, NoticeKind.NEEDS_INPUT, title, text, None)


def _of_hold(event: EventContext) -> Notice:
    agent, until = event.data.get("agent"), event.data.get("until")
    reason = Reason(event.data["reason"])
    detail = clause(event.outcome.detail or "") if event.outcome is not None else ""
    if until is None:
        title = f"agent {agent} is held ({reason})"
        text = f"{REASON_POLICIES[reason].meaning} Then: claudomator release {agent}"
        return _notice(event, NoticeKind.AGENT_HELD, title, f"{text}\n{detail}".strip(), reason)
    return _notice(event, NoticeKind.LIMITED, f"agent {agent} is limited ({reason})", detail, reason)


def _text(event: EventContext, reason: Reason | None) -> str:
    asked = request_in_event(event.data)
    if asked is not None:
        return f"{asked.words}\nHow to answer: claudomator why {event.task_name or event.task_id}"
    why = event.data.get("why")  # such as the rule that refused it, or what a person gave as the reason
    meaning = REASON_POLICIES[reason].meaning if reason is not None else ""
    if isinstance(dependencies := event.data.get("dependencies"), list) and dependencies:
        meaning = f"{meaning.removesuffix('.')}: {enumerated([str(name) for name in dependencies])}."
    parts = [f"{meaning} {sentence(str(why))}".lstrip() if why else meaning]
    if event.outcome is not None:
        if event.data.get("remark"):
            parts.append(sentence(str(event.data["remark"])))
        error = event.outcome.error
        cut = subject_line if event.outcome.reason in CHECK_REASONS else clause
        parts += [event.outcome.changes_sentence or "", cut(error) if error else event.outcome.text or ""]
    return "\n".join(part for part in parts if part)


def _notice(
    event: EventContext, kind: NoticeKind, title: str, text: str, reason: Reason | None, limit: int = MAX_TEXT
) -> Notice:
    return Notice(
        id=f"event-{event.id}",
        kind=kind,
        at=event.at,
        title=title,
        text=text if len(text) <= limit else f"{text[:limit]}...",
        task_id=event.task_id,
        task_name=event.task_name,
        run_id=event.run_id,
        agent=event.data.get("agent") or event.agent,
        reason=reason,
    )
