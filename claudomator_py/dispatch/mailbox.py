"""What the hub has heard of a run: messages in the mailbox of its run directory, which its process reads.

So all that is promised to an agent is there before it is promised, and a daemon that comes later finds it there.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from claudomator_py.domain.errors import Conflict
from claudomator_py.ports import RunHost

End = Mapping[str, Any]
"""How the run ended: the message of type ``end``, the last one that counts."""


@dataclass(frozen=True, slots=True)
class MailboxContent:
    """What a mailbox holds. end: None while there is no result."""

    accepted: bool
    end: End | None


class Mailboxes:
    """The mailboxes of the runs of one host. On the loop."""

    def __init__(self, host: RunHost) -> None:
        self._host = host

    async def put(self, run_id: str, message: Mapping[str, Any], *, durable: bool = True) -> None:
        """Have the run's process hear it. Raises OSError."""
        line = json.dumps(message, ensure_ascii=False, allow_nan=False).encode(errors="replace")
        await asyncio.to_thread(self._host.tell, run_id, line, durable=durable)

    async def heard(self, run_id: str) -> MailboxContent:
        """What there is by now. Raises OSError."""
        messages = _messages(await asyncio.to_thread(self._host.told, run_id))
        accepted = any(message.get("type") == "accepted" for message in messages)
        return MailboxContent(accepted, next((message for message in messages if message.get("type") == "end"), None))


def check_same(recorded: End, end: End) -> None:
    """Raises Conflict where a result comes after another one."""
    if dict(recorded) != dict(end):
        raise Conflict("Another result of the assignment is recorded.", remedy="Drop this one.")


def _messages(told: bytes) -> list[Mapping[str, Any]]:
    """A line that a daemon did not finish is none."""
    found: list[Mapping[str, Any]] = []
    for line in told.splitlines():
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if isinstance(message, dict):
            found.append(message)
    return found
