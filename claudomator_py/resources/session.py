"""What all resources have in common when they are asked: who asks, one transaction for each request, done once, and
which task or run is meant."""

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import Any, Self, TypeVar

from pydantic import BaseModel
from sqlalchemy import Connection

from claudomator_py.domain.errors import Ambiguous, NotFound
from claudomator_py.domain.principal import Principal, RequestKey
from claudomator_py.domain.units import short_id
from claudomator_py.store import reads, run_rows
from claudomator_py.store.database import Database, read_or_refuse, write_or_refuse
from claudomator_py.store.tables import Run, Task
from claudomator_py.tasks.idempotency import IdempotentRequests

T = TypeVar("T")
A = TypeVar("A", bound=BaseModel)
S = TypeVar("S", bound="Service")
SHORTEST_PREFIX = 4
"""A shorter one is hardly meant for an id, even if only one begins so."""


class Service:
    """What can be asked of a resource: until it is bound to whoever asks, by nobody.

    Synchronous and safe to call from many threads. Every method may raise ``domain.errors.ServiceError``.
    """

    _asker: Principal | None = None

    def __init__(self, database: Database, repeats: IdempotentRequests | None = None) -> None:
        """repeats: for those whose requests have keys."""
        self._database = database
        self._requests = repeats

    def as_(self, by: Principal) -> Self:
        """Return the same, for who asks."""
        bound = copy(self)
        bound._asker = by
        return bound

    @property
    def _by(self) -> Principal:
        if self._asker is None:
            raise RuntimeError(f"{type(self).__name__} is bound to nobody: call as_()")
        return self._asker

    def _read(self, fn: Callable[[Connection], T]) -> T:
        """Return what fn reads. Raises what fn raises, and Unavailable."""
        return read_or_refuse(self._database, fn)

    def _write(self, fn: Callable[[Connection], T]) -> T:
        """Return what fn returns, once what it wrote is durable. Raises what fn raises, and Unavailable."""
        return write_or_refuse(self._database, fn, self._by.id)

    def _once(self, key: RequestKey | None, answer: type[A], prepare: Callable[[], Callable[[Connection], A]]) -> A:
        """Return the answer of the change, or that of an earlier request with this key, whose change was made then.

        answer: its shape. prepare: does or refuses what comes before the transaction, and gives what is done in it.
        Raises KeyInUse, KeyReused.
        """
        repeats = self._requests
        if key is None or repeats is None:
            return self._write(prepare())
        with repeats.claim(key, self._by.id, answer) as earlier:
            if earlier is not None:
                return earlier
            change = prepare()
            return self._write(lambda connection: repeats.kept(connection, key, change(connection), self._by.id))


class Session:
    """What one principal may ask: it sees and changes what that one may, and what it does is in that one's name."""

    def __init__(self, services: Mapping[type, Any], by: Principal) -> None:
        self._services = services
        self.by = by

    def __getitem__(self, service: type[S]) -> S:
        """Return the service of that kind, as this principal may use it. It costs nothing."""
        found: S = self._services[service]
        return found.as_(self.by)


class Access:
    """The services for each who asks. There is none for nobody, so no request is answered without saying whose it
    is."""

    def __init__(self, services: Iterable[object]) -> None:
        self._services = {type(service): service for service in services}

    def as_(self, by: Principal) -> Session:
        """Return what that principal may ask."""
        return Session(self._services, by)

    def __getitem__(self, kind: type[T]) -> T:
        """Return the service of that kind, bound to nobody: for those that say by themselves who asks."""
        found: Any = self._services[kind]
        return found  # type: ignore[no-any-return]  # of that kind


def find_task(connection: Connection, ref: str, by: Principal) -> Task:
    """Return the task that somebody means, of those that exist for that principal. Raises NotFound or Ambiguous."""
    found = reads.matching(connection, ref, by)
    if not found:
        raise NotFound.among("task", ref, reads.names_like(connection, by), listing="claudomator list")
    ids = ", ".join(f"{short_id(task.id)} ({task.name})" for task in found)
    whole = ref == found[0].name or ref.lower() == found[0].id
    if not whole and len(ref) < SHORTEST_PREFIX:
        detail = f"There is no task {ref!r}. As the beginning of an id it is too short: {ids} would begin so."
        raise NotFound(detail, remedy=f"Write the name, or at least {SHORTEST_PREFIX} characters of the id.")
    if len(found) > 1:
        raise Ambiguous(f"{ref!r} could mean {ids}.", remedy="Write the name, or a longer prefix of the id.")
    return found[0]


def find_run(connection: Connection, ref: str, by: Principal) -> Run:
    """Return the run of that id, or whose id begins so, if it exists for whoever asks. Raises NotFound or Ambiguous."""
    run = run_rows.find(connection, ref, by)
    if run is not None:
        return run
    found = [] if len(ref) < SHORTEST_PREFIX or "\0" in ref else run_rows.beginning(connection, ref, by)
    if not found:
        raise NotFound(f"There is no run {ref!r}.", remedy="List a task's runs with `claudomator show TASK`.")
    if len(found) > 1:
        ids = ", ".join(short_id(one.id) for one in found)
        raise Ambiguous(f"{ref!r} is the beginning of {ids}.", remedy="Write a longer prefix of the id.")
    return found[0]
