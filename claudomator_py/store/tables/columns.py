"""What the tables are made of: names of constraints, and kinds of columns and indexes that several of them have."""

from typing import Any

from sqlalchemy import JSON, BigInteger, Column, Index, Integer, text
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import CreateIndex
from sqlmodel import Field, SQLModel

from claudomator_py.domain.principal import OPERATOR
from claudomator_py.store.shown import ShownJson, ShownText

RowNumber: Any = BigInteger().with_variant(Integer, "sqlite")

SQLModel.metadata.naming_convention = {
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
    "uq": "uq_%(table_name)s_%(column_0_name)s",
}


def json_column(*, nullable: bool = False) -> Any:
    """A column of JSON, where no value is NULL."""
    return Column(JSON(none_as_null=True), nullable=nullable)


def shown_json_column(*, nullable: bool = False) -> Any:
    """A column of JSON that people may see."""
    return Column(ShownJson(), nullable=nullable)


def shown_text_column(*, nullable: bool = False) -> Any:
    """A column of text that people may see."""
    return Column(ShownText(), nullable=nullable)


def by_operator() -> Any:
    """Rows of before there were principals were all made by the operator."""
    return Field(default=OPERATOR.id, sa_column_kwargs={"server_default": OPERATOR.id})


_POSTGRESQL = "condition for postgresql"


def partial_index(
    name: str, *columns: str, where: str, on_postgresql: str | None = None, unique: bool = False
) -> Index:
    """An index on the rows for which the condition holds. on_postgresql: how that is written there, if otherwise."""
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
