"""Meaning of scores: weights, threshold and margin, fitted for one encoder and valid for no other."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pydantic import BaseModel, Field

from claudomator_py.schema.routing_settings import Preset

SURE: Final = 1.6
"""Multiple of the threshold."""


class Weights(BaseModel, frozen=True, extra="forbid"):
    """How much each signal counts. The weights of a preset add up to at most 1."""

    semantic: float = Field(1.0, ge=0, le=1)
    """Similarity of the texts according to the encoder."""
    words: float = Field(0.0, ge=0, le=1)
    """Similarity of the words, see ``SHIPPED`` for ``hashed``: complements an encoder that knows meaning but not
    names."""
    performance: float = Field(0.0, ge=0, le=1)
    """The specialist's past performance on this topic."""
    keyword: float = Field(0.0, ge=0, le=1)
    """Whether one of its keywords occurs in the task."""
    recency: float = Field(0.0, ge=0, le=1)
    """How recently it has succeeded."""


class Calibration(BaseModel, frozen=True, extra="forbid"):
    """Values fitted for an encoder, on labelled tasks."""

    encoder: str
    """Id of the encoder, which includes everything that affects its vectors; not valid for any other."""
    weights: Weights = Weights()
    """Weights of the score's parts."""
    tie_break: Weights = Weights(semantic=0.0)
    """Weights added to decide among candidates within the margin."""
    threshold: float = Field(ge=0, le=1)
    """Minimum score for a task to go to a specialist rather than to the default one."""
    margin: float = Field(0.0, ge=0, le=1)
    """Candidates whose scores are within this distance of the best count as equally good."""
    own_share: float = Field(0.35, ge=0, le=1)
    """Weight of the card's own text in its similarity to a task."""
    card_share: float = Field(0.0, ge=0, le=1)
    """Weight of all its skills together; the rest is the weight of its best skill."""
    learned: float = Field(0.4, ge=0, le=1)
    """Maximum that earlier tasks which an operator reassigned add to a score, or subtract from it; see ``lessons``."""
    alike: float = Field(0.2, ge=0, lt=1)
    """Cosine up to which two tasks have nothing in common."""
    guessed: bool = False
    """True if nothing was fitted for the encoder."""
    as_one: bool = False
    """True if a card is a single vector of its whole text, instead of one per skill."""

    @property
    def sure(self) -> float:
        """Score from which a task whose words could be about anything goes to a specialist anyway."""
        return SURE * self.threshold


CLASSIC: Final = Calibration(
    encoder="",
    weights=Weights(semantic=0.60, performance=0.20, keyword=0.15, recency=0.05),
    threshold=0.30,
    own_share=1.0,
    card_share=0.0,
    learned=0.0,
    as_one=True,
)
"""The preset ``classic``: the same for every encoder, whatever its scores mean."""

_TIE_BREAK = Weights(semantic=0.0, performance=0.05, keyword=0.05, recency=0.02)
"""Signals that vary for reasons other than the task, or are right by accident, only break ties in similarity."""

SHIPPED: Final = {
    "hashed-4096-v1": Calibration(
        encoder="hashed-4096-v1",
        tie_break=_TIE_BREAK,
        threshold=0.14,
        margin=0.01,
        own_share=0.4,
        card_share=0.3,
    ),
    "all-minilm-l6-v2-128-v1": Calibration(
        encoder="all-minilm-l6-v2-128-v1",
        weights=Weights(semantic=0.5, words=0.5),
        tie_break=_TIE_BREAK,
        threshold=0.22,
        margin=0.005,
        own_share=0.1,
        card_share=0.35,
        learned=0.6,
        alike=0.45,
    ),
}
"""Calibrations that come with Claudomator, by encoder."""


SCORING: Final = 6
"""Version of the scoring. Increase it when the same texts would get different scores with the same encoder: earlier
fitted values are then invalid."""

_GUESSED: Final = 0.3


class Fitted(BaseModel, frozen=True):
    """Values fitted on an operator's own tasks."""

    calibration: Calibration
    scoring: int
    """See ``SCORING``."""
    cards: dict[str, str]
    """Content hashes by id of the specialists that it was fitted for."""
    cases: int
    """Number of labelled tasks that it was fitted on."""
    expected: float | None
    """Share of correct decisions on tasks that it was not fitted on."""
    fitted_ms: int
    """In epoch milliseconds."""


def calibration_for(preset: Preset, encoder: str, fitted: Mapping[str, Fitted] = MappingProxyType({})) -> Calibration:
    """Return the encoder's calibration: the one fitted on the operator's own tasks, otherwise the one that comes with
    Claudomator. An encoder without either gets the weights of fitted ones and a threshold that lets little through: a
    guess, see ``is_shipped``.

    fitted: by encoder; ignored if fitted for a different ``SCORING``.
    """
    if preset is Preset.CLASSIC:
        return CLASSIC
    own = fitted.get(encoder)
    if own is not None and own.scoring == SCORING:
        return own.calibration
    return SHIPPED.get(encoder) or Calibration(
        encoder=encoder, tie_break=_TIE_BREAK, threshold=_GUESSED, margin=0.01, guessed=True
    )


def is_shipped(encoder: str) -> bool:
    """Return whether Claudomator comes with values fitted for the encoder."""
    return encoder in SHIPPED
