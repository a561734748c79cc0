"""Turns texts into vectors, which routing compares."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from claudomator_py.domain.vectors import Vector  # imports numpy, which only code that compares needs


class EncoderFault(Exception):
    """An encoder returned no vectors. The message gives the reason and contains no secret."""


class Encoder(Protocol):
    """Turns texts into vectors. Thread-safe."""

    id: str
    """Includes everything that affects the vectors: vectors of encoders with different ids are never compared."""
    dimensions: int
    immediate: bool
    """True if it answers immediately, so that nothing is gained by caching its vectors or waiting elsewhere."""
    weighs_rarity: bool
    """True if its vectors are counts of features, where rarer features weigh more."""

    def encode(self, texts: Sequence[str]) -> "Vector":
        """Return one row per text. Raises EncoderFault."""

    def close(self) -> None:
        """Release its resources."""
