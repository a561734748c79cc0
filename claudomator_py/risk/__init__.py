"""What a task's text says of the harm that it could do, and whether it says enough for anybody to do it.

By words, without a model. Words are a courtesy: they see what is said plainly and miss the rest; what a run does is
kept within its reach by ``acts``, whatever its task says. Nothing in a text makes it less risky: that it claims to be
harmless, approved or urgent, or tells who is to judge it, is content like the rest.
"""

import hashlib
import re
from functools import lru_cache
from itertools import islice
from typing import Final

from claudomator_py.domain.routing import Assessment, Risk, Sign
from claudomator_py.domain.transcript import spoken_in
from claudomator_py.risk.lexicon import entries, pattern
from claudomator_py.texts import cut_line

MAX_TEXT: Final = 200
MAX_SIGNS: Final = 10
"""Signs reported of one text; in the rest of it only harm is looked for, as nothing else could change anything."""
_MIN_KNOWN, _MIN_KNOWN_ELSEWHERE = 0.26, 0.4
"""Shares of known words with which a text is read: in English, and in others, which share more with unknown ones."""
MAX_WORDS: Final = 30
"""Words of a text that says nothing; with more, it is given the benefit of the doubt."""
_FEW: Final = 3
"""Words that are too few to say that a text cannot be read."""


def assess(instructions: str) -> Assessment:
    """Judge a task by its text. The same text is always judged the same.

    Of a conversation, the last message counts; if that says nothing by itself ("yes, do it"), with the one before.
    The risk is low or high: words do not tell well enough whether the product is changed or a text about it; a rule of
    the policy can. It is medium for a text that cannot be read.
    """
    known = _known(hashlib.sha256(instructions.encode(errors="surrogatepass")).digest())
    if not known:
        *before, last = spoken_in(instructions)
        if before and says_nothing(last) is not None:
            last = f"{before[-1]}\n{last}"
        known.append(assess_anew(last))
    return known[0]


@lru_cache(maxsize=1_000)
def _known(digest: bytes) -> list[Assessment]:  # noqa: ARG001 - by which it is found
    """What was said of the text with that hash; empty: nothing yet. The text itself, which may be long, is not kept."""
    return []


def assess_anew(text: str) -> Assessment:
    """Judge a text that is one message, whatever is remembered."""
    # With a reader of commands that takes a while to import: for a daemon that judges a text.
    from claudomator_py.risk import harm, orders

    signs: dict[tuple[Sign, str], None] = {}
    read = list[orders.Sentence]()
    for sentence in orders.sentences(text):
        keys = [word.keys for word in sentence.words if word.keys]
        if keys and (criminal := harm.harm_in(sentence.text, keys)):
            if criminal.refuse and not sentence.pasted:
                return Assessment(Risk.HIGH, ((Sign.HARMFUL, cut_line(sentence.text, MAX_TEXT)), *signs)[:MAX_SIGNS])
            signs[Sign.DOUBTFUL, cut_line(sentence.text, MAX_TEXT)] = None
        if sentence.pasted or len(signs) >= MAX_SIGNS:
            continue
        for order in [order for order in orders.orders(sentence) if orders.is_risky(order.features)]:
            signs[Sign(order.kind), cut_line(order.text, MAX_TEXT)] = None
        read.append(sentence)
    if signs:
        return Assessment(Risk.HIGH, tuple(signs)[:MAX_SIGNS])
    if (vague := says_nothing(text)) is not None:
        return Assessment(Risk.LOW, ((Sign.VAGUE, vague),))
    needed = [len(one.words) * (_MIN_KNOWN if one.language.is_english else _MIN_KNOWN_ELSEWHERE) for one in read]
    if sum(len(one.words) for one in read) >= _FEW and sum(one.known for one in read) < sum(needed):
        return Assessment(Risk.MEDIUM, ((Sign.UNREAD, "hardly a word of it is known"),))
    return Assessment(Risk.LOW)


def says_nothing(text: str) -> str | None:
    """Return the text, if every word of it could be about anything; None: it says something."""
    words = [word[0] for word in islice(re.finditer(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*", text), MAX_WORDS + 1)]
    if len(words) > MAX_WORDS or pattern("vague", "concrete").search(
        pattern("vague", "capital").sub(" ", text.strip().removesuffix("."))
    ):
        return None
    bare = (re.sub(r"['\u2019]s?$|['\u2019]\w+$", "", word.lower()) for word in words)
    return " ".join(words)[:200] if all(map(entries("vague", "words").__contains__, bare)) else None
