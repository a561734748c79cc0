"""Browsers by the names that people know."""

import pytest

from claudomator_py.resources.access.page import browser_name

_LINUX = "Mozilla/5.0 (X11; Linux x86_64"
_APPLE = ") AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.6 "
_KHTML = ") AppleWebKit/537.36 (KHTML, like Gecko) "


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        (f"{_LINUX}; rv:131.0) Gecko/20100101 Firefox/131.0", "Firefox 131 on Linux"),
        (f"{_LINUX}{_KHTML}Chrome/130.0.0.0 Safari/537.36", "Chrome 130 on Linux"),
        (f"{_LINUX}{_KHTML}HeadlessChrome/130.0.0.0 Safari/537.36", "Chrome 130 on Linux"),
        (
            f"Mozilla/5.0 (Windows NT 10.0; Win64; x64{_KHTML}Chrome/130.0.0.0 Safari/537.36 Edg/130.0.0.0",
            "Edge 130 on Windows",
        ),
        (f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7{_APPLE}Safari/605.1.15", "Safari 17 on macOS"),
        (
            f"Mozilla/5.0 (iPhone; CPU iPhone OS 17_6{_APPLE}Mobile/15E148 Safari/604.1",
            "Safari 17 on iOS",
        ),
        (f"Mozilla/5.0 (Linux; Android 10; K{_KHTML}Chrome/130.0.0.0 Mobile Safari/537.36", "Chrome 130 on Android"),
        ("curl/8.5.0", "curl/8.5.0"),
        ("", "unknown"),
        ("\x1b[31mred\u202e  x\n" + "y" * 100, "red x " + "y" * 54 + "…"),
    ],
)
def test_names(user_agent: str, name: str) -> None:
    assert browser_name(user_agent) == name
