"""Mailboxes: messages from the hub in a run's directory, which the run's process reads.

What is promised to an agent is written there first, so that a later daemon finds it.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

from claudomator_py.domain.errors import Conflict
from claudomator_py.ports import RunHost
from claudomator_py.values import dataclass

End = Mapping[str, Any]
"""The message of type ``end``: how the run ended. Nothing after it counts."""


MAX_PROGRESS_BYTES: Final = 8 * 1024 * 1024
"""Total per run. The run's process copies them to its output, and a starting daemon reads them."""
PROGRESS_RATE: Final = 32 * 1024
"""Bytes per second that are stored in the long run."""
PROGRESS_BURST: Final = 1024 * 1024
"""Bytes that are stored at once after a pause."""
SIGN_OF_LIFE_S: Final = 30.0
"""How often a message beyond the limits is stored without its text, so that the run does not seem to hang."""


@dataclass(frozen=True, slots=True)
class MailboxContent:
    """The summary of a mailbox."""

    accepted: bool
    end: End | None
    """None until the run has ended."""
    size: int
    """Bytes."""


class ProgressAllowance:
    """The remaining allowance for one run's progress messages, over all its connections."""

    def __init__(self, kept: int, now_s: float) -> None:
        """kept: bytes stored already."""
        self._left = MAX_PROGRESS_BYTES - kept
        self._now = float(PROGRESS_BURST)
        self._at_s = now_s
        self._sign_s = now_s - SIGN_OF_LIFE_S

    def fit(self, fields: Mapping[str, Any], now_s: float) -> Mapping[str, Any] | None:
        """Return the part of the message to store: all of it, all but its text, or None."""
        self._now = min(PROGRESS_BURST, self._now + (now_s - self._at_s) * PROGRESS_RATE)
        self._at_s = now_s
        room = min(self._now, self._left)
        # Compare the text's length first: most of a flood is dropped, and need not be serialised to be measured.
        if len(fields.get("text") or "") <= room and (size := len(_line({"type": "progress", **fields}))) <= room:
            self._now -= size
            self._left -= size
            return fields
        if now_s < self._sign_s + SIGN_OF_LIFE_S:
            return None
        self._sign_s = now_s
        return {name: value for name, value in fields.items() if name != "text"}


class Mailboxes:
    """The mailboxes of a host's runs. Used on the loop."""

    def __init__(self, host: RunHost) -> None:
        self._host = host

    async def put(self, run_id: str, message: Mapping[str, Any], *, durable: bool = True) -> None:
        """Append a message. Raises OSError."""
        await asyncio.to_thread(self._host.append_message, run_id, _line(message), durable=durable)

    async def heard(self, run_id: str) -> MailboxContent:
        """Return the mailbox's contents so far. Raises OSError."""
        return await asyncio.to_thread(self._read, run_id)

    def _read(self, run_id: str) -> MailboxContent:
        """Read in a worker thread. Progress, by far the largest part, is not parsed."""
        messages: dict[str, Mapping[str, Any]] = {}
        size = 0
        for line in self._host.messages(run_id):
            size += len(line) + 1
            for kind, begins in _BEGINS.items():
                if kind not in messages and line.startswith(begins) and (message := _message(line, kind)) is not None:
                    messages[kind] = message
        return MailboxContent("accepted" in messages, messages.get("end"), size)


def check_same(recorded: End, end: End) -> None:
    """Raise Conflict if the end differs from the recorded one."""
    if dict(recorded) != dict(end):
        raise Conflict("Another result of the assignment is recorded.", remedy="Drop this one.")


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, ensure_ascii=False, allow_nan=False).encode(errors="replace")


def _message(line: bytes, kind: str) -> Mapping[str, Any] | None:
    """Return the message if it is of this type and complete; a crash may have cut the line off."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) and message.get("type") == kind else None


_BEGINS: Final = {kind: _line({"type": kind})[:-1] for kind in ("accepted", "end")}
"""The first bytes of the messages that are parsed. ``type`` is always the first key."""
