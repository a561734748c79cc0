"""One transaction for whoever asks: to them, a store that cannot be used is a refusal, ``Unavailable``."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy import Connection

from claudomator_py.domain.errors import Unavailable
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.events import caused_by

T = TypeVar("T")


@contextmanager
def or_unavailable() -> Iterator[None]:
    """Raises Unavailable where the block raises StoreUnavailable."""
    try:
        yield
    except StoreUnavailable as error:
        raise Unavailable(error.reason, remedy=error.remedy) from error


def read(database: Database, fn: Callable[[Connection], T]) -> T:
    """What fn reads. Raises what fn raises, and Unavailable."""
    with or_unavailable():
        return database.read(fn)


def write(database: Database, fn: Callable[[Connection], T], by: str) -> T:
    """What fn returns, once what it wrote is durable; events name who asked. Raises what fn raises, and Unavailable."""
    with or_unavailable():
        return database.write(caused_by(by, fn))
