"""Channels: creating and changing them, taking part, and writing in them."""

import time
import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from sqlalchemy import Connection

from claudomator_py.dispatch.deciding import Decided
from claudomator_py.domain.channel import ChannelSettings, MemberRole, NewChannel, NewMessage
from claudomator_py.domain.errors import Conflict, Forbidden, Invalid, NotFound, Problem, shown
from claudomator_py.domain.principal import Principal, RequestKey, Role, creator_of
from claudomator_py.domain.shape import Page
from claudomator_py.environment.workdirs import Workdirs
from claudomator_py.ports import Clock
from claudomator_py.resources import cursors
from claudomator_py.resources.channels import (
    AttachmentRequest,
    ChannelCalls,
    ChannelStatsView,
    ChannelView,
    JoinRequest,
    MarkRequest,
    MessageView,
    MuteRequest,
    SettingsRequest,
)
from claudomator_py.resources.channels.views import channel_view, message_views, stats_view
from claudomator_py.resources.session import KeyedService, reading, writing
from claudomator_py.routing.profile import Request
from claudomator_py.routing.questions import Reply, ReplyQuestion
from claudomator_py.routing.triage import triage, without_mentions
from claudomator_py.store import channel_rows
from claudomator_py.store.database import or_unavailable
from claudomator_py.store.events import record
from claudomator_py.store.tables import Channel, ChannelMessage
from claudomator_py.surface import answers
from claudomator_py.tasks import messages
from claudomator_py.tasks.channels import add_member, add_specialist, find, members_of
from claudomator_py.tasks.messages import Policy, PostedMessage, TriageInputs, no_policy
from claudomator_py.values import dataclass
from claudomator_py.workers.answers import place_key

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

    @reading(ChannelCalls.channels)
    def page(self, connection: Connection, cursor: str | None = None, limit: int = 50) -> Page[ChannelView]:
        """Return a page of the list, by id. Raises BadCursor."""
        listed = {"list": "channels"}
        rows = channel_rows.seen(connection, self._by, after=cursors.read_text(cursor, listed), limit=limit + 1)
        views = partial(map, partial(channel_view, connection))
        return cursors.page(rows, limit, listed, lambda row: (row.id,), views)

    @reading(ChannelCalls.channel)
    def get(self, connection: Connection, ref: str) -> ChannelView:
        """Return the channel."""
        return channel_view(connection, find(connection, ref, self._by))

    @answers(ChannelCalls.create_channel)
    def create(self, wanted: NewChannel, *, key: RequestKey | None = None) -> ChannelView:
        """Create it with these specialists and the caller as participants. Raises Conflict if the name is taken,
        Invalid if a specialist does not exist for the caller, and Forbidden for a webhook that only an administrator
        may set up."""
        self._check(wanted.settings, None)
        return self._once(key, ChannelView, lambda: partial(self._created, wanted=wanted))

    def _created(self, connection: Connection, *, wanted: NewChannel) -> ChannelView:
        namesakes = channel_rows.find(connection, wanted.name, self._by)
        if any(channel.organisation == self._by.organisation for channel in namesakes):
            raise Conflict(f"There is a channel {wanted.name} already.", remedy="Choose another name.")
        now_ms = self.clock()
        channel = Channel(
            id=str(uuid.uuid4()),
            name=wanted.name,
            primary_agent=wanted.primary,
            settings=wanted.settings.model_dump(mode="json"),
            creator=self._by.id,
            organisation=self._by.organisation,
            created_ms=now_ms,
            updated_ms=now_ms,
        )
        channel.insert(connection)
        add_member(connection, channel.id, self._by.id, MemberRole.USER, now_ms, username=self._by.id)
        for specialist in (*wanted.participants, *((wanted.primary,) if wanted.primary else ())):
            add_specialist(connection, channel, specialist, now_ms)
        record(connection, now_ms, "channel_created", data={"channel": channel.name})
        return channel_view(connection, channel)

    @answers(ChannelCalls.change_channel_settings)
    def change_settings(
        self, ref: str, wanted: SettingsRequest, *, versions: Collection[int] | None = None
    ) -> ChannelView:
        """Set the settings and the primary to these; the primary takes part from then on. Raises StaleVersion, Invalid,
        Forbidden."""
        before = self._read(lambda connection: find(connection, ref, self._by))
        self._check(wanted.settings, ChannelSettings.model_validate(before.settings))

        def change(connection: Connection) -> ChannelView:
            channel, now_ms = find(connection, before.id, self._by, versions), self.clock()
            if wanted.primary is not None:
                add_specialist(connection, channel, wanted.primary, now_ms)
            settings = wanted.settings.model_dump(mode="json")
            record(connection, now_ms, "channel_changed", data={"channel": channel.name})
            return _changed(connection, channel, now_ms, settings=settings, primary_agent=wanted.primary)

        return self._write(change)

    @writing(ChannelCalls.delete_channel)
    def delete(self, connection: Connection, ref: str, *, versions: Collection[int] | None = None) -> None:
        """Delete it with its messages; tasks that were to answer them go on. Raises StaleVersion."""
        channel = find(connection, ref, self._by, versions)
        channel_rows.delete_channel(connection, channel.id)
        record(connection, self.clock(), "channel_deleted", data={"channel": channel.name})

    @writing(ChannelCalls.join_channel)
    def join(self, connection: Connection, ref: str, wanted: JoinRequest) -> ChannelView:
        """Add a specialist. Repeating it changes nothing. Raises Invalid, and Conflict if the channel is full."""
        channel, now_ms = find(connection, ref, self._by), self.clock()
        is_new = add_specialist(connection, channel, wanted.specialist, now_ms)
        return _changed(connection, channel, now_ms) if is_new else channel_view(connection, channel)

    @writing(ChannelCalls.leave_channel)
    def leave(self, connection: Connection, ref: str, member_id: str) -> ChannelView:
        """Remove a participant. Repeating it changes nothing. If the primary leaves, the channel has none."""
        channel = find(connection, ref, self._by)
        if all(member.id != member_id for member in channel_rows.members(connection, channel.id)):
            return channel_view(connection, channel)
        channel_rows.remove_member(connection, channel.id, member_id)
        primary = None if channel.primary_agent == member_id else channel.primary_agent
        return _changed(connection, channel, self.clock(), primary_agent=primary)

    @writing(ChannelCalls.mute_participant)
    def mute(self, connection: Connection, ref: str, member_id: str, wanted: MuteRequest) -> ChannelView:
        """Mute a specialist for that long, or unmute it. Raises NotFound if it does not take part."""
        channel, now_ms = find(connection, ref, self._by), self.clock()
        members = channel_rows.members(connection, channel.id)
        if not any(member.id == member_id and member.role == MemberRole.AGENT for member in members):
            remedy = f"See `claudomator channel show {channel.name}`."
            raise NotFound(f"No specialist {shown(member_id)!r} takes part.", remedy=remedy)
        until_ms = None if wanted.duration is None else now_ms + wanted.duration
        channel_rows.change_member(connection, channel.id, member_id, muted_until_ms=until_ms)
        return _changed(connection, channel, now_ms)

    @reading(ChannelCalls.messages)
    def messages(
        self, connection: Connection, ref: str, cursor: str | None = None, limit: int = 50
    ) -> Page[MessageView]:
        """Return a page of its messages, newest first. Raises BadCursor."""
        channel = find(connection, ref, self._by)
        listed = {"list": "messages", "channel": channel.id}
        before = cursors.read_number(cursor, listed)
        rows = channel_rows.messages(connection, channel.id, before=before, limit=limit + 1)
        return cursors.page(rows, limit, listed, lambda row: (row.id or 0,), partial(message_views, connection))

    @reading(ChannelCalls.message)
    def message(self, connection: Connection, ref: str, message_id: int) -> MessageView:
        """Return one message. Raises NotFound."""
        channel = find(connection, ref, self._by)
        return message_views(connection, [_message(connection, channel, message_id)])[0]

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
            result = self._read(lambda connection: find(connection, ref, self._by))
            advice = self._advice(result, written)

            def change(connection: Connection) -> MessageView:
                channel = find(connection, result.id, self._by)
                posted = messages.post(connection, channel, written, advice, self.clock())
                return message_views(connection, [posted])[0]

            return change

        return self._once(key, MessageView, prepare)

    @answers(ChannelCalls.process_attachment)
    def processed(self, ref: str, message_id: int, attachment_id: str, wanted: AttachmentRequest) -> MessageView:
        """Record the result of processing an attachment. Raises NotFound."""
        channel = self._read(lambda connection: find(connection, ref, self._by))
        advice = TriageInputs(dir_key=self._place(channel), policy=self.policy)

        def transaction(connection: Connection) -> MessageView:
            message = _message(connection, channel, message_id)
            messages.update_attachment(
                connection, channel, message, attachment_id, wanted.state, wanted.text, advice, self.clock()
            )
            return message_views(connection, [message])[0]

        return self._write(transaction)

    @writing(ChannelCalls.mark_message)
    def mark(self, connection: Connection, ref: str, message_id: int, wanted: MarkRequest) -> MessageView:
        """Record whether the right participants answered a message. Raises NotFound."""
        channel = find(connection, ref, self._by)
        messages.mark(connection, _message(connection, channel, message_id), wanted.verdict, self._by)
        return message_views(connection, [_message(connection, channel, message_id)])[0]

    @reading(ChannelCalls.channel_stats)
    def stats(self, connection: Connection, ref: str, days: int = 30) -> ChannelStatsView:
        """Return how triage did in it over the last days."""
        return stats_view(connection, find(connection, ref, self._by), days, self.clock())

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
            members = members_of(connection, channel_rows.members(connection, channel.id))
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


def _message(connection: Connection, channel: Channel, message_id: int) -> ChannelMessage:
    message = channel_rows.message(connection, channel.id, message_id)
    if message is None:
        remedy = f"See `claudomator channel read {channel.name}`."
        raise NotFound(f"There is no message {message_id} in {channel.name}.", remedy=remedy)
    return message


def _changed(connection: Connection, channel: Channel, now_ms: int, **values: Any) -> ChannelView:
    """Change columns of the channel, whose version rises, and return it."""
    channel_rows.change(connection, channel, now_ms, **values)
    return channel_view(connection, channel_rows.get(connection, channel.id))
