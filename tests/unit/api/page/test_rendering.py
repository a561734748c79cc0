"""How texts enter a page."""

import pytest

from claudomator_py.api.page import rendering
from claudomator_py.api.page.rendering import sentence
from tests.fakes.daemon import Daemon
from tests.patience import wait_until
from tests.unit.api.page.conftest import Visitor


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


@pytest.fixture
def _cold() -> None:
    rendering._environment.cache_clear()
    rendering.compile_templates.cache_clear()


def compiled() -> bool:
    """Whether all templates are."""
    cached = rendering._environment().cache
    return cached is not None and len(cached) >= len(rendering._environment().list_templates())


@pytest.mark.usefixtures("_cold")
def test_the_first_page_prepares_the_others(operator: Visitor) -> None:
    assert not compiled(), "a login alone does not"
    assert operator.get("/agents").status == 200
    wait_until(compiled, "all templates to be compiled")


@pytest.mark.usefixtures("_cold")
@pytest.mark.parametrize(("code_of", "prepared_pages"), [("the daemon", True), ("nobody", False)])
def test_pages_are_prepared_while_somebody_logs_in(daemon: Daemon, code_of: str, prepared_pages: bool) -> None:
    code = "wrong"
    if code_of == "the daemon":
        headers = {"Authorization": f"Bearer {daemon.token}"}
        code = daemon.ask("POST", "/v1/login-codes", headers=headers).json()["code"]
    answer = Visitor(daemon).get(f"/login?code={code}")
    assert answer.status == 200
    if prepared_pages:
        wait_until(compiled, "all templates to be compiled")
    else:
        assert not compiled(), "nobody without a code can cause work"
