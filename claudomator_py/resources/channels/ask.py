"""Channels and their messages in the shapes of the API, and how triage did in them."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from sqlalchemy import Connection

from claudomator_py.domain.channel import AnswerState, Attachment, ChannelSettings, MarkVerdict
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.shape import Page
from claudomator_py.domain.triage import TriageReason
from claudomator_py.domain.units import DAY_MS
from claudomator_py.resources import cursors
from claudomator_py.resources.channels import (
    AnswerView,
    AttachmentView,
    ChannelStatsView,
    ChannelView,
    MessageView,
    ParticipantView,
    RuleStatsView,
    StrategiesView,
    TriageView,
)
from claudomator_py.store import channel_rows
from claudomator_py.store.stored_json import readable
from claudomator_py.store.tables import Channel, ChannelMessage
from claudomator_py.tasks.channels import members_of

_NOT_READ = TriageView(reason=TriageReason.NO_TRIGGER)
"""Of a message whose decision cannot be read."""


def channel_view(connection: Connection, channel: Channel) -> ChannelView:
    """Return the channel with those who take part."""
    rows = channel_rows.members(connection, channel.id)
    muted = {one.id: one.muted_until_ms for one in rows}
    return ChannelView.of(
        channel,
        primary=channel.primary_agent,
        settings=readable(ChannelSettings, channel.settings) or ChannelSettings(),
        participants=tuple(ParticipantView.of(one, muted_until=muted[one.id]) for one in members_of(connection, rows)),
    )


def channel_page(connection: Connection, by: Principal, cursor: str | None, limit: int) -> Page[ChannelView]:
    """Return a part of the channels that exist for the principal, by id. Raises BadCursor."""
    listed = {"list": "channels"}
    after = None if cursor is None else cursors.read_text(cursor, listed)
    found = channel_rows.seen(connection, by, after=after, limit=limit + 1)
    part, following = cursors.part(found, limit, lambda one: cursors.write_text(one.id, listed))
    return Page[ChannelView](items=tuple(channel_view(connection, one) for one in part), next_cursor=following)


def message_page(connection: Connection, channel: Channel, cursor: str | None, limit: int) -> Page[MessageView]:
    """Return a part of a channel's messages, newest first. Raises BadCursor."""
    listed = {"list": "messages", "channel": channel.id}
    before = None if cursor is None else cursors.read_number(cursor, listed)
    found = channel_rows.messages(connection, channel.id, before=before, limit=limit + 1)
    part, following = cursors.part(found, limit, lambda one: cursors.write_number(one.id or 0, listed))
    return Page[MessageView](items=tuple(message_views(connection, part)), next_cursor=following)


def message_views(connection: Connection, messages: Sequence[ChannelMessage]) -> list[MessageView]:
    """Return the messages with what became of their answers."""
    answers = defaultdict[int, list[AnswerView]](list)
    for answer in channel_rows.answers(connection, [one.id or 0 for one in messages]):
        answers[answer.message_id].append(AnswerView.of(answer, message_id=answer.given_id))
    return [
        MessageView.of(
            one,
            attachments=tuple(view for kept in one.attachments if (view := _attachment_view(kept)) is not None),
            decision=readable(TriageView, one.decision) or _NOT_READ,
            answers=tuple(answers[one.id or 0]),
        )
        for one in messages
    ]


def _attachment_view(stored: dict[str, object]) -> AttachmentView | None:
    one = readable(Attachment, stored)
    return None if one is None else AttachmentView.of(one, chars=None if one.text is None else len(one.text))


def channel_stats(connection: Connection, channel: Channel, days: int, now_ms: int) -> ChannelStatsView:
    """Return how triage did in the last days."""
    since_ms = now_ms - days * DAY_MS
    found = channel_rows.figures(connection, channel.id, since_ms)
    states = channel_rows.answer_counts(connection, channel.id, since_ms)
    by_rule = defaultdict[str, Counter[str]](Counter)
    for row in found:
        told = by_rule[row.reason]
        told["messages"] += row.messages
        told["shadowed"] += row.shadowed
        told["differs"] += row.differs
        if row.verdict is not None:
            told[row.verdict] += row.messages
            told["compared"] += row.shadowed
            told["compared_right"] += row.shadowed * (row.verdict == MarkVerdict.RIGHT)
            told["shadow_right"] += row.shadow_right
    return ChannelStatsView(
        days=days,
        messages=sum(told["messages"] for told in by_rule.values()),
        rules=tuple(
            RuleStatsView(
                reason=reason,
                messages=by_rule[reason]["messages"],
                right=by_rule[reason][MarkVerdict.RIGHT],
                should_have=by_rule[reason][MarkVerdict.SHOULD_HAVE],
                should_not_have=by_rule[reason][MarkVerdict.SHOULD_NOT_HAVE],
                shadow_differs=by_rule[reason]["differs"],
            )
            for reason in TriageReason
        ),
        shadowed=sum(told["shadowed"] for told in by_rule.values()),
        compared=StrategiesView(
            marked=sum(told["compared"] for told in by_rule.values()),
            right=sum(told["compared_right"] for told in by_rule.values()),
            shadow_right=sum(told["shadow_right"] for told in by_rule.values()),
        ),
        skipped={why: count for (state, why), count in states.items() if state == AnswerState.SKIPPED and why},
        answered=sum(count for (state, _), count in states.items() if state == AnswerState.ANSWERED),
    )
