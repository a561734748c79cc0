"""The task for answering a message: the message and what led to it, as data."""

from collections.abc import Sequence

from claudomator_py.domain.channel import MAX_MESSAGE_LENGTH, Attachment
from claudomator_py.domain.transcript import json_line, transcript
from claudomator_py.store.tables import ChannelMessage

MAX_EARLIER = 20
"""Maximum number of earlier messages included."""
_EARLIER_CHARS = 4_000
_ATTACHMENT_CHARS = (20_000, 2_000)
"""Maximum characters per attachment: the first value with which a message is not too long; otherwise attachments are
left out."""
_LAST_CHARS = 500_000
_ALL_CHARS = 800_000
"""Maximum characters of the last message's line, and of all lines; a task's instructions may have a million."""


def answer_instructions(channel: str, message: ChannelMessage, earlier: Sequence[ChannelMessage]) -> str:
    """Return the instructions of the task that answers the message. earlier: what led to it, oldest first.

    Each message is one line of JSON. Whatever exceeds the limits of instructions is left out: contents of attachments
    first, then the oldest messages.
    """
    lines = [_fitting(message, MAX_MESSAGE_LENGTH, _LAST_CHARS)]
    left = _ALL_CHARS - len(lines[0])
    for one in reversed(earlier[-MAX_EARLIER:]):
        line = _fitting(one, _EARLIER_CHARS, min(left, _LAST_CHARS))
        left -= len(line)
        if left < 0:
            break
        lines.append(line)
    return transcript(channel, lines[::-1])


def _fitting(message: ChannelMessage, most: int, whole: int) -> str:
    """The message's line, with as much of its attachments as keeps it within ``whole``, if possible. most: maximum
    characters of its text."""
    lines = (_line(message, most, attached) for attached in _ATTACHMENT_CHARS)
    return next((line for line in lines if len(line) <= whole), _line(message, most, 0))


def _line(message: ChannelMessage, most: int, attached: int) -> str:
    told: dict[str, object] = {
        "id": message.id,
        "author": message.author,
        "role": message.role,
        "text": _cut(message.content, most),
    }
    attachments = [Attachment.model_validate(one) for one in message.attachments]
    if attachments:
        told["attachments"] = [
            {
                "name": one.name,
                "media_type": one.media_type,
                "state": one.state.value,
                **({} if one.text is None else {"text": _cut(one.text, attached)}),
            }
            for one in attachments
        ]
    # An agent may have written something that a task must not contain.
    return json_line(told)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} […]"
