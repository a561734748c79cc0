"""Text of agents, cut to what fits a list."""

import json

import pytest

from claudomator_py.texts import clause, escaped, one_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no route to host", "no route to host"),
        ("\n\n  it failed\nTraceback (most recent call last):", "it failed"),
        ("You've hit your limit · resets 3pm (Europe/Berlin)", "You've hit your limit"),
        ('API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}', "API Error: 529"),
        ('[API Error: {"error":{"code":429}}]', "API Error"),
        ("Quota exceeded for tokens, limit: 0. Please retry in 45s.", "Quota exceeded for tokens, limit: 0"),
        ("No access; see https://example.com/help", "No access"),
        ("see the docs at https://example.com", "see the docs at"),
        ("needs Node 22.4 or newer", "needs Node 22.4 or newer"),
        ('{"error": {"message": "Overloaded"}}', ""),
        ("<!DOCTYPE html>", ""),
        ("", ""),
        ("word " * 40, "word " * 22 + "word…"),
    ],
)
def test_a_clause_is_the_beginning_of_what_was_said(text: str, shown: str) -> None:
    assert clause(text, 116) == shown


UNSEEN = (
    "\x00\x1b\x7f\x85\x9b\u00ad\u061c\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u202a\u202e\u2060\u2066\u2069"
    "\ufeff\U000e0041"
)


def test_what_nobody_sees_is_escaped_and_json_means_the_same() -> None:
    text = f"{UNSEEN}ä 🎉 漢\t\n"
    written = escaped(json.dumps(text, ensure_ascii=False))
    assert json.loads(written) == text
    assert not set(UNSEEN) & set(written)
    assert "ä 🎉 漢" in written
    assert escaped("\udc80") == "\\udc80"
    assert escaped("tabs\tand\nlines stay") == "tabs\tand\nlines stay"


def test_a_cell_has_no_joiners() -> None:
    assert one_line("ad\u200dm\u200cin") == "admin"
