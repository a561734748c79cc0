"""Oddities of a valid card: a code with parameters, and the words for each."""

from typing import Annotated, Any

from pydantic import Field, WrapValidator

from claudomator_py.domain.wording import Coded, WordedCode, WordedValue, known_or_none, refuse_unknown


class CardWarningCode(WordedCode):
    """What is odd, with its words: see ``wording.filled``. Part of the API: never rename values."""

    SHARED_KEYWORD = "shared_keyword", "its keyword `{keyword}` is one of {specialist}, too: it points to neither"
    GENERIC_KEYWORD = (
        "generic_keyword",
        "its keyword `{keyword}` is in what {specialists} do, too: choose a longer phrase",
    )
    NEAR_DUPLICATE = (
        "near_duplicate",
        "its skill {skill} is nearly {other} of {specialist}: tasks go to either by chance",
    )
    UNKNOWN_SPECIALIST = "unknown_specialist", "its `{field}` names {specialist}, and there is no such specialist"
    NOT_APPLIED = "not_applied", "its agent file says `{fields}`, which is kept and not applied"
    NOT_REACHED = "not_reached", "it is given no work: over HTTP only cards of the operator are reached"
    CIRCLE = "circle", "its `{field}` leads back to itself, by way of {specialists}"


class CardWarningParams(Coded):
    """The parameters of a code; the code determines which are set. JSON omits the others."""

    keyword: str | None = Field(None, description="The keyword of which it is said.")
    specialist: str | None = Field(None, description="The other specialist.")
    specialists: tuple[str, ...] = Field((), description="The other specialists.")
    skill: str | None = Field(None, description="The skill of this card.")
    other: str | None = Field(None, description="The skill of the other specialist.")
    field: str | None = Field(None, description="The field of the card.")
    fields: tuple[str, ...] = Field((), description="The fields of the file that it was read from.")


class CardWarning(WordedValue):
    """Something odd about a card that is registered anyway."""

    code: CardWarningCode
    params: CardWarningParams = Field(default_factory=CardWarningParams)


ShownCardWarning = Annotated[CardWarning | None, WrapValidator(known_or_none)]
"""The value as a field of an API shape; None if it is from a newer version."""


def card_warning(code: CardWarningCode, **params: Any) -> CardWarning:
    """Return the value. Raises TypeError for a parameter that the code does not have."""
    refuse_unknown(code, params, code.parameters)
    return CardWarning(code=code, params=CardWarningParams(**params))
