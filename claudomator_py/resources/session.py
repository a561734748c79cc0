"""What all resources have in common when they are asked: who asks, and one transaction for each request, done once."""

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import Any, Self, TypeVar

from pydantic import BaseModel
from sqlalchemy import Connection

from claudomator_py.domain.principal import Principal, RequestKey
from claudomator_py.store import transactions
from claudomator_py.store.database import Database
from claudomator_py.tasks.idempotency import IdempotentRequests

T = TypeVar("T")
A = TypeVar("A", bound=BaseModel)
S = TypeVar("S", bound="Service")


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
        return transactions.read(self._database, fn)

    def _write(self, fn: Callable[[Connection], T]) -> T:
        """Return what fn returns, once what it wrote is durable. Raises what fn raises, and Unavailable."""
        return transactions.write(self._database, fn, self._by.id)

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
