"""What turns texts into vectors, by which routing compares them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from claudomator_py.domain.vectors import Vector  # with numpy, which is for whoever compares


class EncoderFault(Exception):
    """An encoder gave no vectors. The text says why, and holds no secret."""


class Encoder(Protocol):
    """From texts to vectors. Safe to use from any thread."""

    id: str
    """With all that changes its vectors: those of another id are never compared with its own."""
    dimensions: int
    immediate: bool
    """Whether it answers at once, so that nothing is gained by keeping its vectors or by waiting elsewhere."""
    weighs_rarity: bool
    """Whether its vectors are counts of features, which weigh the more the rarer they are."""

    def encode(self, texts: Sequence[str]) -> "Vector":
        """Return a row for each text. Raises EncoderFault."""

    def close(self) -> None:
        """Let go of what it holds."""
