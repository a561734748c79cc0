"""Requests with an idempotency key: carried out once, however often they are sent.

The answer is stored in the same transaction as the change, so it survives a daemon that dies between commit and answer.
A refused request has changed nothing, so nothing is stored and a repeat is judged again.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from pydantic import BaseModel
from sqlalchemy import Connection

from claudomator_py.domain.errors import KeyInUse, KeyReused
from claudomator_py.domain.principal import RequestKey
from claudomator_py.ports import Clock
from claudomator_py.store import access_rows
from claudomator_py.store.database import Database, read_or_refuse

A = TypeVar("A", bound=BaseModel)


class IdempotentRequests:
    """Knows the keys in progress and the answers given. Safe to use from any thread; one per database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._in_work: set[tuple[str, str]] = set()
        self._lock = threading.Lock()

    @contextmanager
    def claim(self, key: RequestKey | None, principal_id: str, answer: type[A]) -> Iterator[A | None]:
        """Keep the key for this request while the block lasts; yields the answer of an earlier request, or None.

        principal_id: the sender; keys of different senders are distinct. answer: the answer's shape. Raises KeyInUse
        while another request holds the key, KeyReused if the key was used for a different request. Does nothing without
        a key.
        """
        if key is None:
            yield None
            return
        owned_key = (principal_id, key.key)
        with self._lock:
            if owned_key in self._in_work:
                raise KeyInUse(
                    "The first request with this Idempotency-Key is still being processed.",
                    remedy="Wait a moment, then retry with the same key.",
                )
            self._in_work.add(owned_key)
        try:
            yield self._earlier(key, principal_id, answer)
        finally:
            with self._lock:
                self._in_work.discard(owned_key)

    def kept(self, connection: Connection, key: RequestKey | None, answer: A, principal_id: str) -> A:
        """Return the answer after storing it in the transaction of the change it describes. Without a key, nothing
        is stored."""
        if key is not None:
            document = answer.model_dump(mode="json")
            access_rows.keep_answer(connection, principal_id, key.key, key.fingerprint, document, self._clock())
        return answer

    def _earlier(self, key: RequestKey, principal_id: str, answer: type[A]) -> A | None:
        now_ms = self._clock()
        stored = read_or_refuse(
            self._database, lambda connection: access_rows.find_answer(connection, principal_id, key.key, now_ms)
        )
        if stored is None:
            return None
        if stored.fingerprint != key.fingerprint:
            raise KeyReused(
                "This Idempotency-Key was used for a different request.",
                remedy="Use a new key for each new request, and repeat requests unchanged.",
            )
        return answer.model_validate(stored.answer)
