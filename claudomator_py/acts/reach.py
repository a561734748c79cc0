"""How far a run may act."""

from enum import StrEnum


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
