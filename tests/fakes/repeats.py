"""Requests with a key, answered as they were the first time: in memory."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from claudomator_py.domain.errors import KeyInUse, KeyReused
from claudomator_py.domain.principal import RequestKey

V = TypeVar("V")


@dataclass
class FakeRepeats:
    """As ``tasks.idempotency`` does it."""

    _lock: threading.RLock = field(default_factory=threading.RLock)
    _answers: dict[str, tuple[str, Any]] = field(default_factory=dict)
    _in_work: set[str] = field(default_factory=set)

    def clear(self) -> None:
        """Forget all answers."""
        self._answers.clear()

    def once(self, key: RequestKey | None, act: Callable[[], V]) -> V:
        """What ``act`` gives, or gave to the first request of this key."""
        if key is None:
            return act()
        with self._lock:
            if key.key in self._in_work:
                raise KeyInUse("That request is still in work.", remedy="Wait, then send it again with the same key.")
            if key.key in self._answers:
                fingerprint, answer = self._answers[key.key]
                if fingerprint != key.fingerprint:
                    raise KeyReused("That key named another request.", remedy="Take a new key.")
                known: V = answer
                return known
            self._in_work.add(key.key)
        try:
            given = act()
            with self._lock:
                self._answers[key.key] = (key.fingerprint, given)
            return given
        finally:
            with self._lock:
                self._in_work.discard(key.key)
