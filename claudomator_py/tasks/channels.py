"""Finding a channel by its id or name, and its participants."""

from collections.abc import Collection, Sequence

from sqlalchemy import Connection

from claudomator_py.domain.channel import MAX_PARTICIPANTS, Member, MemberRole
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
from claudomator_py.store.stored_json import readable
from claudomator_py.store.tables import Channel, ChannelMember


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


def add_specialist(connection: Connection, channel: Channel, specialist: str, now_ms: int) -> bool:
    """Have a specialist take part, and return whether it did not yet. Raises Invalid if it does not exist for the
    channel's creator, and Conflict if the channel is full."""
    if any(member.id == specialist for member in channel_rows.members(connection, channel.id)):
        return False
    by = creator_of(channel)
    if not specialist_rows.is_assignable(connection, specialist, by):
        remedy = name_suggestion(specialist, specialist_rows.assignable_ids(connection, by), LIST_OF_SPECIALISTS)
        message = f"there is no specialist `{shown(specialist)}` for {channel.creator}, who made the channel"
        raise Invalid.of([Problem(field="participants", message=message, remedy=remedy)])
    add_member(connection, channel.id, specialist, MemberRole.AGENT, now_ms)
    return True


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
