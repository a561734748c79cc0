"""What scores mean: weights, threshold and margin, which belong to an encoder and to no other."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from claudomator_py.schema.routing_settings import Preset

SURE: Final = 1.6
"""Times the threshold."""


class Weights(BaseModel):
    """How much each signal counts. Those of a preset add up to at most 1."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    semantic: float = Field(1.0, ge=0, le=1)
    """How alike the texts are to the encoder."""
    words: float = Field(0.0, ge=0, le=1)
    """How alike their words are, see ``SHIPPED`` for ``hashed``: beside an encoder that knows meaning but not names."""
    performance: float = Field(0.0, ge=0, le=1)
    """How the specialist has done so far, on this topic."""
    keyword: float = Field(0.0, ge=0, le=1)
    """Whether one of its keywords is in the task."""
    recency: float = Field(0.0, ge=0, le=1)
    """How lately it has succeeded."""


class Calibration(BaseModel):
    """What was fitted for an encoder, on labelled tasks."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    encoder: str
    """Its id, with all that changes its vectors; of another one it says nothing."""
    weights: Weights = Weights()
    """What the score is made of."""
    tie_break: Weights = Weights(semantic=0.0)
    """What is added to decide among those within the margin."""
    threshold: float = Field(ge=0, le=1)
    """The least score with which a task goes to a specialist rather than to the default one."""
    margin: float = Field(0.0, ge=0, le=1)
    """Of a score: those within it of the best are as good as that, for all that is known."""
    own_share: float = Field(0.35, ge=0, le=1)
    """Share of the card's own text in how alike it is to a task."""
    card_share: float = Field(0.0, ge=0, le=1)
    """Share of all its skills together; the rest is its best skill's."""
    learned: float = Field(0.4, ge=0, le=1)
    """The most that earlier tasks which an operator gave to another specialist add to a score, or take from it; see
    ``lessons``."""
    alike: float = Field(0.2, ge=0, lt=1)
    """The cosine up to which two tasks have nothing in common."""
    guessed: bool = False
    """Whether nothing was fitted for the encoder."""
    as_one: bool = False
    """Whether a card is one vector of all that it says, instead of one for each skill."""

    @property
    def sure(self) -> float:
        """From which score on a task of words that could be about anything goes to somebody anyway."""
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
"""What varies for other reasons than the task, or is right by accident, decides only where likeness does not."""

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
        weights=Weights(semantic=0.6, words=0.4),
        tie_break=_TIE_BREAK,
        threshold=0.22,
        margin=0.01,
        own_share=0.2,
        card_share=0.35,
        learned=0.6,
        alike=0.45,
    ),
}
"""What comes with Claudomator, by encoder."""


SCORING: Final = 5
"""Of how a score is made of texts. It rises when the same texts would have other scores, whatever the encoder: what was
fitted before says nothing of those."""

_GUESSED: Final = 0.3


class Fitted(BaseModel):
    """What was fitted on an operator's own tasks."""

    model_config = ConfigDict(frozen=True)

    calibration: Calibration
    scoring: int
    """See ``SCORING``."""
    cards: dict[str, str]
    """The specialists that it was fitted for: content hashes by id."""
    cases: int
    """Labelled tasks that it was fitted on."""
    expected: float | None
    """Share of tasks that were decided rightly, of those that it was not fitted on."""
    fitted_ms: int
    """In epoch milliseconds."""


def calibration_for(preset: Preset, encoder: str, fitted: Mapping[str, Fitted] = MappingProxyType({})) -> Calibration:
    """Return what holds for the encoder: what was fitted on the operator's own tasks, or else what comes with
    Claudomator. One for which there is neither gets the weights of those for which something was fitted, and a
    threshold that lets little through: a guess, see ``is_shipped``.

    fitted: by encoder. What was fitted for scores that were made otherwise does not count.
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
    """Return whether something was fitted for the encoder that comes with Claudomator."""
    return encoder in SHIPPED
