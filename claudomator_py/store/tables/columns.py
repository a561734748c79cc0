"""The base class of rows, names of constraints, and kinds of columns and indexes that tables share."""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, ClassVar, Self

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Executable,
    Index,
    Integer,
    String,
    Table,
    select,
    text,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import CreateIndex
from sqlmodel import Field, SQLModel
from sqlmodel.main import get_column_from_field

from claudomator_py.domain.principal import OPERATOR
from claudomator_py.store.stored_json import ShownJson, ShownText, StoredJson, by_dialect

RowNumber: Any = BigInteger().with_variant(Integer, "sqlite")

SQLModel.metadata.naming_convention = {
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
    "uq": "uq_%(table_name)s_%(column_0_name)s",
}


class Row(SQLModel):
    """A row of a table, whose columns SQLModel derives from the fields.

    Not ``table=True``, which would also map the class for SQLAlchemy's ORM: nothing uses that here, and it takes 80 ms
    of a start and slows down each attribute.
    """

    __tablename__: ClassVar[str]
    table: ClassVar[Table]
    _names: ClassVar[Set[str]]
    _order: ClassVar[Sequence[str]]
    _written: ClassVar[Sequence[str]]
    _defaults: ClassVar[Mapping[str, Any]]

    def __init__(self, **values: Any) -> None:
        """Make a row of these values and of defaults. Values are not validated, which would take thirty times as long;
        mypy checks them. Raises TypeError if one is missing or unknown."""
        given = {**self._defaults, **values}
        if given.keys() != self._names:
            raise TypeError(f"{type(self).__name__} has other columns: {sorted(values)}")
        self.__dict__.update(given)

    @classmethod
    def load(cls, row: Iterable[Any]) -> Self:
        """Return the instance of a row with all columns of the table, in their order."""
        instance: Self = cls.__new__(cls)
        instance.__dict__.update(zip(cls._order, row, strict=True))
        return instance

    @classmethod
    def find(cls, connection: Connection, *where: ColumnElement[bool]) -> Self | None:
        """Return the only row that meets the conditions, or None."""
        return cls.one(connection, select(cls.table).where(*where))

    @classmethod
    def one(cls, connection: Connection, query: Executable) -> Self | None:
        """Return the only row of a query for all columns of the table, or None."""
        row = connection.execute(query).one_or_none()
        return None if row is None else cls.load(row)

    @classmethod
    def rows(cls, connection: Connection, query: Executable) -> list[Self]:
        """Return the rows of a query for all columns of the table."""
        load = cls.load
        return [load(row) for row in connection.execute(query)]

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """Return a copy with these columns changed."""
        copy: Self = self.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.__dict__.update(changes)
        return copy

    def stored(self) -> dict[str, Any]:
        """Return the columns that the database does not compute."""
        values = self.__dict__
        return {name: values[name] for name in self._written}

    def insert(self, connection: Connection) -> None:
        """Insert the row. Raises IntegrityError if it breaks a constraint of the table."""
        connection.execute(self.table.insert().values(self.__dict__))

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        fields = cls.model_fields
        columns = {name: get_column_from_field(field) for name, field in fields.items()}
        for name, column in columns.items():
            column.name = column.key = name
        arguments = getattr(cls, "__table_args__", ())
        options = arguments[-1] if arguments and isinstance(arguments[-1], dict) else {}
        constraints = [argument for argument in arguments if argument is not options]
        cls.table = Table(cls.__tablename__, SQLModel.metadata, *columns.values(), *constraints, **options)
        cls._names = frozenset(fields)
        cls._order = tuple(columns)
        cls._written = tuple(name for name, column in columns.items() if column.computed is None)
        cls._defaults = {name: field.default for name, field in fields.items() if not field.is_required()}


def json_column(*, items: type | None = None, nullable: bool = False) -> Any:
    """Return a JSON column; None is stored as NULL. items: the type of its lists' items; None: it has objects."""
    return Column(StoredJson(items), nullable=nullable)


def shown_json_column(*, items: type | None = None, nullable: bool = False) -> Any:
    """Return a JSON column that people may see. items: as for ``json_column``."""
    return Column(ShownJson(items), nullable=nullable)


def shown_text_column(*, nullable: bool = False) -> Any:
    """Return a text column that people may see."""
    return Column(ShownText(), nullable=nullable)


def by_operator() -> Any:
    """Return a field that defaults to the operator, who made all rows of versions without principals."""
    return Field(default=OPERATOR.id, sa_column_kwargs={"server_default": OPERATOR.id})


_POSTGRESQL = "condition for postgresql"


def partial_index(
    name: str, *columns: str, where: str, on_postgresql: str | None = None, unique: bool = False
) -> Index:
    """Return an index on the rows that meet the condition. on_postgresql: the condition there, if it differs."""
    info = {_POSTGRESQL: on_postgresql or where}
    return Index(name, *columns, unique=unique, sqlite_where=text(where), info=info)


@compiles(CreateIndex, "postgresql")
def _create_with_condition(create: CreateIndex, compiler: Any, **options: Any) -> str:
    """Add the condition late: declaring ``postgresql_where`` would import SQLAlchemy's whole PostgreSQL dialect."""
    index: Index = create.element
    if (condition := index.info.get(_POSTGRESQL)) is not None:
        index.dialect_options["postgresql"]["where"] = text(condition)
    created: str = compiler.visit_create_index(create, **options)
    return created


bytewise = by_dialect("bytewise", String(), "COLUMN", 'COLUMN COLLATE "C"')
"""A text for ordering by its bytes, which is the same on SQLite and, despite its locale, on PostgreSQL."""
