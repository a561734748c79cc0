"""Copy the events of a run from its mailbox, which the hub writes, to standard output.

It uses the standard library alone, so that it starts fast and isolated; see ``agents/hub/kind.py``.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any, Final

MAILBOX: Final = "mailbox"
"""In the run directory: what the agent has sent to the hub, one JSON object a line, the last of type ``end``."""
FIRST_S: Final = 0.01
MAX_S: Final = 0.25
"""Seconds between two reads, which grow while nothing comes."""
_CHUNK_BYTES: Final = 8 * 1024 * 1024
"""Several times the size of a frame of the hub."""


def main() -> int:
    """Print the events up to the end, and return the exit code: 0 if the agent has completed the task."""
    # Standard input is a file of the run directory, and the mailbox lies beside it.
    mailbox = Path("/proc/self/fd/0").readlink().with_name(MAILBOX)
    read, pause_s = 0, FIRST_S
    while True:
        lines, read = _lines(mailbox, read)
        for line in lines:
            message = _message(line)
            if message is None:
                continue
            _print(message)
            if message.get("type") == "end":
                return 0 if message.get("outcome") == "completed" else 1
        pause_s = FIRST_S if lines else min(MAX_S, pause_s * 2)
        time.sleep(pause_s)


def _lines(mailbox: Path, read: int) -> tuple[list[bytes], int]:
    """Return the complete lines from that offset on, and the offset of the next one."""
    try:
        with mailbox.open("rb") as file:
            file.seek(read)
            data = file.read(_CHUNK_BYTES)
    except FileNotFoundError:
        return [], read
    # Nobody writes a line this long: skip it.
    whole = data[: data.rfind(b"\n") + 1] or (data if len(data) == _CHUNK_BYTES else b"")
    return whole.splitlines(), read + len(whole)


def _message(line: bytes) -> dict[str, Any] | None:
    """Return the message; None for a broken line, as after a crash of the daemon."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) else None


def _print(message: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps(message, ensure_ascii=False).encode(errors="replace") + b"\n")
    sys.stdout.buffer.flush()
