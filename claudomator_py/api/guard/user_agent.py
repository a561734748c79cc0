"""The browser that a User-Agent header names, so that a person knows a session by it."""

import re

from claudomator_py.domain.text import one_line

_MAX_LENGTH = 60
# The first that fits: most of them claim to be the ones after, too.
_BROWSERS = (
    ("Edge", re.compile(r"\bEdgA?/(\d+)")),
    ("Opera", re.compile(r"\bOPR/(\d+)")),
    ("Firefox", re.compile(r"\b(?:Firefox|FxiOS)/(\d+)")),
    ("Chrome", re.compile(r"\b(?:HeadlessChrome|Chrome|CriOS)/(\d+)")),
    ("Safari", re.compile(r"\bVersion/(\d+)\S* (?:\S+ )?Safari/")),
)
_SYSTEMS = (
    ("Android", "Android"),
    ("iOS", "iPhone"),
    ("iPadOS", "iPad"),
    ("Windows", "Windows"),
    ("macOS", "Mac OS X"),
    ("ChromeOS", "CrOS"),
    ("Linux", "Linux"),
)


def browser_name(user_agent: str) -> str:
    """Such as ``Firefox 131 on Linux``; of what is not known, the beginning of what it said. Never empty."""
    name = next((f"{name} {found[1]}" for name, known in _BROWSERS if (found := known.search(user_agent))), None)
    if name is None:
        said = one_line(user_agent)
        return f"{said[:_MAX_LENGTH]}…" if len(said) > _MAX_LENGTH else said or "unknown"
    system = next((name for name, part in _SYSTEMS if part in user_agent), None)
    return name if system is None else f"{name} on {system}"
