"""How texts enter a page."""

import pytest

from claudomator_py.api.page.rendering import sentence


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("Its run has ended.", "Its run has ended."),
        ("Run `claudomator doctor`.", "Run <code>claudomator doctor</code>."),
        ("`a` or `b`: c", "<code>a</code> or <code>b</code>: c"),
        ("one ` alone", "one ` alone"),
        ("none in ``", "none in ``"),
        ("`over\ntwo lines`", "`over\ntwo lines`"),
        ("<b>`<i>`</b>", "&lt;b&gt;<code>&lt;i&gt;</code>&lt;/b&gt;"),
        ("named `x`><script>alert(1)</script>`", "named <code>x</code>&gt;&lt;script&gt;alert(1)&lt;/script&gt;`"),
        ("`\" onmouseover='x'`", "<code>&#34; onmouseover=&#39;x&#39;</code>"),
        ("`\x1b[31mred`", "<code>red</code>"),
    ],
)
def test_what_stands_in_backticks_is_shown_as_code_and_nothing_else_as_a_tag(text: str, shown: str) -> None:
    assert sentence(text) == shown
