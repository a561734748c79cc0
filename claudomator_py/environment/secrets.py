"""What the daemon knows to be secret, in one place, and what takes it out of all that is stored, shown or sent.

The values come from ``schema.known_secrets``, put in by whoever assembles the daemon; nobody else makes a redactor with
values. What was known once stays known until the daemon ends: what a run wrote before a reload may hold it still.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from claudomator_py.domain.redaction import Redactor, clean
from claudomator_py.schema.known_secrets import secrets_in

T = TypeVar("T")

_MAX_KEPT = 64


class Secrets:
    """Values that nobody is to see. Safe to use from any thread.

    Those of a task's own ``env`` are known only where that task is concerned, so that no task can take words out of
    what others say; so is the token of a run.
    """

    def __init__(self, values: Iterable[str] = (), run_token: Callable[[str], str] | None = None) -> None:
        """run_token: of each run, by its id; None: none has one."""
        self._run_token = run_token
        self._lock = threading.Lock()
        self._values = frozenset(values)
        self._redactor = Redactor(self._values)
        self._of_tasks: OrderedDict[frozenset[str], Redactor] = OrderedDict()

    def add(self, values: Iterable[str]) -> None:
        """Count these as secrets as well from now on."""
        with self._lock:
            if (grown := self._values.union(values)) != self._values:
                self._values, self._redactor = grown, Redactor(grown)
                self._of_tasks.clear()

    def redactor(self, task_env: Mapping[str, str] | None = None, run_id: str | None = None) -> Redactor:
        """Return what finds them, those that a task with these variables brings itself, and the token of that run."""
        own = frozenset(secrets_in(task_env)) if task_env else frozenset()
        if run_id is not None and self._run_token is not None:
            own |= {self._run_token(run_id)}
        with self._lock:
            if own <= self._values:
                return self._redactor
            if own not in self._of_tasks:
                self._of_tasks[own] = self._redactor.knowing(own)
            self._of_tasks.move_to_end(own)
            if len(self._of_tasks) > _MAX_KEPT:
                self._of_tasks.popitem(last=False)
            return self._of_tasks[own]

    def clean(self, value: T) -> T:
        """Return the value without them, be it a text, a model or what JSON can say; see ``domain.redaction.clean``."""
        return clean(value, self._redactor)

    def redact(self, text: str) -> str:
        """Return the text without them."""
        return self._redactor.redact(text)

    def redact_piece(self, text: str) -> str:
        """Return the text, of which an end may be cut off, without them and what is left of them there."""
        return self._redactor.redact_piece(text)
