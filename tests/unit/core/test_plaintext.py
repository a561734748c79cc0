"""Text of agents, cut to what fits a list."""

import pytest

from claudomator_py.core.plaintext import clause


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("no route to host", "no route to host"),
        ("\n\n  it failed\nTraceback (most recent call last):", "it failed"),
        ("You've hit your limit · resets 3pm (Europe/Berlin)", "You've hit your limit"),
        ('API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}', "API Error: 529"),
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
def test_a_clause_is_the_beginning_of_what_was_said(said: str, shown: str) -> None:
    assert clause(said, 116) == shown
