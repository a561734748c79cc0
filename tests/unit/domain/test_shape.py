"""The shapes of the API are read from rows and values: what is told of them is written once."""

from dataclasses import dataclass

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


def test_an_answer_that_was_written_out_is_read_as_it_is() -> None:
    assert _Shape.model_validate_json(_Shape.of(_Row()).model_dump_json()) == _Shape.of(_Row())
