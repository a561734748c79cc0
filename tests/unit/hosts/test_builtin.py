"""The supervisor's JSON is that of the library."""

import json

import pytest

from claudomator_py.hosts.shim.builtin import dumps, loads

TEXTS = (
    "{}",
    " [1, 2.5, -3e4, true, false, null]\n",
    '{"a": {"b": "\\u00e4 \\ud83d\\ude00 \\udc80"}, "ä": []}',
    "[NaN, Infinity, -Infinity]",
)
BROKEN = ("", "{", '{"a":}', "1 2", "nul", "[1,]", '"\x01"', "{'a': 1}", "[" * 3)


@pytest.mark.parametrize("text", TEXTS)
def test_it_reads_and_writes_as_the_library_does(text: str) -> None:
    assert repr(loads(text.encode())) == repr(json.loads(text))
    assert dumps(json.loads(text)) == json.dumps(json.loads(text)).encode()


@pytest.mark.parametrize("text", BROKEN)
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)
    with pytest.raises(ValueError, match=r"."):
        loads(text.encode())


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(UnicodeDecodeError):
        loads(b'"\xff"')


def test_deep_nesting_and_other_values_are_refused() -> None:
    with pytest.raises(RecursionError):
        loads(b"[" * 200_000)
    with pytest.raises(TypeError, match="object has no form in JSON"):
        dumps({"a": object()})
