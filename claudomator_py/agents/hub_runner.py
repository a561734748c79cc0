"""From the mailbox of the run, which the hub writes, to events on standard output.

The standard library alone, so that it starts fast and isolated: see ``agents/hub/kind.py``.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any, Final

MAILBOX: Final = "mailbox"
"""In the run directory: what the hub has heard from the agent, one JSON object a line, the last one being the end."""
FIRST_S: Final = 0.01
MAX_S: Final = 0.25
"""Between two looks; it grows while nothing comes."""
_CHUNK_BYTES: Final = 8 * 1024 * 1024
"""Bytes: several times what a frame of the hub may have."""


def main() -> int:
    """Print what comes until the end has come; the exit code: 0 where the agent has done the task."""
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
    """The lines that are whole by now, from that offset on, and where the next ones begin."""
    try:
        with mailbox.open("rb") as file:
            file.seek(read)
            data = file.read(_CHUNK_BYTES)
    except FileNotFoundError:
        return [], read
    # A line that long was written by nobody.
    whole = data[: data.rfind(b"\n") + 1] or (data if len(data) == _CHUNK_BYTES else b"")
    return whole.splitlines(), read + len(whole)


def _message(line: bytes) -> dict[str, Any] | None:
    """None: a daemon ended while it wrote this line."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _print(message: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps(message, ensure_ascii=False).encode(errors="replace") + b"\n")
    sys.stdout.buffer.flush()
