"""What a task's text says of the harm that it could do, and whether it says enough for anybody to do it.

By words, without a model. Words are a courtesy: they see what is said plainly and miss the rest; what a run does is
kept within its reach by ``acts``, whatever its task says. Nothing in a text makes it less risky: that it claims to be
harmless, approved or urgent, or tells who is to judge it, is content like the rest.
"""

import hashlib
import re
from enum import StrEnum
from functools import lru_cache
from typing import Final

from claudomator_py.domain.routing import Risk
from claudomator_py.domain.transcript import spoken_in
from claudomator_py.risk.lexicon import ENGLISH, lexicon
from claudomator_py.values import dataclass, regex

MAX_EXCERPT: Final = 200
_MAX_KNOWN: Final = 1_000
MAX_SIGNS: Final = 10
"""Signs reported of one text; in the rest of it only harm is looked for, as nothing else could change anything."""
_READ, _READ_ELSEWHERE = 0.26, 0.4
"""The share of a sentence's words that have to be known for it to be read: in English, and in other languages, which
share more words with those that are not known."""
_FEW: Final = 3
"""Words that are too few to say that a text cannot be read."""
MAX_WORDS: Final = 30
"""Words of a text that says nothing; with more, it is given the benefit of the doubt."""
_CONCRETE: Final = regex(
    r"[`\"\u201c\u201d/\\_#@=<>{}\[\]]|\d|\b[a-z]+[A-Z]\w*|\b[A-Z]{2,}\b|\w\.\w|(?<=[a-z,] )[A-Z][a-z]+"
)
_DAYS: Final = regex(r"\b(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|Hi|Hello|Thanks|Please|I|TODO|ASAP)\b")
_WORD: Final = regex(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")


class Sign(StrEnum):
    """What was seen in a text."""

    LIVE = "live"
    """It acts on a system that people use."""
    PUBLISHED = "published"
    """It publishes something, or rewrites what is published."""
    MONEY = "money"
    """It moves money, or sets what is paid."""
    ACCESS = "access"
    """It gives or takes access, lifts a protection, or replaces credentials."""
    IRREVERSIBLE = "irreversible"
    """It deletes what nobody can bring back."""
    MASS_MAIL = "mass_mail"
    """It writes to many people."""
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
        return "; ".join(dict.fromkeys(words for sign, words in self.signs if sign is not Sign.VAGUE))

    def seen(self, sign: Sign) -> str | None:
        """Return the words in which that was seen; None: it was not."""
        return next((words for present, words in self.signs if present is sign), None)


def assess(instructions: str) -> Assessment:
    """Judge a task by its text. The same text is always judged the same.

    Of a conversation, the last message counts; if that says nothing by itself ("yes, do it"), with the one before.

    The risk is low or high: whether what is changed is the product or a text about it, words alone do not tell well
    enough; a rule of the policy can. It is medium for a text that cannot be read.
    """
    known = _known(hashlib.sha256(instructions.encode(errors="surrogatepass")).digest())
    if not known:
        *before, last = spoken_in(instructions)
        if before and says_nothing(last) is not None:
            last = f"{before[-1]}\n{last}"
        known.append(assess_anew(last))
    return known[0]


@lru_cache(maxsize=_MAX_KNOWN)
def _known(digest: bytes) -> list[Assessment]:  # noqa: ARG001 - by which it is found
    """What was said of the text with that hash; empty: nothing yet. The text, of up to a million characters, is not
    kept."""
    return []


def assess_anew(text: str) -> Assessment:
    """Judge a text that is one message, whatever is remembered."""
    # With a reader of commands that takes a while to import: for a daemon that judges a text.
    from claudomator_py.risk.reading import sentences
    from claudomator_py.risk.weighing import is_risky

    signs: dict[tuple[Sign, str], None] = {}
    known, words, needed = 0, 0, 0.0
    for sentence in sentences(text):
        if len(signs) < MAX_SIGNS and not sentence.pasted:
            signs |= {(Sign(order.kind), _excerpt(order.text)): None for order in sentence.orders() if is_risky(order)}
        if harm := sentence.harm:
            if harm.refuse and not sentence.pasted:
                return Assessment(Risk.HIGH, ((Sign.HARMFUL, _excerpt(sentence.text)), *signs)[:MAX_SIGNS])
            signs[Sign.DOUBTFUL, _excerpt(sentence.text)] = None
        if not sentence.pasted and not signs:
            known, words = known + sentence.known, words + len(sentence.tokens)
            needed += len(sentence.tokens) * (_READ if sentence.language.name == ENGLISH else _READ_ELSEWHERE)
    if signs:
        return Assessment(Risk.HIGH, tuple(signs)[:MAX_SIGNS])
    if (vague := says_nothing(text)) is not None:
        return Assessment(Risk.LOW, ((Sign.VAGUE, vague),))
    if words >= _FEW and known < needed:
        return Assessment(Risk.MEDIUM, ((Sign.UNREAD, "hardly a word of it is known"),))
    return Assessment(Risk.LOW)


def says_nothing(text: str) -> str | None:
    """Return the text, if every word of it could be about anything; None: it says something."""
    if text.count(" ") > 2 * MAX_WORDS:
        return None
    words = _WORD.findall(text[: MAX_EXCERPT * MAX_WORDS])
    if len(words) > MAX_WORDS or _CONCRETE.search(_DAYS.sub(" ", text.strip().removesuffix("."))):
        return None
    bare = {re.sub(r"['\u2019]s?$|['\u2019]\w+$", "", word.lower()) for word in words}
    return " ".join(words)[:MAX_EXCERPT] if bare <= lexicon().sets["vague"] else None


def _excerpt(text: str) -> str:
    return " ".join(text.split())[:MAX_EXCERPT]
