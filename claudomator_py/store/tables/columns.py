"""What the tables are made of: names of constraints, and kinds of columns and indexes that several of them have."""

from collections.abc import Mapping, Set
from typing import Any, ClassVar, dataclass_transform, get_args

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    text,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import CreateIndex
from sqlalchemy.sql.functions import FunctionElement

from claudomator_py.domain.principal import OPERATOR
from claudomator_py.store.stored_json import ShownJson, ShownText, StoredJson

RowNumber: Any = BigInteger().with_variant(Integer, "sqlite")

METADATA = MetaData(
    naming_convention={
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
    }
)
"""All tables."""
_TYPES: Mapping[Any, Any] = {str: String, int: Integer, float: Float, bool: Boolean, bytes: LargeBinary}


class _Field:
    """What is said of a column besides its type."""

    def __init__(
        self,
        default: Any = ...,
        *,
        sa_column: Column[Any] | None = None,
        sa_type: Any = None,
        foreign_key: str | None = None,
        server_default: str | None = None,
        primary_key: bool = False,
    ) -> None:
        self.default, self._column, self._type = default, sa_column, sa_type
        self._foreign_key, self._server_default, self._primary_key = foreign_key, server_default, primary_key

    def column(self, hint: Any) -> Column[Any]:
        """Return the column of a field with that type hint."""
        if self._column is not None:
            return self._column
        kinds = get_args(hint) or (hint,)
        return Column(
            *([] if self._foreign_key is None else [ForeignKey(self._foreign_key)]),
            type_=self._type or _TYPES[kinds[0]],
            primary_key=self._primary_key,
            nullable=not self._primary_key and type(None) in kinds,
            server_default=self._server_default,
            **({} if self.default is ... else {"default": self.default}),
        )


def Field(default: Any = ..., **told: Any) -> Any:  # noqa: N802 - as pydantic and SQLModel have it
    """Return what is said of a column. default: of what is made, unless it is required. The rest: see ``_Field``."""
    return _Field(default, **told)


@dataclass_transform(kw_only_default=True, field_specifiers=(Field,))
class Row:
    """A row of a table, whose columns are made of the fields.

    It is no model: nothing is validated that the daemon itself writes and reads, and a library that makes models of
    tables takes SQLAlchemy's ORM along, 8 MiB. Rows are read and written by statements here.
    """

    __tablename__: ClassVar[str]
    table: ClassVar[Table]
    _names: ClassVar[Set[str]]
    _defaults: ClassVar[Mapping[str, Any]]

    def __init__(self, **values: Any) -> None:
        """A row of these values, and of defaults for the others. Raises TypeError where one is missing or unknown."""
        given = {**self._defaults, **values}
        if given.keys() != self._names:
            raise TypeError(f"{type(self).__name__} has other columns: {sorted(values)}")
        self.__dict__.update(given)

    def __init_subclass__(cls) -> None:
        fields = {name: _said(cls.__dict__.get(name, ...)) for name in cls.__annotations__}
        columns = {name: field.column(cls.__annotations__[name]) for name, field in fields.items()}
        for name, column in columns.items():
            column.name = column.key = name
            if name in cls.__dict__:
                delattr(cls, name)  # what was said of a column is no value
        arguments = getattr(cls, "__table_args__", ())
        options = arguments[-1] if arguments and isinstance(arguments[-1], dict) else {}
        constraints = [one for one in arguments if one is not options]
        cls.table = Table(cls.__tablename__, METADATA, *columns.values(), *constraints, **options)
        cls._names = frozenset(fields)
        cls._defaults = {name: field.default for name, field in fields.items() if field.default is not ...}

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    __hash__ = None  # type: ignore[assignment]  # as it can be changed

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


def _said(value: Any) -> _Field:
    return value if isinstance(value, _Field) else _Field(value)


def json_column(*, items: type | None = None, nullable: bool = False) -> Any:
    """Return a column of JSON, where no value is NULL. items: of what it has lists; None: it has objects."""
    return Column(StoredJson(items), nullable=nullable)


def shown_json_column(*, items: type | None = None, nullable: bool = False) -> Any:
    """Return a column of JSON that people may see. items: as for ``json_column``."""
    return Column(ShownJson(items), nullable=nullable)


def shown_text_column(*, nullable: bool = False) -> Any:
    """Return a column of text that people may see."""
    return Column(ShownText(), nullable=nullable)


def by_operator() -> Any:
    """Return rows of before there were principals were all made by the operator."""
    return Field(default=OPERATOR.id, server_default=OPERATOR.id)


_POSTGRESQL = "condition for postgresql"


def partial_index(
    name: str, *columns: str, where: str, on_postgresql: str | None = None, unique: bool = False
) -> Index:
    """Return an index on the rows for which the condition holds. on_postgresql: how that is written there, if
    otherwise."""
    info = {_POSTGRESQL: on_postgresql or where}
    return Index(name, *columns, unique=unique, sqlite_where=text(where), info=info)


@compiles(CreateIndex, "postgresql")
def _create_with_condition(create: CreateIndex, compiler: Any, **options: Any) -> str:
    """Where a table is declared with ``postgresql_where``, SQLAlchemy imports all of that dialect, also for SQLite."""
    index: Index = create.element
    if (condition := index.info.get(_POSTGRESQL)) is not None:
        index.dialect_options["postgresql"]["where"] = text(condition)
    created: str = compiler.visit_create_index(create, **options)
    return created


class _Bytewise(FunctionElement[str]):
    """A text that is compared by its bytes."""

    type = String()
    name = "bytewise"
    inherit_cache = True


def bytewise(column: ColumnElement[str]) -> ColumnElement[str]:
    """Return the column to order by, so that names have one order: a PostgreSQL database has a locale, SQLite none."""
    return _Bytewise(column)


@compiles(_Bytewise)
def _as_it_is(element: _Bytewise, compiler: Any, **options: Any) -> str:
    return str(compiler.process(element.clauses, **options))


@compiles(_Bytewise, "postgresql")
def _without_locale(element: _Bytewise, compiler: Any, **options: Any) -> str:
    return f'{compiler.process(element.clauses, **options)} COLLATE "C"'
