"""What command lines do beyond the working directory. Pure; standard library only, because hooks import it too."""

from enum import StrEnum
from typing import Final

from claudomator_py.values import regex

DIGEST_LENGTH: Final = 16
"""Hexadecimal characters of each half of a digest."""
DIGEST: Final = rf"[0-9a-f]{{{DIGEST_LENGTH}}}\.[0-9a-f]{{{DIGEST_LENGTH}}}"
"""Expression for a digest: of the call, a dot, and of what the call does beyond its reach."""
_RULE = regex(rf"beyond-reach:({DIGEST})(?: |\Z)")


class Reach(StrEnum):
    """How far a run may act, from narrow to wide. Reaches compare in that order: ``Reach.TREE < Reach.ANY``."""

    TREE = "tree"
    """Works in the working directory only, and fetches nothing."""
    NETWORK = "network"
    """May fetch and install, but not change anything that others see."""
    PUBLISH = "publish"
    """May change what others see: push, publish, deploy."""
    ANY = "any"
    """Unrestricted."""

    @property
    def rank(self) -> int:
        """The position in the order, from 0."""
        return _ORDER.index(self.value)

    def __lt__(self, other: str) -> bool:
        return self.rank < Reach(other).rank

    def __le__(self, other: str) -> bool:
        return self.rank <= Reach(other).rank

    def __gt__(self, other: str) -> bool:
        return self.rank > Reach(other).rank

    def __ge__(self, other: str) -> bool:
        return self.rank >= Reach(other).rank


_ORDER = [reach.value for reach in Reach]


def digest_in(rule: str) -> str | None:
    """Return the digest of the call that a ``beyond-reach:`` rule allows, or None for any other rule."""
    match = _RULE.match(rule)
    return None if match is None else match[1]


def without_words(rule: str) -> str | None:
    """Return a ``beyond-reach:`` rule without the call's text, or None for any other rule."""
    match = _RULE.match(rule)
    return None if match is None else match[0].strip()
