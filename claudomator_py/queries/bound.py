"""What all that can be asked has in common: it is asked by one principal, and each request is one transaction."""

from collections.abc import Callable
from copy import copy
from typing import Self, TypeVar

from sqlalchemy import Connection

from claudomator_py.domain.principal import Principal
from claudomator_py.store import transactions
from claudomator_py.store.database import Database

T = TypeVar("T")


class Asked:
    """What is asked by one principal: until it is bound to that, by nobody."""

    _asker: Principal | None = None

    def as_(self, by: Principal) -> Self:
        """The same, for who asks."""
        bound = copy(self)
        bound._asker = by
        return bound

    @property
    def _by(self) -> Principal:
        if self._asker is None:
            raise RuntimeError(f"{type(self).__name__} is bound to nobody: call as_()")
        return self._asker


class Bound(Asked):
    """With the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def _read(self, fn: Callable[[Connection], T]) -> T:
        """What fn reads. Raises what fn raises, and Unavailable."""
        return transactions.read(self._database, fn)

    def _write(self, fn: Callable[[Connection], T]) -> T:
        """What fn returns, once what it wrote is durable. Raises what fn raises, and Unavailable."""
        return transactions.write(self._database, fn, self._by.id)
