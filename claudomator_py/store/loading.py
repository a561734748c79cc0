"""From rows to instances of the tables' classes, the way SQLAlchemy's own loading makes them: attributes as they are.

The constructor of such a class looks at every field, which takes thirty times as long as reading the row did, and
checks nothing, as the values come from the table.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from sqlalchemy import Table, inspect
from sqlalchemy.orm import configure_mappers
from sqlmodel import SQLModel

T = TypeVar("T", bound=SQLModel)


def loader(model: type[T]) -> Callable[[Iterable[Any]], T]:
    """What makes an instance of a row that has the columns of the model's table, all of them, in their order."""
    # Else attributes are without what answers for them until something else has SQLAlchemy set them up.
    configure_mappers()
    mapper = inspect(model)
    new, names = mapper.class_manager.new_instance, tuple(column.key for column in mapper.local_table.columns)

    def load(row: Iterable[Any]) -> T:
        instance: T = new()
        instance.__dict__.update(zip(names, row, strict=True))
        return instance

    return load


def writer(table: Table) -> Callable[[SQLModel], dict[str, Any]]:
    """What makes the row of an instance that a ``loader`` or ``maker`` of that table made: what is written of it, which
    is all but what the database computes."""
    names = tuple(column.key for column in table.columns if column.computed is None)

    def write(instance: SQLModel) -> dict[str, Any]:
        values = instance.__dict__
        return {name: values[name] for name in names}

    return write


def maker(model: type[T]) -> Callable[..., T]:
    """What makes an instance of the model of values by name; for those that are not given of their defaults.

    Raises TypeError for a name that there is not, and where one without a default is missing.
    """
    load, fields = loader(model), model.model_fields
    columns = inspect(model).local_table.columns
    names = tuple(column.key for column in columns)
    required = {name for name in names if name in fields and fields[name].is_required()}
    fixed = {name: fields[name].default for name in names if name in fields and fields[name].default_factory is None}
    made_anew = [name for name in names if name in fields and fields[name].default_factory is not None]

    def make(**values: Any) -> T:
        if not (required <= values.keys() <= known):
            raise TypeError(f"{model.__name__} has other columns: {sorted(values)}")
        given = {**fixed, **values}
        for name in made_anew:
            if name not in given:
                given[name] = fields[name].get_default(call_default_factory=True)
        return load([given[name] for name in names])

    known = set(names)
    return make
