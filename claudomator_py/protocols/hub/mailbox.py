"""What the hub has heard of a run: messages in the mailbox of its run directory, which its process reads.

So all that is promised to an agent is there before it is promised, and a daemon that comes later finds it there.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

from claudomator_py.domain.errors import Conflict
from claudomator_py.ports import RunHost
from claudomator_py.values import dataclass

End = Mapping[str, Any]
"""How the run ended: the message of type ``end``, the last one that counts."""


MAX_PROGRESS_BYTES: Final = 8 * 1024 * 1024
"""Of one run, kept in all: its process copies them to its output, and a daemon that starts reads them."""
PROGRESS_RATE: Final = 32 * 1024
"""Bytes a second that are kept in the long run."""
PROGRESS_BURST: Final = 1024 * 1024
"""Bytes that are kept at once after a pause."""
SIGN_OF_LIFE_S: Final = 30.0
"""Beyond all that, so often a message is kept without its text: whoever says something does not hang."""


@dataclass(frozen=True, slots=True)
class MailboxContent:
    """What a mailbox holds."""

    accepted: bool
    end: End | None
    """None while there is no result."""
    size: int
    """Bytes."""


class ProgressAllowance:
    """How much of the progress of one run is still kept, over however many connections it comes."""

    def __init__(self, kept: int, now_s: float) -> None:
        """kept: bytes that there are already."""
        self._left = MAX_PROGRESS_BYTES - kept
        self._now = float(PROGRESS_BURST)
        self._at_s = now_s
        self._sign_s = now_s - SIGN_OF_LIFE_S

    def fit(self, said: Mapping[str, Any], now_s: float) -> Mapping[str, Any] | None:
        """Return what of the message is kept: all, all but its text, or None."""
        self._now = min(PROGRESS_BURST, self._now + (now_s - self._at_s) * PROGRESS_RATE)
        self._at_s = now_s
        room = min(self._now, self._left)
        # Of a flood nearly all is dropped: it is not written out only to be counted.
        if len(said.get("text") or "") <= room and (size := len(_line({"type": "progress", **said}))) <= room:
            self._now -= size
            self._left -= size
            return said
        if now_s < self._sign_s + SIGN_OF_LIFE_S:
            return None
        self._sign_s = now_s
        return {name: value for name, value in said.items() if name != "text"}


class Mailboxes:
    """The mailboxes of the runs of one host. On the loop."""

    def __init__(self, host: RunHost) -> None:
        self._host = host

    async def put(self, run_id: str, message: Mapping[str, Any], *, durable: bool = True) -> None:
        """Have the run's process hear it. Raises OSError."""
        await asyncio.to_thread(self._host.tell, run_id, _line(message), durable=durable)

    async def heard(self, run_id: str) -> MailboxContent:
        """Return what there is by now. Raises OSError."""
        return await asyncio.to_thread(self._read, run_id)

    def _read(self, run_id: str) -> MailboxContent:
        """Beside the loop. Of progress, which is nearly all there may be, nothing is parsed."""
        found: dict[str, Mapping[str, Any]] = {}
        size = 0
        for line in self._host.told(run_id):
            size += len(line) + 1
            for kind, begins in _BEGINS.items():
                if kind not in found and line.startswith(begins) and (message := _message(line, kind)) is not None:
                    found[kind] = message
        return MailboxContent("accepted" in found, found.get("end"), size)


def check_same(recorded: End, end: End) -> None:
    """Raise Conflict where a result comes after another one."""
    if dict(recorded) != dict(end):
        raise Conflict("Another result of the assignment is recorded.", remedy="Drop this one.")


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, ensure_ascii=False, allow_nan=False).encode(errors="replace")


def _message(line: bytes, kind: str) -> Mapping[str, Any] | None:
    """Return the message if it is of that type. A line that a daemon did not finish is none."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) and message.get("type") == kind else None


_BEGINS: Final = {kind: _line({"type": kind})[:-1] for kind in ("accepted", "end")}
"""How the messages that count begin: their type is said first."""
