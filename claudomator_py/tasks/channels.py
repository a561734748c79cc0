"""Changes to a channel, each in one transaction: create, change settings, delete, join, leave and mute."""

import uuid
from collections.abc import Collection, Sequence

from sqlalchemy import Connection

from claudomator_py.domain.channel import MAX_PARTICIPANTS, ChannelSettings, Member, MemberRole, NewChannel
from claudomator_py.domain.errors import (
    LIST_OF_SPECIALISTS,
    Conflict,
    Invalid,
    NotFound,
    Problem,
    StaleVersion,
    name_suggestion,
    shown,
)
from claudomator_py.domain.principal import Principal, creator_of
from claudomator_py.store import channel_rows, specialist_rows
from claudomator_py.store.events import record
from claudomator_py.store.stored_json import readable
from claudomator_py.store.tables import Channel, ChannelMember


def create(connection: Connection, request: NewChannel, by: Principal, now_ms: int) -> Channel:
    """Make the channel with these specialists and the caller as participants. Raises Conflict if the name is taken,
    Invalid if a specialist does not exist for the caller."""
    if any(channel.organisation == by.organisation for channel in channel_rows.find(connection, request.name, by)):
        raise Conflict(f"There is a channel {request.name} already.", remedy="Choose another name.")
    channel = Channel(
        id=str(uuid.uuid4()),
        name=request.name,
        primary_agent=request.primary,
        settings=request.settings.model_dump(mode="json"),
        creator=by.id,
        organisation=by.organisation,
        created_ms=now_ms,
        updated_ms=now_ms,
    )
    channel.insert(connection)
    add_member(connection, channel.id, by.id, MemberRole.USER, now_ms, username=by.id)
    specialists = dict.fromkeys((*request.participants, *((request.primary,) if request.primary else ())))
    for specialist in specialists:
        _require_specialist(connection, channel, specialist)
        add_member(connection, channel.id, specialist, MemberRole.AGENT, now_ms)
    record(connection, now_ms, "channel_created", data={"channel": channel.name})
    return channel


def find(connection: Connection, ref: str, by: Principal, versions: Collection[int] | None = None) -> Channel:
    """Return the channel with that id or name, as the principal sees it. versions: the only acceptable versions; None:
    any. Raises NotFound, Conflict if several channels have the name, StaleVersion if the version differs."""
    channels = channel_rows.find(connection, ref, by)
    if not channels:
        names = [channel.name for channel in channel_rows.seen(connection, by, limit=200)]
        raise NotFound.among("channel", ref, names, listing="claudomator channel list")
    if len(channels) > 1:
        raise Conflict(f"There are several channels {shown(ref)}.", remedy="Name it by its id.")
    if versions is not None and channels[0].version not in versions:
        detail = f"The channel {channels[0].name} is at version {channels[0].version}."
        raise StaleVersion(detail, remedy="Fetch it again and retry with its current version.")
    return channels[0]


def change_settings(
    connection: Connection, channel: Channel, settings: ChannelSettings, primary: str | None, now_ms: int
) -> Channel:
    """Give the channel these settings and this primary specialist, who joins if not yet a participant. Raises
    Invalid if the specialist does not exist for the channel's creator."""
    if primary is not None and all(member.id != primary for member in channel_rows.members(connection, channel.id)):
        _require_specialist(connection, channel, primary)
        add_member(connection, channel.id, primary, MemberRole.AGENT, now_ms)
    channel_rows.change(connection, channel, now_ms, settings=settings.model_dump(mode="json"), primary_agent=primary)
    record(connection, now_ms, "channel_changed", data={"channel": channel.name})
    return channel_rows.get(connection, channel.id)


def delete(connection: Connection, channel: Channel, now_ms: int) -> None:
    """Delete the channel with its messages. Tasks that were to answer them go on."""
    channel_rows.delete_channel(connection, channel.id)
    record(connection, now_ms, "channel_deleted", data={"channel": channel.name})


def join(connection: Connection, channel: Channel, specialist: str, now_ms: int) -> Channel:
    """Have a specialist take part; harmless when repeated. Raises Invalid if the specialist does not exist for the
    channel's creator."""
    if all(member.id != specialist for member in channel_rows.members(connection, channel.id)):
        _require_specialist(connection, channel, specialist)
        add_member(connection, channel.id, specialist, MemberRole.AGENT, now_ms)
        channel_rows.change(connection, channel, now_ms)
    return channel_rows.get(connection, channel.id)


def leave(connection: Connection, channel: Channel, member_id: str, now_ms: int) -> Channel:
    """Remove a participant; harmless when repeated. If the primary specialist leaves, the channel has none."""
    if any(member.id == member_id for member in channel_rows.members(connection, channel.id)):
        channel_rows.remove_member(connection, channel.id, member_id)
        primary = None if channel.primary_agent == member_id else channel.primary_agent
        channel_rows.change(connection, channel, now_ms, primary_agent=primary)
    return channel_rows.get(connection, channel.id)


def mute(connection: Connection, channel: Channel, member_id: str, until_ms: int | None, now_ms: int) -> Channel:
    """Ask the specialist nothing until ``until_ms``; None: ask again. Raises NotFound if it does not take part."""
    member = next((other for other in channel_rows.members(connection, channel.id) if other.id == member_id), None)
    if member is None or member.role != MemberRole.AGENT:
        raise NotFound(f"No specialist {shown(member_id)!r} takes part.", remedy="See `claudomator channel show`.")
    channel_rows.change_member(connection, channel.id, member_id, muted_until_ms=until_ms)
    channel_rows.change(connection, channel, now_ms)
    return channel_rows.get(connection, channel.id)


def members_of(connection: Connection, rows: Sequence[ChannelMember]) -> list[Member]:
    """Return the participants under their current names, without those whose row cannot be read."""
    cards = specialist_rows.cards(connection, [row.id for row in rows if row.role == MemberRole.AGENT])
    members = (
        {
            "id": row.id,
            "username": row.username,
            "display_name": cards[row.id].title if row.id in cards else row.display_name,
            "role": row.role,
        }
        for row in rows
    )
    return [member for values in members if (member := readable(Member, values)) is not None]


def _require_specialist(connection: Connection, channel: Channel, specialist: str) -> None:
    by = creator_of(channel)
    if not specialist_rows.is_assignable(connection, specialist, by):
        remedy = name_suggestion(specialist, specialist_rows.assignable_ids(connection, by), LIST_OF_SPECIALISTS)
        message = f"there is no specialist `{shown(specialist)}` for {channel.creator}, who made the channel"
        raise Invalid.of([Problem(field="participants", message=message, remedy=remedy)])


def add_member(
    connection: Connection,
    channel_id: str,
    member_id: str,
    role: MemberRole,
    now_ms: int,
    *,
    username: str | None = None,
    display_name: str | None = None,
) -> None:
    """Have a new participant take part. Raises Conflict if the channel is full."""
    if len(channel_rows.members(connection, channel_id)) >= MAX_PARTICIPANTS:
        full = f"The channel already has {MAX_PARTICIPANTS} participants."
        raise Conflict(full, remedy="Remove a participant first.")
    member = ChannelMember(
        channel_id=channel_id,
        id=member_id,
        role=role.value,
        username=username,
        display_name=display_name,
        joined_ms=now_ms,
    )
    member.insert(connection)
