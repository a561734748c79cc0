"""Cursors: where a list goes on, in a form that only this service reads.

A cursor names the last item that was seen, so what is inserted meanwhile moves nothing. Its checksum, over the filters
as well, shows one that was changed, cut or taken to another list; it is no secret, as a position gives nothing away.
"""

import base64
import binascii
import hashlib
import json
import uuid

from claudomator_py.core.errors import BadCursor
from claudomator_py.core.views import TaskFilter
from claudomator_py.store.reads import Position

_CHECK_BYTES = 8
_LAST_MS = 2**63


def write(position: Position, wanted: TaskFilter) -> str:
    """The cursor behind that item of that list."""
    payload = json.dumps(position, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_check(payload, wanted) + payload).decode()


def read(cursor: str, wanted: TaskFilter) -> Position:
    """The item. Raises BadCursor for anything that ``write`` did not give for this list."""
    try:
        payload = base64.b64decode(cursor.encode(), altchars=b"-_", validate=True)[_CHECK_BYTES:]
        created_ms, task_id = json.loads(payload)
        if isinstance(created_ms, int) and 0 <= created_ms < _LAST_MS:
            position = (created_ms, str(uuid.UUID(task_id)))
            if write(position, wanted) == cursor:
                return position
    except (ValueError, TypeError, AttributeError, RecursionError, binascii.Error):
        pass
    raise BadCursor(
        "The cursor is not one that was given for this list with these filters.",
        remedy="Send next_cursor as it was given, with the same filters, or begin again without a cursor.",
    )


def _check(payload: bytes, wanted: TaskFilter) -> bytes:
    filters = json.dumps(wanted.model_dump(mode="json", exclude_none=True), sort_keys=True).encode()
    digest = hashlib.blake2b(digest_size=_CHECK_BYTES)
    digest.update(len(filters).to_bytes(8, "big") + filters + payload)
    return digest.digest()
