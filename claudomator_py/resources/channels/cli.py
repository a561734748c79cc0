"""``channel``: conversations of people and specialists, and who answers what."""

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from claudomator_py.cli import ExitCode, completion, times
from claudomator_py.cli.connect import Client, connected, with_client
from claudomator_py.cli.output import (
    checked,
    fail,
    fields,
    heading,
    note,
    out,
    out_json,
    section,
    table_text,
    wants_json,
    write,
    write_table,
    wrote_json,
)
from claudomator_py.domain.channel import MAX_MESSAGE_LENGTH, ChannelSettings, MarkVerdict, NewChannel, NewMessage
from claudomator_py.domain.errors import sentence, suggestion
from claudomator_py.resources.channels import (
    ChannelView,
    MessageView,
    MuteRequest,
    ParticipantView,
    RuleStatsView,
    SettingsRequest,
)
from claudomator_py.surface.table import Column, Table, ago
from claudomator_py.texts import plain

if TYPE_CHECKING:
    from collections.abc import Sequence


_CHANNELS = Table[ChannelView](
    Column("NAME", lambda channel: channel.name, flexible=True),
    Column("PRIMARY", lambda channel: channel.primary, flexible=True),
    Column("RULE", lambda channel: channel.settings.primary),
    Column("PARTICIPANTS", lambda channel: len(channel.participants), right=True),
    Column("CREATOR", lambda channel: channel.creator, flexible=True),
    Column("ORGANISATION", lambda channel: channel.organisation, flexible=True),
    Column("CHANGED", lambda channel: ago(channel.updated_at)),
    Column("ID", lambda channel: channel.id, wide=True),
)
_PARTICIPANTS = Table[ParticipantView](
    Column("ID", lambda participant: participant.id, flexible=True),
    Column("ROLE", lambda participant: participant.role),
    Column("NAME", lambda participant: participant.display_name, flexible=True),
    Column("MUTED UNTIL", lambda participant: times.clock(participant.muted_until, times.now_ms())),
)
_PRIMARY_KEY = "primary_agent"

ChannelArgument = Annotated[str, completion.CHANNELS.argument("CHANNEL", "The channel's name or id.")]
SpecialistArgument = Annotated[str, completion.SPECIALISTS.argument("SPECIALIST", "The specialist's id.")]
MessageArgument = Annotated[int, typer.Argument(metavar="MESSAGE", min=1, help="The message's id.")]


@connected
def create(
    client: Client,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The channel's name.")],
    specialists: Annotated[
        list[str] | None, completion.SPECIALISTS.argument("SPECIALIST...", "Specialists to add, by id.")
    ] = None,
    primary: Annotated[
        str | None,
        completion.SPECIALISTS.option("The specialist who answers messages that address nobody.", metavar="ID"),
    ] = None,
) -> None:
    """Create a channel."""
    wanted = {"name": name, "primary": primary, "participants": tuple(specialists or ())}
    _show(client.create_channel(checked(NewChannel, wanted)))


@connected
def list_channels(client: Client) -> None:
    """List the channels you can use."""
    nothing = "There are no channels. Create one: claudomator channel create NAME SPECIALIST..."
    write_table(_CHANNELS, list(client.all_channels()), nothing)


@connected
def show(client: Client, channel: ChannelArgument) -> None:
    """Show a channel with its settings and participants."""
    _show(client.channel(channel))


@with_client
def delete(client: Client, channel: ChannelArgument) -> None:
    """Delete a channel with its messages.

    Tasks by which specialists were answering stay, but nobody posts their results.
    """
    view = client.channel(channel)
    client.delete_channel(view.id)
    note(f"{view.name} was deleted with its messages; its tasks stay.")


@connected
def join(client: Client, channel: ChannelArgument, specialist: SpecialistArgument) -> None:
    """Add a specialist. People join by writing."""
    _show(client.join_channel(channel, specialist))


@connected
def leave(
    client: Client,
    channel: ChannelArgument,
    participant: Annotated[str, typer.Argument(metavar="PARTICIPANT", help="The participant's id.")],
) -> None:
    """Remove a participant."""
    if participant not in (members := {member.id for member in client.channel(channel).participants}):
        fail(f"{participant!r} does not take part in {channel}.", sentence(suggestion(participant, members)))
    _show(client.leave_channel(channel, participant))


@connected
def mute(
    client: Client,
    channel: ChannelArgument,
    specialist: SpecialistArgument,
    duration: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="How long, such as 2h. Default: unmute it.")
    ] = None,
) -> None:
    """Mute a specialist for a time, or unmute it."""
    _show(client.mute_participant(channel, specialist, checked(MuteRequest, {"duration": duration})))


@connected
def post(
    client: Client,
    channel: ChannelArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to post; `-` reads it from stdin.")],
    reply_to: Annotated[
        int | None, typer.Option("--reply-to", metavar="MESSAGE", min=1, help="The id of the message to reply to.")
    ] = None,
) -> None:
    """Post a message in a channel."""
    content = sys.stdin.read(MAX_MESSAGE_LENGTH + 1) if text == "-" else text
    posted = client.post_message(channel, checked(NewMessage, {"content": content, "reply_to": reply_to}))
    if wants_json():
        out_json(posted)
    else:
        out(f"{posted.id}: {_who_answers(posted)}")
        if not posted.answers:
            _explain_silence(client.channel(channel), content)


def _explain_silence(place: ChannelView, content: str) -> None:
    """Say whom a message could have addressed, if it seems to address somebody or if there is nobody."""
    if all(member.role != "agent" for member in place.participants):
        note(f"Nobody answers here; add a specialist: claudomator channel join {place.name} SPECIALIST")
    elif (silence := place.silence(content)) is not None:
        note(silence)


@connected
def read(
    client: Client,
    channel: ChannelArgument,
    last: Annotated[int, typer.Option(metavar="N", min=1, max=200, help="How many messages to print.")] = 20,
) -> None:
    """Print the last messages, newest last."""
    messages, place = list(reversed(client.messages(channel, limit=last).items)), client.channel(channel)
    if wrote_json(messages):
        return
    now = times.now_ms()
    parts = []
    for message in messages:
        answers = f" (answers {message.reply_to})" if message.reply_to is not None else ""
        author = place.name if message.author == place.id else message.author
        head = heading(f"{message.id} {plain(author)}{answers}, {times.ago(message.created_at, now)}")
        parts.append(f"{head}\n{plain(message.content).rstrip()}\n[{_who_answers(message)}]")
    out("\n\n".join(parts))


@connected
def settings(
    client: Client,
    channel: ChannelArgument,
    changes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE...",
            help="Settings to change; separate the items of a list with commas. `primary_agent` takes an id.",
        ),
    ] = None,
) -> None:
    """Show or change a channel's settings."""
    view = client.channel(channel)
    if changes:
        wanted: dict[str, Any] = view.settings.model_dump(mode="json")
        primary = view.primary
        for change in changes:
            key, sign, value = change.partition("=")
            if not sign:
                fail(f"{plain(change)} is not KEY=VALUE.", "Write, for example, primary=keywords.", ExitCode.USAGE)
            if key == _PRIMARY_KEY:
                primary = value or None
            else:
                wanted[key] = _value(key, value)
        asked = checked(SettingsRequest, {"primary": primary, "settings": wanted})
        view = client.change_channel_settings(view.id, asked, if_version=view.version)
    write(view.settings, lambda: fields(_settings(view)))


@with_client
def mark(
    client: Client,
    channel: ChannelArgument,
    message: MessageArgument,
    verdict: Annotated[
        MarkVerdict | None, typer.Argument(metavar="VERDICT", help="right, should_have or should_not_have.")
    ] = None,
) -> None:
    """Mark whether the right participants answered a message. Without a verdict, clear the mark."""
    client.mark_message(channel, message, verdict)


@connected
def stats(
    client: Client,
    channel: ChannelArgument,
    days: Annotated[int, typer.Option(metavar="N", min=1, max=365, help="How many days to count, up to now.")] = 30,
) -> None:
    """Show how often each rule decided, and how operators marked its decisions."""
    stats = client.channel_stats(channel, days=days)
    if wrote_json(stats):
        return
    rules = Table[RuleStatsView](
        Column("RULE", lambda rule: rule.reason),
        Column("MESSAGES", lambda rule: rule.messages, right=True),
        Column("RIGHT", lambda rule: rule.right, right=True),
        Column("SHOULD HAVE", lambda rule: rule.should_have, right=True),
        Column("SHOULD NOT HAVE", lambda rule: rule.should_not_have, right=True),
        Column("SHADOW DIFFERS", lambda rule: rule.shadow_differs if stats.shadowed else None, right=True),
    )
    skipped = ", ".join(f"{why} {count}" for why, count in sorted(stats.skipped.items()))
    both = stats.compared
    compared = f"{both.right} right, shadow {both.shadow_right} right" if both.marked else ""
    summary = [
        ("messages", str(stats.messages)),
        ("answered", str(stats.answered)),
        ("not asked", skipped),
        (f"{both.marked} marked", compared),
    ]
    out(f"{table_text(rules, stats.rules)}\n\n{fields([pair for pair in summary if pair[1]])}")


COMMANDS = {
    "create": create,
    "list": list_channels,
    "show": show,
    "delete": delete,
    "join": join,
    "leave": leave,
    "mute": mute,
    "post": post,
    "read": read,
    "settings": settings,
    "mark": mark,
    "stats": stats,
}


def _who_answers(message: MessageView) -> str:
    """Return who answers it, by which rule, and what came of that."""
    decision = message.decision
    states = [
        f"{answer.specialist} {answer.state.value}" + (f" ({answer.skipped})" if answer.skipped else "")
        for answer in message.answers
    ]
    if decision.ask_among:
        states.append(f"waiting for a mention of {' or '.join(decision.ask_among)}")
    if decision.ambiguous:
        states.append(f"ambiguous: {', '.join(decision.ambiguous)}")
    return plain(": ".join(part for part in (decision.reason.value, ", ".join(states)) if part))


def _show(view: ChannelView) -> None:
    parts = [
        fields([("name", view.name), ("id", view.id), ("creator", view.creator), *_settings(view)]),
        *section("PARTICIPANTS", table_text(_PARTICIPANTS, view.participants)),
    ]
    write(view, lambda: "\n\n".join(parts))


def _settings(view: ChannelView) -> "Sequence[tuple[str, str]]":
    shown = view.settings.model_dump(mode="json")
    settings = [(_PRIMARY_KEY, view.primary or ""), *((key, _text(value)) for key, value in shown.items())]
    return [(key, value) for key, value in settings if value]


def _text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else str(value)


def _value(key: str, text: str) -> object:
    """Return the value as JSON if it is JSON, split into a list where the setting is one; else as text."""
    listed = isinstance(getattr(ChannelSettings(), key, None), tuple)
    if listed and not text.startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    try:
        return json.loads(text)
    except ValueError:
        return text
