"""Types for JSON columns, which never raise when read, so that a damaged row does not keep others from being read.

Rows may have been edited by hand, restored from elsewhere or damaged. A value that is not JSON, nests too deep or has
numbers beyond 64 bits is read as ``Unreadable``: no shape accepts it, so only code that needs it fails, and only for
that row; for a mere lookup it is a mapping without keys.

``ShownJson`` and ``ShownText`` are for columns that people may see: secrets are removed from whatever is written, so
that no writer of an event or a hold can forget to. Columns of other types hold what runs need verbatim, such as specs.
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache, partial
from typing import Any, Final, NoReturn, TypeVar, cast

from pydantic import BaseModel, ValidationError
from sqlalchemy import JSON, ColumnElement, Dialect, String, TypeDecorator
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from claudomator_py.domain.redaction import Redactor, clean
from claudomator_py.domain.units import counted
from claudomator_py.json_fields import MAX_DEPTH, is_deep, refuse_constant
from claudomator_py.values import regex

MAX_KEPT: Final = 256
"""Parsed values cached per shape: all tasks that are routed at once, until they start."""
MAX_KEPT_TEXT: Final = 8 * 1024
"""Characters of a text up to which its value is cached."""
_MAX_INTEGER: Final = 2**63
_LONG_NUMBER = regex(r"[0-9](?:[0-9]{18}|[eE]\+?[0-9]{3}(?![0-9]{0,9}[\"a-zA-Z]))")
"""A fast pre-check for long numbers; its single leading character class keeps the search as fast as decoding. A hash
often looks like a number with an exponent, but goes on with letters."""
_OUTSIDE_TEXT: Final = regex(r"[:,\[\s]-?(?:[0-9]{19}|[0-9]+(?:\.[0-9]+)?[eE]\+?[0-9]{3})")
"""The exact check, for numbers outside of strings. It begins with a character class, too, instead of ``^`` for a lone
number."""
_LONE: Final = regex("[\ud800-\udfff]")
_LONE_ON_POSTGRESQL: Final = (
    r"\\u0000"
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)
"""Escapes that PostgreSQL stores in ``json`` but cannot extract."""

M = TypeVar("M", bound=BaseModel)
log = logging.getLogger(__name__)
Clean = Callable[[Any], Any]
_PATTERNS = Redactor()


def _redact_patterns(value: Any) -> Any:
    return clean(value, _PATTERNS)


_clean: ContextVar[Clean] = ContextVar("clean", default=_redact_patterns)


class Unreadable(Mapping[str, Any]):
    """Stands for JSON that cannot be read."""

    def __getitem__(self, key: str) -> NoReturn:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "JSON that cannot be read"


UNREADABLE: Final = Unreadable()


def read_json(text: str | bytes) -> Any:
    """Return the value, or ``UNREADABLE``. Lone surrogates, which no response can hold, become U+FFFD."""
    try:
        if isinstance(text, bytes):
            text = text.decode()
        # The fast path is one call of the scanner; anything around the value takes the full decoder.
        value, end = _scan(text, 0) if text[:1] in _OPENING else (None, -1)
        if end != len(text):
            value = _DECODER.decode(text)
        if text.count("[") + text.count("{") > MAX_DEPTH and is_deep(value):
            return UNREADABLE
        if _LONG_NUMBER.search(text) is not None and _OUTSIDE_TEXT.search(f" {text}") is not None and not _fits(value):
            return UNREADABLE
        return _mended(value) if "\\u" in text else value
    except (ValueError, RecursionError, StopIteration):
        return UNREADABLE


DAMAGED: Final = (ValueError, TypeError, LookupError, AttributeError)
"""Errors that a row may raise which somebody has changed by hand."""


def readable(shape: type[M], stored: object) -> M | None:
    """Return the stored value as this shape, or None, with a warning in the log, if it is unreadable."""
    if stored is None:
        return None
    try:
        return shape.model_validate(stored)
    except ValidationError as error:
        _warn(shape, error)
        return None


def _warn(shape: type[BaseModel], error: ValidationError) -> None:
    log.warning("what is stored as %s cannot be read: %s", shape.__name__, counted(error.error_count(), "problem"))


def cached_reader(shape: type[M], read: Callable[[object], M] | None = None) -> Callable[[object], M | None]:
    """Return a function like ``readable`` for the texts that ``raw`` selects. Recent values are cached by their whole
    text, so they are never stale. The shape must be frozen, as callers share values. read: a ``reader`` to use."""
    read = read or reader(shape)

    def look_up(text: object) -> M | None:
        try:
            return read(text)
        except ValidationError as error:
            _warn(shape, error)
            return None

    return look_up


def reader(shape: type[M]) -> Callable[[object], M]:
    """Return a function like that of ``cached_reader`` which raises ValidationError for an unreadable text."""

    def read(text: object) -> M:
        stored = read_json(text) if isinstance(text, str | bytes) else UNREADABLE
        return shape.model_validate(stored if isinstance(stored, dict) else UNREADABLE)

    kept = lru_cache(maxsize=MAX_KEPT)(read)  # it keeps nothing that raises, so each warning is logged
    return lambda text: kept(text) if type(text) is str and len(text) <= MAX_KEPT_TEXT else read(text)


_DECODER = json.JSONDecoder(parse_constant=refuse_constant)
_scan: Callable[[str, int], tuple[Any, int]] = vars(_DECODER)["scan_once"]
_OPENING = ("{", "[")


def _fits(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_fits, value.values()))
    if isinstance(value, list):
        return all(map(_fits, value))
    if isinstance(value, float):
        return abs(value) != float("inf")
    return not isinstance(value, int) or -_MAX_INTEGER <= value < _MAX_INTEGER


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return _LONE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_mended(key): _mended(item) for key, item in value.items()}
    return [_mended(item) for item in value] if isinstance(value, list) else value


_encode = json.JSONEncoder().encode


def _as_text_of(value: Any) -> str | None:
    return None if value is None else _encode(value)


class StoredJson(TypeDecorator[Any]):
    """A column of JSON objects or lists. None is stored as NULL."""

    impl = JSON
    cache_ok = True

    def __init__(self, items: type | None = None) -> None:
        """items: the type of a list's items; None: the column holds objects."""
        super().__init__(none_as_null=True)
        self.items = items

    def coerce_compared_value(self, op: Any, value: Any) -> Any:
        """Return the type of a value compared with a part of the JSON, which is not JSON itself."""
        return self.impl_instance.coerce_compared_value(op, value)

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any] | None:
        """Return the function that encodes values. For SQLite it does in one step what SQLAlchemy does in four."""
        return _as_text_of if dialect.name == "sqlite" else super().bind_processor(dialect)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any] | None:
        """Return the function that decodes values. In SQLite these are texts, unless edited by hand."""
        other: Any = super().result_processor(dialect, coltype)
        if dialect.name != "sqlite":
            return cast(Callable[[Any], Any] | None, other)
        objects = self.items is None

        def read(value: Any) -> Any:
            if type(value) is not str:
                return other(value)
            decoded = read_json(value)
            return decoded if objects and type(decoded) is dict else self.process_result_value(decoded, dialect)

        return read

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """Return the value if it is an object, else ``UNREADABLE``; for a list, the items of the right type."""
        if self.items is None:
            return value if value is None or isinstance(value, dict) else UNREADABLE
        if value is None or (isinstance(value, list) and all(isinstance(item, self.items) for item in value)):
            return value
        return [item for item in value if isinstance(item, self.items)] if isinstance(value, list) else []


def by_dialect(
    name: str, type_: Any, sqlite: str, postgresql: str
) -> Callable[[ColumnElement[Any]], ColumnElement[Any]]:
    """Return a function of a column whose SQL depends on the database. COLUMN in these texts stands for the column."""
    element: Any = type(name, (FunctionElement,), {"type": type_, "name": name, "inherit_cache": True})

    def compiled(sql: str, function: Any, compiler: Any, **options: Any) -> str:
        return sql.replace("COLUMN", compiler.process(function.clauses, **options))

    compiles(element)(partial(compiled, sqlite))
    compiles(element, "postgresql")(partial(compiled, postgresql))
    return cast("Callable[[ColumnElement[Any]], ColumnElement[Any]]", element)


sound = by_dialect(
    "sound_json",
    JSON(),
    "CASE WHEN json_valid(COLUMN) THEN COLUMN END",
    f"CASE WHEN CAST(COLUMN AS TEXT) !~ '{_LONE_ON_POSTGRESQL}' THEN COLUMN END",
)
"""A JSON column for use of its parts in SQL, NULL where the database cannot parse it: a damaged row would otherwise
fail the statement."""
raw = by_dialect("raw_json", String(), "COLUMN", "CAST(COLUMN AS TEXT)")
"""A JSON column as the stored text."""


class ShownText(TypeDecorator[str]):
    """A text column, stored without secrets."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return the text without secrets."""
        return None if value is None else _clean.get()(value)


class ShownJson(StoredJson):
    """A JSON column, stored without secrets."""

    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any] | None:
        """Return the function that encodes values without their secrets."""
        return _as_clean_text_of if dialect.name == "sqlite" else super().bind_processor(dialect)

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """Return the value without secrets."""
        return None if value is None else _clean.get()(value)


def _as_clean_text_of(value: Any) -> str | None:
    if value is None:
        return None
    clean, text = _clean.get(), _encode(value)
    # Without escapes, JSON has each text as it is: to search all of it takes a third of collecting the texts.
    if "\\" not in text and clean(text) == text:
        return text
    cleaned = clean(value)
    return text if cleaned is value else _encode(cleaned)


def cleaned(text: str) -> str:
    """Return the text as a ``ShownText`` column would store it. For use in a write, before shortening it."""
    return str(_clean.get()(text))


def clean_with(known: Clean | None) -> Callable[[], None]:
    """Set the function that removes secrets from this thread's writes, and return one that restores the former. known:
    returns a value without known secrets; None: only secrets of well-known shapes are removed."""
    return partial(_clean.reset, _clean.set(_redact_patterns if known is None else known))
