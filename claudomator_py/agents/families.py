"""Which models a limit is for, by the name that the service gives it."""

import re

_FAMILIES = frozenset({"opus", "sonnet", "haiku"})
_WORDS = re.compile("[a-z]+")


def family_of(limit: str | None) -> str | None:
    """The one family that the limit's name speaks of; None: it is for all models, or nobody knows for which."""
    named = _FAMILIES.intersection(_WORDS.findall((limit or "").lower()))
    return next(iter(named)) if len(named) == 1 else None
