"""How far a run may act."""

from enum import StrEnum
from typing import Final

from claudomator_py.values import regex

DIGEST_LENGTH: Final = 16
"""Characters of a digest."""
DIGEST: Final = rf"[0-9a-f]{{{DIGEST_LENGTH}}}\.[0-9a-f]{{{DIGEST_LENGTH}}}"
"""What stands for a call and for what it does beyond its reach, as an expression."""
_RULE = regex(rf"beyond-reach:({DIGEST})(?: |\Z)")


class Reach(StrEnum):
    """How far a run may act, from the nearest to the farthest. They compare so: ``Reach.TREE < Reach.ANY``."""

    TREE = "tree"
    """Nothing leaves the working directory, and nothing is fetched."""
    NETWORK = "network"
    """It may fetch and install, and must not act on others."""
    PUBLISH = "publish"
    """It may act on others."""
    ANY = "any"
    """There is no fence."""

    @property
    def rank(self) -> int:
        """Its place in the order, from 0."""
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
    """Return the digest of the call that the rule allows; None: it is no such rule."""
    found = _RULE.match(rule)
    return None if found is None else found[1]


def without_words(rule: str) -> str | None:
    """Return the same rule with nothing of the call in it; None: it is no rule for a call beyond a reach."""
    found = _RULE.match(rule)
    return None if found is None else found[0].strip()
