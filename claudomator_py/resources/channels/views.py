"""Channels, their messages, and how triage did in them, as views."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from sqlalchemy import Connection

from claudomator_py.domain.channel import AnswerState, Attachment, ChannelSettings, MarkVerdict, TriageReason
from claudomator_py.domain.units import DAY_MS
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
"""For a message whose decision cannot be read."""


def channel_view(connection: Connection, channel: Channel) -> ChannelView:
    """Return the channel with its participants."""
    rows = channel_rows.members(connection, channel.id)
    muted = {row.id: row.muted_until_ms for row in rows}
    return ChannelView.legible(
        channel,
        primary=channel.primary_agent,
        settings=readable(ChannelSettings, channel.settings) or ChannelSettings(),
        participants=tuple(
            ParticipantView.legible(member, muted_until=muted[member.id]) for member in members_of(connection, rows)
        ),
    )


def message_views(connection: Connection, messages: Sequence[ChannelMessage]) -> list[MessageView]:
    """Return the messages with their answers."""
    answers = defaultdict[int, list[AnswerView]](list)
    for answer in channel_rows.answers(connection, [row.id or 0 for row in messages]):
        answers[answer.message_id].append(AnswerView.legible(answer, message_id=answer.given_id))
    return [
        MessageView.legible(
            row,
            attachments=tuple(view for kept in row.attachments if (view := _attachment_view(kept)) is not None),
            decision=readable(TriageView, row.decision) or _NOT_READ,
            answers=tuple(answers[row.id or 0]),
        )
        for row in messages
    ]


def _attachment_view(stored: dict[str, object]) -> AttachmentView | None:
    attachment = readable(Attachment, stored)
    return (
        None
        if attachment is None
        else AttachmentView.of(attachment, chars=None if attachment.text is None else len(attachment.text))
    )


def stats_view(connection: Connection, channel: Channel, days: int, now_ms: int) -> ChannelStatsView:
    """Return how triage did in the channel over the last days."""
    since_ms = now_ms - days * DAY_MS
    figures = channel_rows.figures(connection, channel.id, since_ms)
    states = channel_rows.answer_counts(connection, channel.id, since_ms)
    by_rule = defaultdict[str, Counter[str]](Counter)
    for row in figures:
        value = by_rule[row.reason]
        value["messages"] += row.messages
        value["shadowed"] += row.shadowed
        value["differs"] += row.differs
        if row.verdict is not None:
            value[row.verdict] += row.messages
            value["compared"] += row.shadowed
            value["compared_right"] += row.shadowed * (row.verdict == MarkVerdict.RIGHT)
            value["shadow_right"] += row.shadow_right
    return ChannelStatsView(
        days=days,
        messages=sum(counts["messages"] for counts in by_rule.values()),
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
        shadowed=sum(counts["shadowed"] for counts in by_rule.values()),
        compared=StrategiesView(
            marked=sum(counts["compared"] for counts in by_rule.values()),
            right=sum(counts["compared_right"] for counts in by_rule.values()),
            shadow_right=sum(counts["shadow_right"] for counts in by_rule.values()),
        ),
        skipped={why: count for (state, why), count in states.items() if state == AnswerState.SKIPPED and why},
        answered=sum(count for (state, _), count in states.items() if state == AnswerState.ANSWERED),
    )
