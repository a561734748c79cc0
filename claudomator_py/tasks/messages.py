"""Changes to messages of a channel, each in one transaction: post, process attachments, mark, and deliver answers.

A message, the decision who answers it and the resulting tasks share one transaction; so do an answer and its delivered
mark. So even if the daemon crashes, each answer is requested once and delivered once.
"""

from collections.abc import Callable, Sequence
from dataclasses import field

from sqlalchemy import Connection

from claudomator_py.domain.channel import (
    AnsweredMessage,
    AnswerState,
    Attachment,
    AttachmentState,
    ChannelSettings,
    Incoming,
    MarkVerdict,
    Member,
    MemberRole,
    MessageRole,
    NewAttachment,
    NewMessage,
    SkipReason,
    TriageDecision,
    TriageReason,
)
from claudomator_py.domain.decision import PolicyCheck
from claudomator_py.domain.errors import Invalid, NotFound, Problem, shown
from claudomator_py.domain.outcome import Outcome
from claudomator_py.domain.principal import Principal, creator_of
from claudomator_py.domain.rationale import Rationale, RationaleCode, rationale
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import HOUR_MS
from claudomator_py.prompts import MAX_EARLIER, answer_instructions
from claudomator_py.routing.questions import Reply
from claudomator_py.routing.triage import triage
from claudomator_py.scheduler.records import TriageRecord
from claudomator_py.store import channel_rows, run_rows, specialist_rows, task_rows
from claudomator_py.store.events import record
from claudomator_py.store.tables import Channel, ChannelAnswer, ChannelMember, ChannelMessage, Task
from claudomator_py.tasks.accept import NewTask, accept
from claudomator_py.tasks.channels import add_member, members_of
from claudomator_py.tasks.decisions import record_triage
from claudomator_py.values import dataclass

MESSAGE_POSTED = "message_posted"
"""Event whose data has ``channel``, ``message`` and, if somebody answers, ``agents``."""

Policy = Callable[[Connection, Channel, Incoming], tuple[PolicyCheck, ...]]
"""Returns the policy's checks of a message, made before any triage rule: if one refuses, nobody answers."""


def no_policy(connection: Connection, channel: Channel, message: Incoming) -> tuple[PolicyCheck, ...]:
    """Return no checks: everything is allowed."""
    del connection, channel, message
    return ()


@dataclass(frozen=True, slots=True)
class TriageInputs:
    """Inputs gathered before the transaction, as nothing inside it may wait."""

    reply: Reply | None = None
    """The cheap model's verdict on whether the primary should answer; None: it was not asked."""
    best: Callable[[Sequence[str]], str | None] | None = None
    """See ``routing.triage.triage``; must return at once."""
    dir_key: str | None = ""
    """Key of the channel's working directory; None: the directory is unavailable, so nobody is asked."""
    policy: Policy = no_policy
    latency_ms: int | None = None
    """Milliseconds taken to gather the inputs."""


@dataclass(frozen=True, slots=True)
class PostedMessage:
    """A message that is about to be stored."""

    author: str
    """Id of the member; a person who is not yet a participant joins by writing."""
    message: NewMessage
    role: MessageRole = MessageRole.USER
    username: str | None = None
    """Username of a person who joins by this message."""
    display_name: str | None = None
    """Their name as others see it."""
    hops: int = 0
    """Length of the exchange between agents so far; 0 for a person's message."""
    external_id: str | None = None
    """Its id at the sender, if an incoming webhook brought it."""


@dataclass(slots=True)
class _Context:
    """What a message meets in its channel."""

    channel: Channel
    settings: ChannelSettings
    rows: Sequence[ChannelMember]
    inputs: TriageInputs
    members: Sequence[Member] = field(default_factory=list)
    """Members under the current names of their cards."""


def post(
    connection: Connection, channel: Channel, written: PostedMessage, inputs: TriageInputs, now_ms: int
) -> ChannelMessage:
    """Add the message, decide who answers it, and make the tasks for that. A message that an incoming webhook has
    already brought is not added again. Raises Invalid if it answers a message outside the channel, Conflict if the
    channel is full."""
    if written.external_id is not None:
        earlier = channel_rows.of_external(connection, channel.id, written.external_id)
        if earlier is not None:
            return earlier
    context = _context_with_author(connection, channel, written, inputs, now_ms)
    incoming = incoming_of(connection, channel, written)
    checks = inputs.policy(connection, channel, incoming)
    refused = not all(check.allowed for check in checks)
    decision = TriageDecision(reason=TriageReason.NO_TRIGGER) if refused else _decided(context, incoming)
    message = channel_rows.add_message(
        connection,
        ChannelMessage(
            channel_id=channel.id,
            author=written.author,
            role=written.role.value,
            content=written.message.content,
            reply_to=written.message.reply_to,
            attachments=[_attachment(member) for member in written.message.attachments],
            hops=written.hops,
            external_id=written.external_id,
            reason=decision.reason.value,
            decision=decision.model_dump(mode="json"),
            shadow=_shadow(context, incoming),
            created_ms=now_ms,
        ),
    )
    skipped = _ask_specialists(connection, context, message, decision, now_ms)
    why = _why(decision, channel.primary_agent, inputs.reply)
    triaged = TriageRecord(
        reason=rationale(RationaleCode.MESSAGE_REFUSED) if refused else why,
        confidence=decision.confidence,
        policy_checks=checks,
        latency_ms=inputs.latency_ms,
        rule=decision.reason,
        agents=decision.agents,
        skipped={name: why.value for name, why in skipped.items()},
        hops=written.hops,
    )
    record_triage(connection, message, channel.organisation, triaged, now_ms)
    data = {"channel": channel.name, "message": message.id, **({"agents": decision.agents} if decision.agents else {})}
    record(connection, now_ms, MESSAGE_POSTED, data=data)
    if decision.ask_among:
        _ask_which(connection, channel, message, decision.ask_among, now_ms)
    return message


def _context_with_author(
    connection: Connection, channel: Channel, written: PostedMessage, inputs: TriageInputs, now_ms: int
) -> _Context:
    """The channel with its members; an author who is not yet a participant joins."""
    settings = ChannelSettings.model_validate(channel.settings)
    context = _Context(channel, settings, channel_rows.members(connection, channel.id), inputs)
    if written.role is MessageRole.USER and all(member.id != written.author for member in context.rows):
        add_member(
            connection,
            channel.id,
            written.author,
            MemberRole.USER,
            now_ms,
            username=written.username or written.author,
            display_name=written.display_name,
        )
        context.rows = channel_rows.members(connection, channel.id)
    context.members = members_of(connection, context.rows)
    return context


def update_attachment(
    connection: Connection,
    channel: Channel,
    message: ChannelMessage,
    attachment_id: str,
    state: AttachmentState,
    text: str | None,
    inputs: TriageInputs,
    now_ms: int,
) -> ChannelMessage:
    """Return the message with the attachment's new state; once none is pending, ask the specialists whose answers
    waited for it. Raises NotFound if the message has no such attachment."""
    attachments = [Attachment.model_validate(attachment) for attachment in message.attachments]
    if all(attachment.id != attachment_id for attachment in attachments):
        raise NotFound(f"There is no attachment {shown(attachment_id)!r}.", remedy="Name one of the message.")
    changed = [
        attachment.model_copy(update={"state": state, "text": text}) if attachment.id == attachment_id else attachment
        for attachment in attachments
    ]
    message.attachments = [attachment.model_dump(mode="json") for attachment in changed]
    channel_rows.change_message(connection, message.id or 0, attachments=message.attachments)
    if all(attachment.state is not AttachmentState.PENDING for attachment in changed):
        settings = ChannelSettings.model_validate(channel.settings)
        context = _Context(channel, settings, channel_rows.members(connection, channel.id), inputs)
        for answer in channel_rows.answers(connection, [message.id or 0]):
            if answer.state == AnswerState.HELD:
                why_not = _skip_reason(connection, context, message, answer.specialist, now_ms, itself=1)
                _ask(connection, context, message, answer, why_not, now_ms)
    return message


def mark(connection: Connection, message: ChannelMessage, verdict: MarkVerdict | None, by: Principal) -> None:
    """Note an operator's verdict on who answered; None clears it."""
    marked_by = None if verdict is None else by.id
    stored = None if verdict is None else verdict.value
    channel_rows.change_message(connection, message.id or 0, verdict=stored, marked_by=marked_by)


def deliver(connection: Connection, answer: ChannelAnswer, inputs: TriageInputs, now_ms: int) -> ChannelMessage | None:
    """Add the task's result as a message and mark the answer as delivered. None: nothing to deliver, as it was
    already done."""
    answers = channel_rows.answers(connection, [answer.message_id])
    current = next((other for other in answers if other.specialist == answer.specialist), None)
    if current is None or current.state != AnswerState.ASKED:
        return None
    channel = channel_rows.get(connection, current.channel_id)
    question = channel_rows.message(connection, channel.id, current.message_id)
    if question is None:
        return None
    role, text = _result(connection, current)
    written = PostedMessage(
        author=current.specialist,
        role=role,
        message=NewMessage.model_construct(content=text, reply_to=question.id, attachments=()),
        hops=question.hops + 1,
    )
    posted = post(connection, channel, written, inputs, now_ms)
    channel_rows.change_answer(connection, current, state=AnswerState.ANSWERED.value, given_id=posted.id)
    return posted


def incoming_of(connection: Connection, channel: Channel, written: PostedMessage) -> Incoming:
    """Return the message as triage sees it. Raises Invalid if it answers a message outside the channel."""
    answered = None
    if written.message.reply_to is not None:
        original = channel_rows.message(connection, channel.id, written.message.reply_to)
        if original is None:
            message = f"there is no message {written.message.reply_to} in this channel"
            raise Invalid.of([Problem(field="reply_to", message=message, remedy="name one of this channel")])
        answered = AnsweredMessage(id=str(original.id), author=original.author, role=MessageRole(original.role))
    return Incoming(author=written.author, role=written.role, content=written.message.content, reply_to=answered)


def _decided(context: _Context, incoming: Incoming) -> TriageDecision:
    reply, best, primary = context.inputs.reply, context.inputs.best, context.channel.primary_agent
    is_yes = None if reply is None else lambda: reply.yes
    return triage(incoming, context.settings, context.members, primary, is_yes=is_yes, best=best)


def _shadow(context: _Context, incoming: Incoming) -> dict[str, object] | None:
    if context.settings.shadow is None:
        return None
    shadowed = triage(incoming, context.settings.shadow, context.members, context.channel.primary_agent)
    return shadowed.model_dump(mode="json")


def _why(decision: TriageDecision, primary: str | None, reply: Reply | None) -> Rationale:
    match decision.reason:
        case TriageReason.DIRECT_MENTION:
            return rationale(RationaleCode.MESSAGE_MENTIONS, specialists=decision.agents or decision.ask_among)
        case TriageReason.REPLY_TO_AGENT:
            return rationale(RationaleCode.MESSAGE_ANSWERS, specialist=decision.agents[0])
        case TriageReason.PRIMARY_AGENT:
            return rationale(RationaleCode.FOR_PRIMARY, specialist=decision.agents[0])
        case TriageReason.NO_TRIGGER:
            if primary is None or reply is None:
                return rationale(RationaleCode.FOR_NOBODY)
            if reply.cause is None:
                return rationale(RationaleCode.PRIMARY_NOT_NEEDED, specialist=primary)
            return rationale(RationaleCode.PRIMARY_NOT_JUDGED, specialist=primary, text=reply.cause)


def _ask_specialists(
    connection: Connection, context: _Context, message: ChannelMessage, decision: TriageDecision, now_ms: int
) -> dict[str, SkipReason]:
    """Ask the specialists that are to answer; return those who are skipped, with the reasons."""
    skipped = {}
    waits = decision.should_respond_after_processing and any(
        attachment["state"] == AttachmentState.PENDING for attachment in message.attachments
    )
    for specialist in decision.agents:
        answer = ChannelAnswer(
            message_id=message.id or 0,
            specialist=specialist,
            channel_id=context.channel.id,
            state=AnswerState.HELD.value,
            at_ms=now_ms,
        )
        # Checked before the answer is stored, which would count towards the limits.
        why = None if waits else _skip_reason(connection, context, message, specialist, now_ms)
        answer.insert(connection)
        if why is not None:
            skipped[specialist] = why
        if not waits:
            _ask(connection, context, message, answer, why, now_ms)
    return skipped


def _ask(
    connection: Connection,
    context: _Context,
    message: ChannelMessage,
    answer: ChannelAnswer,
    why_not: SkipReason | None,
    now_ms: int,
) -> None:
    """Make the task for a specialist's answer, or record ``why_not``."""
    if why_not is not None:
        channel_rows.change_answer(connection, answer, state=AnswerState.SKIPPED.value, skipped=why_not.value)
        return
    task = _task(connection, context, message, answer.specialist, now_ms)
    channel_rows.change_answer(connection, answer, state=AnswerState.ASKED.value, task_id=task.id)


def _skip_reason(
    connection: Connection, context: _Context, message: ChannelMessage, specialist: str, now_ms: int, *, itself: int = 0
) -> SkipReason | None:
    """Why a specialist is not asked; None: it may be. itself: 1 if this answer is already counted among those asked,
    else 0."""
    member = next((row for row in context.rows if row.id == specialist), None)
    if member is None or not specialist_rows.is_assignable(connection, specialist, creator_of(context.channel)):
        return SkipReason.GONE
    if member.muted_until_ms is not None and member.muted_until_ms > now_ms:
        return SkipReason.MUTED
    if message.hops and _would_loop(connection, context, message, specialist):
        return SkipReason.LOOP
    asked = channel_rows.question_times(connection, context.channel.id, specialist, now_ms - HOUR_MS)[itself:]
    if context.settings.cooldown and asked and asked[0] > now_ms - context.settings.cooldown:
        return SkipReason.COOLING
    if len(asked) >= context.settings.rate_limit:
        return SkipReason.RATE_LIMITED
    return SkipReason.REFUSED if context.inputs.dir_key is None else None


def _would_loop(connection: Connection, context: _Context, message: ChannelMessage, specialist: str) -> bool:
    """Whether the agents' exchange has reached its maximum length, or the specialist would answer its own earlier
    message."""
    if message.hops >= context.settings.max_hops:
        return True
    thread = channel_rows.thread(connection, message, message.hops)
    return any(earlier.author == specialist for earlier in thread if earlier.hops)


def _task(connection: Connection, context: _Context, message: ChannelMessage, specialist: str, now_ms: int) -> Task:
    channel = context.channel
    earlier = channel_rows.thread(connection, message, MAX_EARLIER)
    spec = TaskSpec(
        name=f"{channel.name[:40]}-{message.id}-{specialist[:40]}".strip(".-_"),
        instructions=answer_instructions(channel.name, message, earlier),
        specialist=specialist,
        working_dir=context.settings.working_dir,
        continues=_continued(connection, channel, message, specialist),
        tags=("channel",),
    )
    order = NewTask(
        spec,
        context.inputs.dir_key or "",
        "api",
        creator=channel.creator,
        organisation=channel.organisation,
        channel=channel.id,
    )
    return accept(connection, order, now_ms)


def _continued(connection: Connection, channel: Channel, message: ChannelMessage, specialist: str) -> str | None:
    """Return the name of the task to continue, if any: the completed one whose answer the message replies to."""
    if message.reply_to is None:
        return None
    given = channel_rows.answer_behind(connection, message.reply_to)
    if given is None or given.specialist != specialist or given.task_id is None:
        return None
    task = task_rows.find(connection, given.task_id)
    # A task is continued by name, and a name means the newest task that has it.
    return task.name if task is not None and task.state == "COMPLETED" and task.channel == channel.id else None


def _result(connection: Connection, answer: ChannelAnswer) -> tuple[MessageRole, str]:
    task = None if answer.task_id is None else task_rows.find(connection, answer.task_id)
    if task is None:
        return MessageRole.SYSTEM, f"{answer.specialist} will not answer: its task is no longer kept."
    run = None if task.last_run_id is None else run_rows.find(connection, task.last_run_id)
    outcome = None if run is None or run.outcome is None else Outcome.model_validate(run.outcome)
    if task.state == "COMPLETED":
        return MessageRole.ASSISTANT, (outcome.text if outcome is not None else None) or "Done."
    why = f" ({task.reason})" if task.reason else ""
    return MessageRole.SYSTEM, f"{answer.specialist} will not answer: its task {task.name} is {task.state}{why}."


def _ask_which(
    connection: Connection, channel: Channel, message: ChannelMessage, among: Sequence[str], now_ms: int
) -> None:
    """Ask the author which specialist is meant; the author's answer mentions one."""
    names = " or ".join(f"`{name}`" for name in among)
    channel_rows.add_message(
        connection,
        ChannelMessage(
            channel_id=channel.id,
            author=channel.id,
            role=MessageRole.SYSTEM.value,
            content=f"Who should answer: {names}? Mention one of them.",
            reply_to=message.id,
            attachments=[],
            reason=TriageReason.NO_TRIGGER.value,
            decision=TriageDecision(reason=TriageReason.NO_TRIGGER).model_dump(mode="json"),
            created_ms=now_ms,
        ),
    )


def _attachment(new: NewAttachment) -> dict[str, object]:
    state = AttachmentState.PENDING if new.text is None else AttachmentState.PROCESSED
    return Attachment(id=new.id, name=new.name, media_type=new.media_type, state=state, text=new.text).model_dump(
        mode="json"
    )
