"""One cache of compiled statements a process, for every database that is opened in it.

A daemon compiles each statement once in its life, and so does an engine. Tests open a database each: a third of the CPU
of a test of the service went into compiling again what the test before had compiled.
"""

from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Engine, create_engine
from sqlalchemy.util import LRUCache

from claudomator_py.store import database

_SIZE = 2_000


class _ByKindOfDatabase(LRUCache[Any, Any]):
    """The key of a statement begins with the engine's dialect, an object of its own for each: here its class counts."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get((type(key[0]), *key[1:]), default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__((type(key[0]), *key[1:]), value)


_statements = _ByKindOfDatabase(_SIZE)
_types: dict[type, WeakKeyDictionary[Any, Any]] = {}


def compile_once() -> None:
    """From here on, databases that are opened in this process share what they compile."""
    setattr(database, "create_engine", _create_engine)  # noqa: B010 - what the module has imported


def _create_engine(*args: Any, **options: Any) -> Engine:
    engine = create_engine(*args, **options)
    dialect: Any = engine.dialect
    dialect._type_memos = _types.setdefault(type(dialect), WeakKeyDictionary())
    engine._compiled_cache = _statements
    return engine
