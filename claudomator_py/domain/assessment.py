"""What a text says of the harm that it could do, and whether it says enough for anybody to do it."""

from enum import StrEnum

from claudomator_py.domain.routing import Risk
from claudomator_py.values import dataclass


class Sign(StrEnum):
    """What was seen in a text: an order of a class of the lexicon, or what is described here."""

    IRREVERSIBLE = "irreversible"
    LIVE = "live"
    PUBLISHED = "published"
    MONEY = "money"
    MASS_MAIL = "mass_mail"
    ACCESS = "access"
    COMMAND = "command"
    """It has a command run that acts on others."""
    DOUBTFUL = "doubtful"
    """It may be meant to harm or deceive somebody; a person is to judge."""
    HARMFUL = "harmful"
    """It is meant to harm or deceive somebody."""
    UNREAD = "unread"
    """Hardly a word of it is known."""
    VAGUE = "vague"
    """It does not say what is wanted of what."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """What a text says."""

    risk: Risk
    signs: tuple[tuple[Sign, str], ...] = ()
    """What was seen, with the words in which it was."""

    @property
    def harmful(self) -> bool:
        """Whether it asks for harm."""
        return self.seen(Sign.HARMFUL) is not None

    @property
    def unread(self) -> bool:
        """Whether hardly a word of it is known."""
        return self.seen(Sign.UNREAD) is not None

    @property
    def vague(self) -> bool:
        """Whether it says too little for anybody."""
        return self.seen(Sign.VAGUE) is not None

    @property
    def words(self) -> str:
        """What was seen of harm, in the words of the text; empty: nothing."""
        parts = dict.fromkeys(words.rstrip(" .;") for sign, words in self.signs if sign is not Sign.VAGUE)
        # A sentence may contain the order that was seen in it.
        return "; ".join(part for part in parts if not any(part != other and part in other for other in parts))

    def seen(self, sign: Sign) -> str | None:
        """Return the words in which that was seen; None: it was not."""
        return next((words for present, words in self.signs if present is sign), None)
