"""Imports SQLModel without SQLAlchemy's ORM, which it needs only for classes that are mapped: no table here is.

The ORM takes 6 MiB and 50 ms of a start. Import this before anything that imports SQLModel.
"""

import sys
from types import ModuleType
from typing import Any, Final

from sqlalchemy import MetaData

_ORM: Final = "sqlalchemy.orm"
_PARTS: Final = ("attributes", "decl_api", "instrumentation", "_typing")
"""Modules of the ORM that SQLModel imports."""


class _Name:
    """Stands for a class of the ORM, in annotations and as a base."""

    def __class_getitem__(cls, _: object) -> type:
        return cls


class _Registry:
    """Stands for ``registry``, of which SQLModel takes the metadata."""

    def __init__(self) -> None:
        self.metadata = MetaData()


_NAMES: Final[dict[str, Any]] = {
    "DeclarativeMeta": type("DeclarativeMeta", (type,), {}),
    "declared_attr": classmethod,
    "registry": _Registry,
}


class _StandIn(ModuleType):
    """A module that has any name."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return _NAMES.get(name, _Name)


def _import() -> None:
    """Import SQLModel with stand-ins, or as it is if a version of it does not take them."""
    modules = [_ORM, *(f"{_ORM}.{part}" for part in _PARTS)]
    sys.modules.update({name: _StandIn(name) for name in modules})
    before = set(sys.modules)
    try:
        import sqlmodel  # noqa: F401 - it stays in ``sys.modules``
    except Exception:
        for name in sys.modules.keys() - before:
            if name.partition(".")[0] == "sqlmodel":
                del sys.modules[name]
    finally:
        for name in modules:
            del sys.modules[name]


if _ORM not in sys.modules and "sqlmodel" not in sys.modules:
    _import()
