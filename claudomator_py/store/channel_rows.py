"""Rows of channels: members, messages, and the specialists who are to answer them."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from claudomator_py.domain.channel import AnswerState, MarkVerdict
from claudomator_py.domain.lifecycle import ENDED
from claudomator_py.domain.principal import Principal
from claudomator_py.store.statement import Selection
from claudomator_py.store.tables import (
    CHANNEL,
    CHANNEL_ANSWER,
    CHANNEL_MEMBER,
    CHANNEL_MESSAGE,
    TASK,
    Channel,
    ChannelAnswer,
    ChannelMember,
    ChannelMessage,
)
from claudomator_py.store.visibility import rows_seen
from claudomator_py.values import dataclass

_READY = Selection(
    ChannelAnswer,  # asked after nearly every commit
    select(CHANNEL_ANSWER)
    .join(TASK, TASK.c.id == CHANNEL_ANSWER.c.task_id, isouter=True)
    .where(CHANNEL_ANSWER.c.state == AnswerState.ASKED.value, TASK.c.id.is_(None) | TASK.c.state.in_(ENDED))
    .order_by(CHANNEL_ANSWER.c.message_id, CHANNEL_ANSWER.c.specialist)
    .limit(bindparam("most")),
)


def get(connection: Connection, channel_id: str) -> Channel:
    """Return the channel with this id, whoever may see it. Raises LookupError."""
    if (channel := Channel.find(connection, CHANNEL.c.id == channel_id)) is None:
        raise LookupError(f"there is no channel {channel_id}")
    return channel


def delete_channel(connection: Connection, channel_id: str) -> None:
    """Delete the channel with its members, messages and answers."""
    for table in (CHANNEL_ANSWER, CHANNEL_MESSAGE, CHANNEL_MEMBER):
        connection.execute(delete(table).where(table.c.channel_id == channel_id))
    connection.execute(delete(CHANNEL).where(CHANNEL.c.id == channel_id))


def find(connection: Connection, ref: str, by: Principal) -> Sequence[Channel]:
    """Return the channels with this id or name that are visible to the principal. An id or a channel of its own
    organisation takes precedence over others."""
    if "\0" in ref:  # PostgreSQL refuses NUL in text
        return []
    query = select(CHANNEL).where((CHANNEL.c.id == ref) | (CHANNEL.c.name == ref), rows_seen(CHANNEL, by))
    channels = Channel.rows(connection, query.order_by(CHANNEL.c.id))
    own = [channel for channel in channels if channel.id == ref or channel.organisation == by.organisation]
    return own or channels


def seen(connection: Connection, by: Principal, *, after: str | None = None, limit: int = 50) -> Sequence[Channel]:
    """Return the channels visible to the principal, ordered by id. after: only those with a greater id."""
    query = select(CHANNEL).where(rows_seen(CHANNEL, by)).order_by(CHANNEL.c.id).limit(limit)
    if after is not None:
        query = query.where(CHANNEL.c.id > after)
    return Channel.rows(connection, query)


def change(connection: Connection, channel: Channel, now_ms: int, **changes: Any) -> None:
    """Update columns of the channel and increment its version."""
    values = {**changes, "version": channel.version + 1, "updated_ms": now_ms}
    connection.execute(update(CHANNEL).where(CHANNEL.c.id == channel.id).values(values))


def members(connection: Connection, channel_id: str) -> Sequence[ChannelMember]:
    """Return the members in the order in which they joined."""
    query = select(CHANNEL_MEMBER).where(CHANNEL_MEMBER.c.channel_id == channel_id)
    return ChannelMember.rows(connection, query.order_by(CHANNEL_MEMBER.c.joined_ms, CHANNEL_MEMBER.c.id))


def change_member(connection: Connection, channel_id: str, member_id: str, **changes: Any) -> None:
    """Update columns of the member."""
    chosen = (CHANNEL_MEMBER.c.channel_id == channel_id) & (CHANNEL_MEMBER.c.id == member_id)
    connection.execute(update(CHANNEL_MEMBER).where(chosen).values(changes))


def remove_member(connection: Connection, channel_id: str, member_id: str) -> None:
    """Remove a member. Its messages stay."""
    chosen = (CHANNEL_MEMBER.c.channel_id == channel_id) & (CHANNEL_MEMBER.c.id == member_id)
    connection.execute(CHANNEL_MEMBER.delete().where(chosen))


def add_message(connection: Connection, message: ChannelMessage) -> ChannelMessage:
    """Insert a message and return it with its id. Raises IntegrityError if its external id exists."""
    columns = [column.name for column in CHANNEL_MESSAGE.columns if column.name != "id"]
    values = {name: getattr(message, name) for name in columns}
    given = connection.execute(insert(CHANNEL_MESSAGE).values(values).returning(CHANNEL_MESSAGE)).one()
    return ChannelMessage(**given._mapping)


def message(connection: Connection, channel_id: str, message_id: int) -> ChannelMessage | None:
    """Return the channel's message with this id, or None."""
    return ChannelMessage.find(
        connection, CHANNEL_MESSAGE.c.channel_id == channel_id, CHANNEL_MESSAGE.c.id == message_id
    )


def of_external(connection: Connection, channel_id: str, external_id: str) -> ChannelMessage | None:
    """Return the message with this external id, given by an incoming webhook, or None."""
    return ChannelMessage.find(
        connection, CHANNEL_MESSAGE.c.channel_id == channel_id, CHANNEL_MESSAGE.c.external_id == external_id
    )


def messages(
    connection: Connection, channel_id: str, *, before: int | None = None, limit: int = 50
) -> Sequence[ChannelMessage]:
    """Return the channel's messages, newest first. before: only those with a smaller id."""
    query = select(CHANNEL_MESSAGE).where(CHANNEL_MESSAGE.c.channel_id == channel_id)
    if before is not None:
        query = query.where(CHANNEL_MESSAGE.c.id < before)
    return ChannelMessage.rows(connection, query.order_by(CHANNEL_MESSAGE.c.id.desc()).limit(limit))


def change_message(connection: Connection, message_id: int, **changes: Any) -> None:
    """Update columns of the message."""
    connection.execute(update(CHANNEL_MESSAGE).where(CHANNEL_MESSAGE.c.id == message_id).values(changes))


def thread(connection: Connection, message: ChannelMessage, most: int) -> Sequence[ChannelMessage]:
    """Return the chain of messages that this one replies to, oldest first, without itself. most: maximum length."""
    messages: list[ChannelMessage] = []
    answered = message.reply_to
    while answered is not None and len(messages) < most:
        earlier = ChannelMessage.find(connection, CHANNEL_MESSAGE.c.id == answered)
        if earlier is None or earlier.channel_id != message.channel_id:
            break
        messages.append(earlier)
        answered = earlier.reply_to
    return messages[::-1]


def change_answer(connection: Connection, answer: ChannelAnswer, **changes: Any) -> None:
    """Update columns of the answer."""
    chosen = (CHANNEL_ANSWER.c.message_id == answer.message_id) & (CHANNEL_ANSWER.c.specialist == answer.specialist)
    connection.execute(update(CHANNEL_ANSWER).where(chosen).values(changes))


def answers(connection: Connection, message_ids: Collection[int]) -> Sequence[ChannelAnswer]:
    """Return the answers to these messages, ordered by message and specialist."""
    query = select(CHANNEL_ANSWER).where(CHANNEL_ANSWER.c.message_id.in_(sorted(message_ids)))
    return ChannelAnswer.rows(connection, query.order_by(CHANNEL_ANSWER.c.message_id, CHANNEL_ANSWER.c.specialist))


def answer_behind(connection: Connection, message_id: int) -> ChannelAnswer | None:
    """Return the answer that was given by this message, or None."""
    return ChannelAnswer.find(connection, CHANNEL_ANSWER.c.given_id == message_id)


def question_behind(connection: Connection, channel_id: str, task_id: str) -> ChannelMessage | None:
    """Return the person's message that led to the task: the one the task answers or, if an agent wrote that, its
    origin. None if it is gone."""
    asked = select(CHANNEL_ANSWER.c.message_id).where(
        CHANNEL_ANSWER.c.channel_id == channel_id, CHANNEL_ANSWER.c.task_id == task_id
    )
    for message in ChannelMessage.rows(connection, select(CHANNEL_MESSAGE).where(CHANNEL_MESSAGE.c.id.in_(asked))):
        return message if not message.hops else by_a_person(connection, message)
    return None


def by_a_person(connection: Connection, message: ChannelMessage) -> ChannelMessage | None:
    """Return the person's message at the origin of an agent's message, or None if it is gone."""
    earlier = thread(connection, message, message.hops)
    return next((message for message in reversed(earlier) if not message.hops), None)


def question_times(connection: Connection, channel_id: str, specialist: str, since_ms: int) -> Sequence[int]:
    """Return when the specialist was asked in the channel after ``since_ms``, newest first, in epoch milliseconds."""
    query = select(CHANNEL_ANSWER.c.at_ms).where(
        CHANNEL_ANSWER.c.channel_id == channel_id,
        CHANNEL_ANSWER.c.specialist == specialist,
        CHANNEL_ANSWER.c.at_ms > since_ms,
        CHANNEL_ANSWER.c.state != AnswerState.SKIPPED.value,
    )
    return connection.execute(query.order_by(CHANNEL_ANSWER.c.at_ms.desc())).scalars().all()


def ready(connection: Connection, limit: int = 100) -> Sequence[ChannelAnswer]:
    """Return the answers still open whose tasks have ended or are gone."""
    return _READY.all(connection, most=limit)


@dataclass(frozen=True, slots=True)
class RuleFigures:
    """Counts of messages decided by one rule and marked with one verdict."""

    reason: str
    verdict: str | None
    """An operator's verdict, see ``domain.channel.MarkVerdict``. None: not marked."""
    messages: int
    shadowed: int
    """Messages also decided by the shadow settings."""
    differs: int
    """Messages for which the shadow settings chose other specialists."""
    shadow_right: int
    """Messages for which the shadow settings chose as the verdict says is right."""


def figures(connection: Connection, channel_id: str, since_ms: int) -> Sequence[RuleFigures]:
    """Count the channel's messages after ``since_ms``, without those that the channel itself wrote."""
    wanted = (
        CHANNEL_MESSAGE.c.channel_id == channel_id,
        CHANNEL_MESSAGE.c.created_ms > since_ms,
        CHANNEL_MESSAGE.c.author != channel_id,
    )
    reason, verdict = CHANNEL_MESSAGE.c.reason, CHANNEL_MESSAGE.c.verdict
    counted = select(reason, verdict, func.count()).where(*wanted).group_by(reason, verdict)
    numbers = {(rule, mark): number for rule, mark, number in connection.execute(counted)}
    compared = select(reason, verdict, CHANNEL_MESSAGE.c.decision, CHANNEL_MESSAGE.c.shadow)
    shadowed, differs, right = Counter[Any](), Counter[Any](), Counter[Any]()
    for row in connection.execute(compared.where(*wanted, CHANNEL_MESSAGE.c.shadow.is_not(None))):
        key = row.reason, row.verdict
        shadowed[key] += 1
        differs[key] += row.shadow["agents"] != row.decision["agents"]
        right[key] += _is_right(row.shadow["agents"], row.decision["agents"], row.verdict)
    return [RuleFigures(*key, number, shadowed[key], differs[key], right[key]) for key, number in numbers.items()]


def _is_right(agents: Sequence[str], marked: Sequence[str], verdict: str | None) -> bool:
    """Return whether answers by ``agents`` are right, given the verdict on answers by ``marked``."""
    match verdict:
        case MarkVerdict.RIGHT:
            return agents == marked
        case MarkVerdict.SHOULD_HAVE:
            return bool(agents) and agents != marked
        case MarkVerdict.SHOULD_NOT_HAVE:
            return not agents
    return False


def answer_counts(connection: Connection, channel_id: str, since_ms: int) -> dict[tuple[str, str | None], int]:
    """Return the number of the channel's answers after ``since_ms`` by state and reason for skipping."""
    query = select(CHANNEL_ANSWER.c.state, CHANNEL_ANSWER.c.skipped, func.count()).where(
        CHANNEL_ANSWER.c.channel_id == channel_id, CHANNEL_ANSWER.c.at_ms > since_ms
    )
    rows = connection.execute(query.group_by(CHANNEL_ANSWER.c.state, CHANNEL_ANSWER.c.skipped))
    return {(row[0], row[1]): row[2] for row in rows}
