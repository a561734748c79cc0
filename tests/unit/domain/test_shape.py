"""The shapes of the API are read from rows and values: what is told of them is written once."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import pytest
from pydantic import ValidationError

from claudomator_py.domain.shape import Instant, View

_NOON_MS = 1_796_040_000_000
_NOON = "2026-11-30T12:00:00.000Z"


@dataclass(frozen=True)
class _Row:
    id: str = "a1"
    state: str = "QUEUED"
    created_ms: int = _NOON_MS
    ended_ms: int | None = None


class _Shape(View):
    id: str
    state: str
    tries: int = 0
    created_at: Instant
    ended_at: Instant | None = None


def test_fields_are_the_attributes_of_that_name_and_times_are_written_out() -> None:
    shape = _Shape.of(_Row())
    assert shape.model_dump() == {
        "id": "a1",
        "state": "QUEUED",
        "tries": 0,
        "created_at": _NOON,
        "ended_at": None,
    }


def test_what_is_said_besides_goes_first() -> None:
    shape = _Shape.of(_Row(), state="FAILED", tries=2, ended_at=_NOON_MS)
    assert (shape.state, shape.tries, shape.ended_at) == ("FAILED", 2, _NOON)


def test_a_name_that_is_no_field_is_a_fault_and_not_left_out() -> None:
    with pytest.raises(TypeError, match="_Shape has no sate"):
        _Shape.of(_Row(), sate="FAILED")


def test_a_field_that_the_source_lacks_is_missing_unless_it_has_a_default() -> None:
    with pytest.raises(ValidationError, match="state"):
        _Shape.of(object(), id="a1", created_at=_NOON)


class _Colour(StrEnum):
    RED = "red"


class _Wide(_Shape):
    colour: _Colour
    size: Literal["s", "m"]
    items: tuple[int, ...]
    table: dict[str, int]
    note: str | None


def test_what_of_a_row_cannot_be_read_is_replaced_and_the_rest_is_shown() -> None:
    written: dict[str, object] = {
        "state": 5, "tries": "many", "created_at": 7 * 10**18, "ended_at": "soon", "colour": "blue", "size": 3,
        "items": "none", "table": [], "note": 5,
    }  # fmt: skip
    shape = _Wide.legible(_Row(), **written)
    assert shape.model_dump() == {
        "id": "a1",
        "state": "cannot be read",
        "tries": 0,
        "created_at": "1970-01-01T00:00:00.000Z",
        "ended_at": "1970-01-01T00:00:00.000Z",
        "colour": "red",
        "size": "s",
        "items": (),
        "table": {},
        "note": None,
    }


def test_an_answer_that_was_written_out_is_read_as_it_is() -> None:
    assert _Shape.model_validate_json(_Shape.of(_Row()).model_dump_json()) == _Shape.of(_Row())
