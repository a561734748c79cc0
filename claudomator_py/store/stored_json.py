"""JSON as it comes out of rows: nothing that a row holds keeps other rows from being read.

Rows may have been changed by hand, restored from elsewhere or damaged. What is no JSON, nests deeper than anything
that is stored, or has numbers that no column and no answer can hold is ``Unreadable``: a value that no shape accepts,
so that whoever needs it fails for that row alone, and a mapping without keys for whoever only looks something up.

``ShownJson`` and ``ShownText`` are for columns whose values people may see: whatever is written to them is written
without secrets. All that happens comes together there on its way into the store, so that no writer of an event or a
hold can forget it. What a run needs as it was given, such as a task's content, is in columns of another type.
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, Final, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError
from sqlalchemy import JSON, ColumnElement, Dialect, String, TypeDecorator
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from claudomator_py.domain.redaction import Redactor, clean
from claudomator_py.domain.units import counted
from claudomator_py.values import regex

MAX_DEPTH: Final = 200
"""As for events of agents, the deepest of what is stored, see ``agents.jsonlines``."""
MAX_KEPT: Final = 512
"""Values of a shape that are kept with the text that they were read from."""
MAX_KEPT_TEXT: Final = 8 * 1024
"""Characters of such a text."""
_MAX_INTEGER: Final = 2**63
_LONG_NUMBER = regex(r"[0-9](?:[0-9]{18}|[eE]\+?[0-9]{3})")
"""With one set of characters to begin with, it is looked for in the time that decoding takes."""
_OUTSIDE_TEXT: Final = regex(r"(?:^|[:,\[\s])-?(?:[0-9]{19}|[0-9]+(?:\.[0-9]+)?[eE]\+?[0-9]{3})")
"""What it is in a number: ids in texts have such digits often."""
_LONE: Final = regex("[\ud800-\udfff]")
_LONE_ON_POSTGRESQL: Final = (
    r"\\u0000"
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)
"""Escapes that PostgreSQL stores in a ``json``, and takes out of none."""

M = TypeVar("M", bound=BaseModel)
log = logging.getLogger(__name__)
Clean = Callable[[Any], Any]
_SHAPES = Redactor()
_clean: ContextVar[Clean] = ContextVar("clean", default=lambda value: clean(value, _SHAPES))


class Unreadable(Mapping[str, Any]):
    """What stands for JSON that cannot be read."""

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
    """Return the value, or ``UNREADABLE``. Half of a surrogate pair, which no answer can hold, is a replacement
    character."""
    try:
        if isinstance(text, bytes):
            text = text.decode()
        value = _DECODER.decode(text)
        if text.count("[") + text.count("{") > MAX_DEPTH and _is_deep(value):
            return UNREADABLE
        if _LONG_NUMBER.search(text) is not None and _OUTSIDE_TEXT.search(text) is not None and not _fits(value):
            return UNREADABLE
        return _mended(value) if "\\u" in text else value
    except (ValueError, RecursionError):
        return UNREADABLE


def readable(shape: type[M], stored: object) -> M | None:
    """Return what is stored as that shape, for whoever shows it; None: nothing is, or what is cannot be read."""
    if stored is None:
        return None
    try:
        return shape.model_validate(stored)
    except ValidationError as error:
        log.warning("what is stored as %s cannot be read: %s", shape.__name__, counted(error.error_count(), "problem"))
        return None


def keeping_reader(shape: type[M]) -> Callable[[object], M | None]:
    """Return what makes of a text that ``raw`` selects what ``readable`` makes of its JSON.

    What the latest of them hold is kept by the whole text, so that it is never older than what the row has. The shape
    must be frozen: whoever asks for the same text is given the same value.
    """

    def read(text: object) -> M | None:
        stored = read_json(text) if isinstance(text, str | bytes) else UNREADABLE
        return readable(shape, stored if isinstance(stored, dict) else UNREADABLE)

    @lru_cache(maxsize=MAX_KEPT)
    def kept(text: str) -> M:
        value = read(text)
        if value is None:
            raise LookupError  # which is not kept: it is said anew each time
        return value

    def look_up(text: object) -> M | None:
        if not isinstance(text, str) or len(text) > MAX_KEPT_TEXT:
            return read(text)
        try:
            return kept(text)
        except LookupError:
            return None

    return look_up


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        inner = (item.values() if isinstance(item, dict) else item for item in level if isinstance(item, dict | list))
        level = [item for items in inner for item in items if isinstance(item, dict | list)]
        if not level:
            return False
    return True


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
        return {_mended(key): _mended(one) for key, one in value.items()}
    return [_mended(one) for one in value] if isinstance(value, list) else value


class StoredJson(TypeDecorator[Any]):
    """JSON, an object or a list; no value is NULL."""

    impl = JSON
    cache_ok = True

    def __init__(self, items: type | None = None) -> None:
        """items: of what there is a list; None: it is an object."""
        super().__init__(none_as_null=True)
        self.items = items

    def coerce_compared_value(self, op: Any, value: Any) -> Any:
        """Return what is compared with a part of the JSON is not JSON itself."""
        return self.impl_instance.coerce_compared_value(op, value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """Return the value, if it is of that kind; a list without what is none of its items."""
        if self.items is None:
            return value if value is None or isinstance(value, dict) else UNREADABLE
        if value is None or (isinstance(value, list) and all(isinstance(one, self.items) for one in value)):
            return value
        return [one for one in value if isinstance(one, self.items)] if isinstance(value, list) else []


class _Sound(FunctionElement[Any]):
    """A column of JSON, NULL where the database cannot look into what it holds."""

    type = JSON()
    name = "sound_json"
    inherit_cache = True


def sound(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return the column for looking into its JSON in a statement, which one row that is damaged would end else."""
    return _Sound(column)


@compiles(_Sound)
def _valid(element: _Sound, compiler: Any, **options: Any) -> str:
    column = compiler.process(element.clauses, **options)
    return f"CASE WHEN json_valid({column}) THEN {column} END"


@compiles(_Sound, "postgresql")
def _without_halves(element: _Sound, compiler: Any, **options: Any) -> str:
    column = compiler.process(element.clauses, **options)
    return f"CASE WHEN CAST({column} AS TEXT) !~ '{_LONE_ON_POSTGRESQL}' THEN {column} END"


class _Raw(FunctionElement[Any]):
    """A column of JSON as its text."""

    type = String()
    name = "raw_json"
    inherit_cache = True


def raw(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return the column's JSON as it is stored, to be read by whoever selects it."""
    return _Raw(column)


@compiles(_Raw)
def _as_stored(element: _Raw, compiler: Any, **options: Any) -> str:
    return str(compiler.process(element.clauses, **options))


@compiles(_Raw, "postgresql")
def _as_text(element: _Raw, compiler: Any, **options: Any) -> str:
    return f"CAST({compiler.process(element.clauses, **options)} AS TEXT)"


class ShownText(TypeDecorator[str]):
    """Text, stored without secrets."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return the text without secrets."""
        return None if value is None else _clean.get()(value)


class ShownJson(StoredJson):
    """JSON, stored without secrets."""

    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """Return the value without secrets."""
        return None if value is None else _clean.get()(value)


def cleaned(text: str) -> str:
    """Return the text as such a column would hold it; inside a write, where it is to be shortened."""
    found: str = _clean.get()(text)
    return found


@contextmanager
def cleaned_with(known: Clean) -> Iterator[None]:
    """Clean with that what this thread writes while the block lasts. known: the value, without any secret."""
    token = _clean.set(known)
    try:
        yield
    finally:
        _clean.reset(token)
