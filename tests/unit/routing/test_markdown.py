"""What is code in a text: each case is what a parser of CommonMark says of it, but for indented and quoted lines."""

import pytest

from claudomator_py.routing.markdown import code_and_quotes


def left(text: str) -> str:
    """The text without what is code or quoted."""
    parts, place = [], 0
    for start, end in sorted(code_and_quotes(text)):
        assert place <= start < end
        parts.append(text[place:start])
        place = end
    return "".join((*parts, text[place:]))


@pytest.mark.parametrize(
    ("text", "not_code"),
    [
        # code spans
        ("a `b` c", "a  c"),
        ("a ``b ` c`` d", "a  d"),
        ("a `b\nc` d", "a  d"),
        ("a `b\n\nc` d", "a `b\n\nc` d"),
        ("a \\`b` c", "a \\`b` c"),
        ("`a\\` b`", " b`"),
        # a paragraph ends before a heading, a thematic break, an item; not before an item that may not end it
        ("`a\n# b` c", "`a\n# b` c"),
        ("`a\n***\nb`", "`a\n***\nb`"),
        ("`a\n===\nb`", "`a\n===\nb`"),
        ("`a\n- b`", "`a\n- b`"),
        ("`a\n-\nb`", "`a\n-\nb`"),
        ("`a\n14. b` c", " c"),
        ("- x\n14. `a\n15. b`", "- x\n14. `a\n15. b`"),
        ("`a\n    # b` c", " c"),
        # tags and links bind as strongly as code does
        ('<a href="`">`b`', '<a href="`">'),
        ("<https://x/`y> `z`", "<https://x/`y> "),
        ("<!-- ` --> a ` b", "<!-- ` --> a ` b"),
        ("a < b `c` > d", "a < b  > d"),
        ("\\<a b='`'> c `", "\\<a b='"),
        ("\\<a b='` > c` d", "\\<a b=' d"),
        # fences
        ("```\na\n```\nb", "b"),
        ("~~~ x\na\n```\n~~\n~~~~\nb", "b"),
        ("``` a`b\nc", "``` a`b\nc"),
        ("   ```\na\n   ```\nb", "b"),
        ("    ```\na", "    ```\na"),
        ("```\na", ""),
        # fences in items end with them
        ("- ```\n  a\n  ```\n- b", "- - b"),
        ("- ```\n  a\nb", "- b"),
        ("- a\n  - b\n    ```\n    c\n    ```\n    d", "- a\n  - b\n        d"),
        ("- a\n\n  1. b\n\n     ~~~\n     c\n\n     d\n     ~~~\n  e", "- a\n\n  1. b\n\n       e"),
        ("1. a\n\n   ```\n   b\n   ```\nc", "1. a\n\n   c"),
        ("-\n  ```\n  a\n  ```\nb", "-\n  b"),
        ("-\n\n  ```\n  a\n  ```\nb", "-\n\nb"),
        ("-\t```\n\ta\n\t```\nb", "-\tb"),
        # quoted lines, each by itself
        ("> a `b\nc` d", "c` d"),
        ("> ```\na", "a"),
        ("   > a\n    > b", "    > b"),
        ("- a\n> b\n- c", "- a\n- c"),
        ("```\n> a\n```\nb", "b"),
    ],
)
def test_what_is_left_of_a_text(text: str, not_code: str) -> None:
    assert left(text) == not_code


@pytest.mark.parametrize(
    "piece", ["`", "<a b='", "<!-- ", "- ", "\n- ", "<a ", "``\n", "1. ```\n", "1. ", "\t", "> `\n"]
)
def test_a_text_made_to_be_slow_takes_time_by_its_length_alone(piece: str) -> None:
    text = piece * 20_000
    assert all(0 <= start < end <= len(text) for start, end in code_and_quotes(text))
