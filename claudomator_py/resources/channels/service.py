"""Channels: creating and changing them, taking part, and writing in them."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial

from sqlalchemy import Connection

from claudomator_py.dispatch.deciding import Decided
from claudomator_py.domain.channel import (
    AnswerState,
    Attachment,
    ChannelSettings,
    MarkVerdict,
    NewChannel,
    NewMessage,
    TriageReason,
)
from claudomator_py.domain.errors import Forbidden, Invalid, NotFound, Problem
from claudomator_py.domain.principal import Principal, RequestKey, Role, creator_of
from claudomator_py.domain.shape import Page
from claudomator_py.domain.units import DAY_MS
from claudomator_py.environment.workdirs import Workdirs
from claudomator_py.ports import Clock
from claudomator_py.resources import cursors
from claudomator_py.resources.channels import (
    AnswerView,
    AttachmentRequest,
    AttachmentView,
    ChannelCalls,
    ChannelStatsView,
    ChannelView,
    JoinRequest,
    MarkRequest,
    MessageView,
    MuteRequest,
    ParticipantView,
    RuleStatsView,
    SettingsRequest,
    StrategiesView,
    TriageView,
)
from claudomator_py.resources.session import KeyedService
from claudomator_py.routing.profile import Request
from claudomator_py.routing.questions import Reply, ReplyQuestion
from claudomator_py.routing.triage import triage, without_mentions
from claudomator_py.store import channel_rows
from claudomator_py.store.database import or_unavailable
from claudomator_py.store.stored_json import readable
from claudomator_py.store.tables import Channel, ChannelMessage
from claudomator_py.surface import answers
from claudomator_py.tasks import channels as changes
from claudomator_py.tasks import messages
from claudomator_py.tasks.channels import members_of
from claudomator_py.tasks.messages import Policy, PostedMessage, TriageInputs, no_policy
from claudomator_py.values import dataclass
from claudomator_py.workers.answers import place_key

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


Judge = Callable[[ReplyQuestion], Reply]
"""Returns whether the cheap model says in time that the primary should answer."""

Router = Callable[[Request, Principal], Decided | None]
"""See ``resources.routing.service.Router``."""


@dataclass(eq=False, repr=False)
class Channels(KeyedService):
    """The service of channels. Every method may raise ``domain.errors.ServiceError``.
    ref: a channel's id or name. versions: make the change only if the channel has one of these; None: any. key: a
    repeated request gets the answer to the first one.
    """

    clock: Clock
    workdirs: Callable[[], Workdirs]
    judge: Judge | None = None
    """None without a cheap model."""
    router: Router = lambda *_: None
    policy: Policy = no_policy
    """What the policy says of a message, before triage's own rules."""

    @answers(ChannelCalls.channels)
    def page(self, cursor: str | None = None, limit: int = 50) -> Page[ChannelView]:
        """Return a page of the list, by id. Raises BadCursor."""
        listed = {"list": "channels"}

        def read(connection: Connection) -> Page[ChannelView]:
            rows = channel_rows.seen(connection, self._by, after=cursors.read_text(cursor, listed), limit=limit + 1)
            views = partial(map, partial(channel_view, connection))
            return cursors.page(rows, limit, listed, lambda row: (row.id,), views)

        return self._read(read)

    @answers(ChannelCalls.channel)
    def get(self, ref: str) -> ChannelView:
        """Return the channel."""
        return self._read(lambda connection: channel_view(connection, changes.find(connection, ref, self._by)))

    @answers(ChannelCalls.create_channel)
    def create(self, wanted: NewChannel, *, key: RequestKey | None = None) -> ChannelView:
        """Create it. Raises Conflict, Invalid, or Forbidden for a webhook that only an administrator may set up."""
        self._check(wanted.settings, None)

        def change(connection: Connection) -> ChannelView:
            return channel_view(connection, changes.create(connection, wanted, self._by, self.clock()))

        return self._once(key, ChannelView, lambda: change)

    @answers(ChannelCalls.change_channel_settings)
    def change_settings(
        self, ref: str, wanted: SettingsRequest, *, versions: Collection[int] | None = None
    ) -> ChannelView:
        """Set the settings to these. Raises StaleVersion, Invalid, Forbidden."""
        before = self._read(lambda connection: changes.find(connection, ref, self._by))
        self._check(wanted.settings, ChannelSettings.model_validate(before.settings))
        return self._changed(
            before.id,
            lambda connection, channel: changes.change_settings(
                connection, channel, wanted.settings, wanted.primary, self.clock()
            ),
            versions,
        )

    @answers(ChannelCalls.delete_channel)
    def delete(self, ref: str, *, versions: Collection[int] | None = None) -> None:
        """Delete it with its messages. Raises StaleVersion."""

        def transaction(connection: Connection) -> None:
            changes.delete(connection, changes.find(connection, ref, self._by, versions), self.clock())

        self._write(transaction)

    @answers(ChannelCalls.join_channel)
    def join(self, ref: str, wanted: JoinRequest) -> ChannelView:
        """Add a specialist. Repeating it changes nothing."""
        return self._changed(
            ref, lambda connection, channel: changes.join(connection, channel, wanted.specialist, self.clock())
        )

    @answers(ChannelCalls.leave_channel)
    def leave(self, ref: str, member_id: str) -> ChannelView:
        """Remove a participant. Repeating it changes nothing."""
        return self._changed(
            ref, lambda connection, channel: changes.leave(connection, channel, member_id, self.clock())
        )

    @answers(ChannelCalls.mute_participant)
    def mute(self, ref: str, member_id: str, wanted: MuteRequest) -> ChannelView:
        """Mute a specialist for that long, or unmute it."""
        now_ms = self.clock()
        until_ms = None if wanted.duration is None else now_ms + wanted.duration
        return self._changed(
            ref, lambda connection, channel: changes.mute(connection, channel, member_id, until_ms, now_ms)
        )

    @answers(ChannelCalls.messages)
    def messages(self, ref: str, cursor: str | None = None, limit: int = 50) -> Page[MessageView]:
        """Return a page of its messages, newest first. Raises BadCursor."""

        def read(connection: Connection) -> Page[MessageView]:
            channel = changes.find(connection, ref, self._by)
            listed = {"list": "messages", "channel": channel.id}
            before = cursors.read_number(cursor, listed)
            rows = channel_rows.messages(connection, channel.id, before=before, limit=limit + 1)
            return cursors.page(rows, limit, listed, lambda row: (row.id or 0,), partial(message_views, connection))

        return self._read(read)

    @answers(ChannelCalls.message)
    def message(self, ref: str, message_id: int) -> MessageView:
        """Return one message. Raises NotFound."""

        def find(connection: Connection) -> MessageView:
            channel = changes.find(connection, ref, self._by)
            return message_views(connection, [_message(connection, channel, message_id)])[0]

        return self._read(find)

    @answers(ChannelCalls.post_message)
    def post(self, ref: str, message: NewMessage, *, key: RequestKey | None = None) -> MessageView:
        """Post a message as the caller; who answers is decided when this returns. Raises Invalid if it says nothing."""
        if not message.content.strip() and not message.attachments:
            problem = Problem(field="content", message="is empty", remedy="write a text, or attach something")
            raise Invalid.of([problem])
        return self.write(ref, PostedMessage(self._by.id, message), key=key)

    def write(self, ref: str, written: PostedMessage, *, key: RequestKey | None = None) -> MessageView:
        """Post a message as somebody on whose behalf the caller writes."""

        def prepare() -> Callable[[Connection], MessageView]:
            result = self._read(lambda connection: changes.find(connection, ref, self._by))
            advice = self._advice(result, written)

            def change(connection: Connection) -> MessageView:
                channel = changes.find(connection, result.id, self._by)
                posted = messages.post(connection, channel, written, advice, self.clock())
                return message_views(connection, [posted])[0]

            return change

        return self._once(key, MessageView, prepare)

    @answers(ChannelCalls.process_attachment)
    def processed(self, ref: str, message_id: int, attachment_id: str, wanted: AttachmentRequest) -> MessageView:
        """Record the result of processing an attachment. Raises NotFound."""
        channel = self._read(lambda connection: changes.find(connection, ref, self._by))
        advice = TriageInputs(dir_key=self._place(channel), policy=self.policy)

        def transaction(connection: Connection) -> MessageView:
            message = _message(connection, channel, message_id)
            messages.processed(
                connection, channel, message, attachment_id, wanted.state, wanted.text, advice, self.clock()
            )
            return message_views(connection, [message])[0]

        return self._write(transaction)

    @answers(ChannelCalls.mark_message)
    def mark(self, ref: str, message_id: int, wanted: MarkRequest) -> MessageView:
        """Record whether the right participants answered a message. Raises NotFound."""

        def transaction(connection: Connection) -> MessageView:
            channel = changes.find(connection, ref, self._by)
            messages.mark(connection, _message(connection, channel, message_id), wanted.verdict, self._by)
            return message_views(connection, [_message(connection, channel, message_id)])[0]

        return self._write(transaction)

    @answers(ChannelCalls.channel_stats)
    def stats(self, ref: str, days: int = 30) -> ChannelStatsView:
        """Return how triage did in it over the last days."""

        def read(connection: Connection) -> ChannelStatsView:
            channel = changes.find(connection, ref, self._by)
            since_ms = self.clock() - days * DAY_MS
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

        return self._read(read)

    def _advice(self, channel: Channel, written: PostedMessage) -> TriageInputs:
        """Ask, outside of the transaction, the cheap model, the router and the directory."""
        began = time.perf_counter_ns()
        wanted_yes: list[bool] = []
        wanted_best: list[Sequence[str]] = []

        def note_yes() -> bool:
            wanted_yes.append(True)
            return False

        def note_best(among: Sequence[str]) -> None:
            wanted_best.append(among)

        def look(connection: Connection) -> tuple[str, str]:
            settings = ChannelSettings.model_validate(channel.settings)
            members = changes.members_of(connection, channel_rows.members(connection, channel.id))
            incoming = messages.incoming_of(connection, channel, written)
            triage(incoming, settings, members, channel.primary_agent, is_yes=note_yes, best=note_best)
            primary = next((member.display_name for member in members if member.id == channel.primary_agent), None)
            return primary or "", without_mentions(written.message.content, members)

        primary, subject = self._read(look)
        advice = TriageInputs(dir_key=self._place(channel), policy=self.policy)
        if wanted_yes and self.judge is not None:
            reply = self.judge(ReplyQuestion(channel.name, primary, written.message.content))
            advice = replace(advice, reply=reply)
        if wanted_best:
            best = self._best(channel, subject, wanted_best[0])
            advice = replace(advice, best=lambda _: best)
        return replace(advice, latency_ms=round((time.perf_counter_ns() - began) / 1e6))

    def _best(self, channel: Channel, subject: str, among: Sequence[str]) -> str | None:
        """Return the one whose card best fits the message; None if nothing is routed."""
        with or_unavailable():
            decided = self.router(Request(subject, "", ()), creator_of(channel))
        candidates = () if decided is None or decided.record is None else decided.record.specialist_candidates
        return next((candidate.specialist for candidate in candidates if candidate.specialist in among), None)

    def _place(self, channel: Channel) -> str | None:
        return place_key(ChannelSettings.model_validate(channel.settings).working_dir, self.workdirs())

    def _check(self, settings: ChannelSettings, before: ChannelSettings | None) -> None:
        """Raises Invalid for a directory that no task may work in, and Forbidden for a webhook, which names a secret of
        the daemon, unless the caller administers the daemon."""
        if settings.working_dir is not None:
            problem = self.workdirs().problem(settings.working_dir, "settings.working_dir")
            if problem is not None:
                raise Invalid.of([problem])
        hook = settings.webhook
        if hook is None:
            return
        administers = self._by.role is Role.ADMIN and self._by.organisation is None
        if not administers and (before is None or hook != before.webhook):
            detail = f"{self._by.id} may not set up a webhook, which names a secret of the daemon."
            raise Forbidden(detail, remedy="Ask an administrator of the daemon to set it up.")
        if (hook.secret_env is None) == (hook.secret_file is None):
            message, remedy = "needs one of secret_env and secret_file", "write secret_env: NAME"
            raise Invalid.of([Problem(field="settings.webhook", message=message, remedy=remedy)])

    def _changed(
        self, ref: str, change: Callable[[Connection, Channel], Channel], versions: Collection[int] | None = None
    ) -> ChannelView:
        def transaction(connection: Connection) -> ChannelView:
            channel = changes.find(connection, ref, self._by, versions)
            return channel_view(connection, change(connection, channel))

        return self._write(transaction)


def _message(connection: Connection, channel: Channel, message_id: int) -> ChannelMessage:
    message = channel_rows.message(connection, channel.id, message_id)
    if message is None:
        raise NotFound(f"There is no message {message_id} in {channel.name}.", remedy="List its messages.")
    return message
