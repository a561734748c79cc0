"""JSON of rows: whatever text is there, reading it raises nothing and gives nothing that an answer could not hold."""

import json
import math

import pytest
from pydantic import ValidationError
from sqlalchemy.dialects.sqlite.base import SQLiteDialect

from claudomator_py.domain.outcome import Outcome
from claudomator_py.environment.secrets import Secrets
from claudomator_py.json_fields import MAX_DEPTH
from claudomator_py.store.stored_json import (
    UNREADABLE,
    ShownJson,
    StoredJson,
    clean_with,
    read_json,
    readable,
)

LEVELS = 100_000
DIALECT = SQLiteDialect()


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "nonsense", '{"a": 1,}', "\x00", '{"a": "\n"}'),
        *('{"a": x}', '{"a": ', "[1,]", "[", "{} {}", '{"a": 1}x', "[] ,"),
        *("NaN", "[Infinity]", '{"a": {"b": -Infinity}}', "1e999", '{"a": [-1e9999]}', '{"a": 1e400}'),
        *('{"a": 9223372036854775808}', "-9223372036854775809", f'{{"a": {"9" * 5000}}}', f"[{10**400}]"),
        "[" * LEVELS + "]" * LEVELS,
        '{"a":' * LEVELS + "1" + "}" * LEVELS,
        "[" * 500 + "]" * 500,
        '[{"a":' * (MAX_DEPTH // 2 + 1) + "1" + "}]" * (MAX_DEPTH // 2 + 1),
    ],
    ids=lambda text: f"{text[:12]} of {len(text)}",
)
def test_what_no_answer_can_hold_is_unreadable(text: str) -> None:
    assert read_json(text) is UNREADABLE
    assert read_json(text.encode()) is UNREADABLE


@pytest.mark.parametrize("value", [{}, [], None, {"a": [1, 2.5, "é 😀 \\ud800", True]}, 2**63 - 1, "9" * 40, 1e300])
def test_what_is_stored_comes_back_as_it_was(value: object) -> None:
    assert read_json(json.dumps(value)) == value
    assert read_json(json.dumps(value, ensure_ascii=False).encode()) == value
    assert read_json(f" {json.dumps(value, indent=1)}\n") == value


def test_wide_is_not_deep() -> None:
    wide: list[list[list[object]]] = [[[]] for _ in range(LEVELS)]

    assert read_json(json.dumps(wide)) == wide


def test_half_of_a_character_is_replaced_and_a_whole_one_is_not() -> None:
    assert read_json('{"\\ud800": ["a\\udfffb", "\\ud83d\\ude00"]}') == {"\ufffd": ["a\ufffdb", "😀"]}


def test_no_shape_accepts_what_cannot_be_read_and_looking_something_up_finds_nothing() -> None:
    with pytest.raises(ValidationError):
        Outcome.model_validate(UNREADABLE)
    assert readable(Outcome, UNREADABLE) is None
    assert readable(Outcome, {"status": math.nan}) is None
    assert readable(Outcome, None) is None
    assert (UNREADABLE.get("state"), list(UNREADABLE), {**UNREADABLE}) == (None, [], {})


def test_a_column_gives_what_it_is_for() -> None:
    objects, names = StoredJson(), StoredJson(str)

    def given(column: StoredJson, value: object) -> object:
        return column.process_result_value(value, DIALECT)

    assert given(objects, {"a": 1}) == {"a": 1}
    odd: list[object] = [[], "x", 12, True]
    assert [given(objects, entry) for entry in odd] == [UNREADABLE] * 4
    assert (given(objects, None), given(names, None)) == (None, None)
    assert given(names, ["a", 1, None, "b"]) == ["a", "b"]
    odd = [{"a": 1}, "ab", 3, UNREADABLE]
    assert [given(names, entry) for entry in odd] == [[]] * 4


SECRETS = ["known-secret", 'with "quotes" and \\', "line one of it\nline two of it", "schlüssel-wort"]


@pytest.mark.parametrize("secret", [*SECRETS, f"sk-{'a' * 20}"])
@pytest.mark.parametrize(
    "text", ["{}", "it said {}", "\n{}\t", '"{}"', "über {}…", "é{}", "{} https://me:hunter2@host"]
)
def test_what_people_may_see_is_stored_without_secrets_however_json_writes_them(secret: str, text: str) -> None:
    clean = Secrets(SECRETS).clean
    value = {"why": text.format(secret), "cut": text.format(f"{secret[:10]}..."), "of": [{"state": "COMPLETED"}]}
    clear = {"why": text.format("nothing"), "state": "COMPLETED", "none": None, "of": [1, "é", "a\\b"]}
    stored, stop = ShownJson().bind_processor(DIALECT), clean_with(clean)
    assert stored is not None
    try:
        assert json.loads(stored(value)) == clean(value) != value
        assert json.loads(stored(clear)) == clean(clear)
    finally:
        stop()
