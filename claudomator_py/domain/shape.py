"""Base of all JSON shapes of the API. Field order is the order in the JSON.

Instants are RFC 3339 strings in UTC (see ``domain.units.format_instant``); states are upper case; priorities are names.
Tokens and cost are the run's own share. A signal is a negative exit code.
"""

from collections.abc import Callable, Iterator
from enum import EnumType
from functools import cache, lru_cache
from itertools import product
from typing import Annotated, Any, Final, Generic, Literal, Self, TypeVar, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from claudomator_py.domain.errors import Problem
from claudomator_py.domain.units import format_instant


def _instant(value: object) -> object:
    return value if value is None or (isinstance(value, str) and value[4:5] == "-") else readable_instant(value)


def readable_instant(value: object) -> str:
    """Return the instant of a row's epoch milliseconds, or the epoch for what somebody has made of them by hand."""
    try:
        return format_instant(value if isinstance(value, int) else 0)
    except (ValueError, OverflowError):
        return format_instant(0)


Instant = Annotated[str, BeforeValidator(_instant), Field(json_schema_extra={"format": "date-time"})]
"""RFC 3339 in UTC. Accepts epoch milliseconds, which rows and domain values use."""


class View(BaseModel):
    """Base of all shapes. A client ignores fields added by a newer daemon."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", from_attributes=True, json_schema_serialization_defaults_required=True
    )

    @classmethod
    def of(cls, *sources: object, **more: Any) -> Self:
        """Return the shape built from rows or domain values: each field comes from the first source that has an
        attribute of that name or, for ``x_at``, ``x_ms``.

        more: fields with other values, or that no source has; a field found nowhere gets its default. Raises TypeError
        for an unknown field, and ValueError for a value that does not fit.
        """
        return cls.model_validate(cls._values(sources, more))

    @classmethod
    def legible(cls, *sources: object, **more: Any) -> Self:
        """Return the shape as ``of`` builds it, but with stand-ins for values that do not fit, as in a row that
        somebody has changed by hand: the field's default, or an empty value. Text says that it cannot be read."""
        values = cls._values(sources, more)
        for stand_in in _STAND_INS:
            try:
                return cls.model_validate(values)
            except ValidationError as error:
                for name in {str(problem["loc"][0]) for problem in error.errors()}:
                    field = cls.model_fields[name]
                    first = _first_choice(field.annotation, stand_in)
                    values[name] = first if field.is_required() else field.get_default()
        return cls.model_validate(values)

    @classmethod
    def _values(cls, sources: tuple[object, ...], more: dict[str, Any]) -> dict[str, Any]:
        if unknown := more.keys() - cls.model_fields.keys():
            raise TypeError(f"{cls.__name__} has no {', '.join(sorted(unknown))}")
        values = dict(more)
        for name, attributes in _attributes(cls):
            if name not in more:
                for source, attribute in product(sources, attributes):
                    if (value := _attribute(source, attribute)) is not _NOTHING:
                        values[name] = value
                        break
        return values


def _first_choice(kind: Any, otherwise: object) -> object:
    """Return the first of the values that a field of this kind permits, if it lists them."""
    listed = kind if isinstance(kind, EnumType) else get_args(kind) if get_origin(kind) is Literal else ()
    return next(iter(listed), otherwise)


_STAND_INS: Final[tuple[object, ...]] = (None, "cannot be read", 0, (), {})
"""What takes the place of a value that does not fit, tried in order."""
_NOTHING: Final = object()


def _attribute(source: object, attribute: str) -> object:
    """The source's attribute of that name. For a model, a failed getattr costs ten times as much as this check."""
    if isinstance(source, BaseModel) and attribute in source.__dict__:
        return source.__dict__[attribute]
    if isinstance(source, BaseModel) and not _has(type(source), attribute):
        return _NOTHING
    return getattr(source, attribute, _NOTHING)


@lru_cache(maxsize=1024)
def _has(kind: type, attribute: str) -> bool:
    return hasattr(kind, attribute)


@cache
def _attributes(shape: type[View]) -> tuple[tuple[str, tuple[str, str]], ...]:
    """The attribute names that each field of the shape may have in a source."""
    return tuple((name, (name, f"{name.removesuffix('_at')}_ms")) for name in shape.model_fields)


T = TypeVar("T")


class Page(View, Generic[T]):
    """A part of a list."""

    items: tuple[T, ...]
    next_cursor: str | None = None
    """Pass this as ``cursor`` for the next part; null at the end."""


MAX_PAGE: Final = 200
"""Maximum number of items in a part of a list."""


def all_items(fetch: Callable[[str | None, int], Page[T]]) -> Iterator[T]:
    """Yield the items of a whole list, fetching each part when it is needed. fetch: returns the part after a cursor,
    with at most the given number of items."""
    page = fetch(None, MAX_PAGE)
    yield from page.items
    while page.next_cursor is not None:
        page = fetch(page.next_cursor, MAX_PAGE)
        yield from page.items


class ProblemDetails(View):
    """An error response of the API (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None
    code: str
    """Stable name of the error."""
    remedy: str
    """What to do next."""
    problems: tuple[Problem, ...] = ()
    """Each problem, if a document or several fields were wrong."""
