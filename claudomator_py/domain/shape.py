"""What all JSON shapes of the API have in common. Field order is the order of the JSON.

Instants are RFC 3339 strings in UTC (see ``domain.units.format_instant``); states are upper case; priorities are names.
Tokens and cost are the run's own share. A signal is a negative exit code.
"""

from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from itertools import product
from typing import Annotated, Any, Final, Generic, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from claudomator_py.domain.errors import Problem
from claudomator_py.domain.units import format_instant


def _instant(value: object) -> object:
    return format_instant(value) if isinstance(value, int) else value


Instant = Annotated[str, BeforeValidator(_instant), Field(json_schema_extra={"format": "date-time"})]
"""RFC 3339 in UTC. Epoch milliseconds, as rows and domain values have them, are written so."""


class View(BaseModel):
    """Base of all shapes. A client ignores fields that a newer daemon has added."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", from_attributes=True, json_schema_serialization_defaults_required=True
    )

    @classmethod
    def of(cls, *sources: object, **more: Any) -> Self:
        """Return the shape of rows or domain values: each field is the attribute of that name, and ``x_at`` the
        ``x_ms``, of the first of them that has it.

        more: fields that are something else, or that no source knows; where nobody says anything, a field has its
        default. Raises TypeError for what is no field, and ValueError for what does not fit.
        """
        if unknown := more.keys() - cls.model_fields.keys():
            raise TypeError(f"{cls.__name__} has no {', '.join(sorted(unknown))}")
        values = dict(more)
        for name, attributes in _attributes(cls):
            if name not in more:
                for source, attribute in product(sources, attributes):
                    if (found := _said(source, attribute)) is not _NOTHING:
                        values[name] = found
                        break
        return cls.model_validate(values)


_NOTHING: Final = object()


def _said(source: object, attribute: str) -> object:
    """What the source has under that name. A model is asked in vain for what it lacks at ten times the cost of this."""
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
    """The names that each field of the shape may have in a source."""
    return tuple((name, (name, f"{name.removesuffix('_at')}_ms")) for name in shape.model_fields)


T = TypeVar("T")


class Page(View, Generic[T]):
    """A part of a list."""

    items: tuple[T, ...]
    next_cursor: str | None = None
    """Pass it as ``cursor`` for the next part; null at the end."""


MAX_PAGE: Final = 200
"""The most items that a part of a list has."""


def all_items(fetch: Callable[[str | None, int], Page[T]]) -> Iterator[T]:
    """Yield the items of a whole list, fetched part by part as they are read. fetch: the part behind a cursor, of at
    most so many."""
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
    """Its stable name."""
    remedy: str
    """What to do next."""
    problems: tuple[Problem, ...] = ()
    """Each fault, where a document or several fields were wrong."""
