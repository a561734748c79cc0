"""Channels and their messages, as typed calls."""

from collections.abc import Iterator

from claudomator_py.client.transport import (
    LARGEST_PAGE,
    Transport,
    all_items,
    body_of,
    change_headers,
    part_of,
    path_segment,
)
from claudomator_py.domain.channel import MarkVerdict, NewChannel, NewMessage
from claudomator_py.domain.views import (
    Page,
)
from claudomator_py.domain.views.channels import (
    AttachmentRequest,
    ChannelStatsView,
    ChannelView,
    MessageView,
    MuteRequest,
    SettingsRequest,
)


class ChannelCalls(Transport):
    """See ``client.http.Client``."""

    def channels(self, *, cursor: str | None = None, limit: int = 50) -> Page[ChannelView]:
        """One part of the channels, by id."""
        query = part_of(cursor, limit)
        return self._view(Page[ChannelView], "GET", "/v1/channels", params=query)

    def all_channels(self) -> Iterator[ChannelView]:
        """All channels, by id, fetched as they are read."""
        return all_items(lambda cursor: self.channels(cursor=cursor, limit=LARGEST_PAGE))

    def channel(self, ref: str) -> ChannelView:
        """One channel. ref: its id or its name, as in all that follows."""
        return self._view(ChannelView, "GET", _channel(ref))

    def create_channel(self, wanted: NewChannel, *, idempotency_key: str | None = None) -> ChannelView:
        """Create it."""
        document = body_of(wanted)
        return self._view(ChannelView, "POST", "/v1/channels", json=document, headers=change_headers(idempotency_key))

    def change_channel_settings(
        self, ref: str, wanted: SettingsRequest, *, if_version: int | None = None
    ) -> ChannelView:
        """Replace its settings and its primary."""
        document = body_of(wanted)
        headers = change_headers(None, if_version)
        return self._view(ChannelView, "PUT", f"{_channel(ref)}/settings", json=document, headers=headers)

    def join_channel(self, ref: str, specialist: str) -> ChannelView:
        """Add a specialist. Harmless when repeated."""
        return self._view(ChannelView, "POST", f"{_channel(ref)}/participants", json={"specialist": specialist})

    def leave_channel(self, ref: str, participant: str) -> ChannelView:
        """Remove a participant. Harmless when repeated."""
        return self._view(ChannelView, "DELETE", f"{_channel(ref)}/participants/{path_segment(participant)}")

    def mute_participant(self, ref: str, participant: str, wanted: MuteRequest) -> ChannelView:
        """Mute a specialist for a time, or unmute it."""
        path = f"{_channel(ref)}/participants/{path_segment(participant)}/mute"
        return self._view(ChannelView, "POST", path, json=body_of(wanted))

    def messages(self, ref: str, *, cursor: str | None = None, limit: int = 50) -> Page[MessageView]:
        """One part of a channel's messages, newest first."""
        query = part_of(cursor, limit)
        return self._view(Page[MessageView], "GET", f"{_channel(ref)}/messages", params=query)

    def message(self, ref: str, message: int) -> MessageView:
        """One message of a channel."""
        return self._view(MessageView, "GET", f"{_channel(ref)}/messages/{message}")

    def post_message(self, ref: str, message: NewMessage, *, idempotency_key: str | None = None) -> MessageView:
        """Post a message in a channel."""
        document = body_of(message)
        return self._view(
            MessageView, "POST", f"{_channel(ref)}/messages", json=document, headers=change_headers(idempotency_key)
        )

    def process_attachment(self, ref: str, message: int, attachment: str, wanted: AttachmentRequest) -> MessageView:
        """Say what came of processing an attachment."""
        path = f"{_channel(ref)}/messages/{message}/attachments/{path_segment(attachment)}"
        return self._view(MessageView, "PUT", path, json=body_of(wanted))

    def mark_message(self, ref: str, message: int, verdict: MarkVerdict | None) -> MessageView:
        """Mark whether the right participants answered a message; None: nothing any more."""
        path = f"{_channel(ref)}/messages/{message}/verdict"
        return self._view(MessageView, "PUT", path, json={"verdict": verdict})

    def channel_stats(self, ref: str, *, days: int = 30) -> ChannelStatsView:
        """How triage did in a channel in the last days, 1 to 365."""
        return self._view(ChannelStatsView, "GET", f"{_channel(ref)}/stats", params={"days": days})


def _channel(ref: str) -> str:
    """The path of a channel, by its id or name."""
    return f"/v1/channels/{path_segment(ref)}"
