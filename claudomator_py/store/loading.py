"""Between what a statement reads or writes and instances of the tables' classes."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from sqlalchemy import Table

from claudomator_py.store.tables.columns import Row

T = TypeVar("T", bound=Row)


def loader(model: type[T]) -> Callable[[Iterable[Any]], T]:
    """What makes an instance of a row that has the columns of the model's table, all of them, in their order."""
    new, names = model.__new__, tuple(column.key for column in model.table.columns)

    def load(row: Iterable[Any]) -> T:
        instance: T = new(model)
        instance.__dict__.update(zip(names, row, strict=True))
        return instance

    return load


def changer(model: type[T]) -> Callable[[T, Mapping[str, Any]], T]:
    """What makes another instance of one, with these values of its columns in it."""
    new = model.__new__

    def change(instance: T, changes: Mapping[str, Any]) -> T:
        changed: T = new(model)
        changed.__dict__.update(instance.__dict__)
        changed.__dict__.update(changes)
        return changed

    return change


def writer(table: Table) -> Callable[[Row], dict[str, Any]]:
    """What makes the row of an instance: what is written of it, which is all but what the database computes."""
    names = tuple(column.key for column in table.columns if column.computed is None)

    def write(instance: Row) -> dict[str, Any]:
        values = instance.__dict__
        return {name: values[name] for name in names}

    return write
