"""What a task's text says of the harm that it could do, and whether it says enough for anybody to do it.

By rules, without a model.

A text is judged sentence by sentence, by what it wants done and to what. Who only reads, describes, plans or reviews
changes nothing, whatever it is about. Nothing in a text makes it less risky: that it claims to be harmless, approved or
urgent, or tells who is to judge it, is content like the rest. The rules err on the side of asking: they look at words,
and know neither irony nor context.
"""

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from claudomator_py.domain.routing import Risk
from claudomator_py.domain.transcript import spoken_in
from claudomator_py.risk.reading import orders
from claudomator_py.routing.orders import Found, Sign
from claudomator_py.routing.steering import unsteered


@dataclass(frozen=True, slots=True)
class Assessment:
    """What a text says."""

    risk: Risk
    signs: tuple[tuple[Sign, str], ...] = ()
    """What was seen, with the words in which it was."""

    @property
    def harmful(self) -> bool:
        """Whether it asks for harm."""
        return any(sign is Sign.HARMFUL for sign, _ in self.signs)

    @property
    def words(self) -> str:
        """What was seen of harm, in the words of the text; empty: nothing."""
        return "; ".join(dict.fromkeys(words for sign, words in self.signs if sign is not Sign.VAGUE))

    def seen(self, sign: Sign) -> str | None:
        """The words in which that was seen; None: it was not."""
        return next((words for one, words in self.signs if one is sign), None)

    @property
    def vague(self) -> bool:
        """Whether it says too little for anybody."""
        return any(sign is Sign.VAGUE for sign, _ in self.signs)


def _set(words: str) -> frozenset[str]:
    """The words in the text."""
    return frozenset(words.split())


_CONCRETE: Final = re.compile(
    r"[`\"\u201c\u201d/\\_#@=<>{}\[\]]|\d|\b[a-z]+[A-Z]\w*|\b[A-Z]{2,}\b|\w\.\w|(?<=[a-z,] )[A-Z][a-z]+"
)
_DAYS: Final = re.compile(r"\b(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|Hi|Hello|Thanks|Please|I|TODO|ASAP)\b")
_WORD: Final = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_SAYS_NOTHING: Final = _set(
    """
    a an the this that these those it its itself he she they them him her his their we us our you your i me my and
    or but if then than so as at by for from in into of on onto off to up down out over with without about again
    also just only very too not no yes ok okay hi hello hola hey dear please pls plz thanks thank thx is are was
    were be been being am do does did done doing has have had having can could will would shall should may might
    must let lets when where what which who whom whose why how there here all any some each every both either one
    ones other others another such same like more most less least much many few bit little lot kind sort way ways
    thing things something anything nothing everything someone somebody stuff part parts whole rest point now soon
    later today tomorrow yesterday last next time times before after while still already asap urgent urgently quick
    quickly fast fix fixes fixed repair mend update updates upgrade change changes improve improvement improvements
    better best good nice nicer great new old modern bad worse strange weird odd wrong broken correct right work
    works working make makes made get gets got give go goes going come put take see look looks want wants wanted
    need needs needed wish wishes would try help handle deal solve optimise optimize optimised polish clean cleanup
    tidy finish complete continue redo undo revert rework adjust adapt tweak ready demo content client clients
    customer customers user users people guy boss team everyone system systems program programs programme app apps
    application applications software softwares tool tools code project projects site page pages screen file files
    version versions feature features option options setting settings screenshot screenshots attached attachment
    attachments picture image error errors bug bugs problem problems issue issues flexible easy easier simple
    simpler click clicks clicked png jpg thread mail ticket above below mentioned discussed said told talked agreed
    usual usually normal normally properly well keep keeps leave bring use uses used
    slow slower faster morning evening night week day days month ago until till by per missing meeting side happen
    happens happened break breaks broke breaks whatever whoever somewhere somehow differently different like liked
    likes simplify rewrite refactor team somebody care taken complain complained complains complaint since until
    needful kindly regards best doesn don isn didn won aren wasn weren hasn haven shouldn wouldn couldn cannot can't
    improve feature finished talk speak spoke decided asap failing fail fails failed crash crashes monday tuesday
    yet happy unhappy satisfied pleased ahead professional everything adjusted
    wednesday thursday friday saturday sunday
    """
)
_WRAP: Final = re.compile(r"(?<=[\w,)\"'`])[ \t\r]*\n[ \t]*(?=[\w`/~\"'(])(?!\d+[.)]\s)")
"""Where a line may end within a sentence."""
_MOST_WORDS: Final = 30


_MOST_KNOWN: Final = 1_000


def assess(instructions: str) -> Assessment:
    """Judge a task by its text. The same text is always judged the same.

    Of a conversation, the last message counts; if that says nothing by itself ("yes, do it"), with the one before.
    It is judged as it is, and without what it says to whoever judges it, so that no such words cover an order.

    The risk is low or high: whether what is changed is the product or a text about it, words alone do not tell well
    enough; a rule of the policy can.
    """
    known = _known(hashlib.sha256(instructions.encode(errors="surrogatepass")).digest())
    if known:
        return known[0]
    *before, last = spoken_in(instructions)
    if before and _vague(last) is not None:
        last = f"{before[-1]}\n{last}"
    known.append(_assess(last))
    return known[0]


@lru_cache(maxsize=_MOST_KNOWN)
def _known(digest: bytes) -> list[Assessment]:  # noqa: ARG001 - by which it is found
    """What was said of the text with that hash; empty: nothing yet. The text, of up to a million characters, is not
    kept."""
    return []


def _assess(instructions: str) -> Assessment:
    # With patterns that take 30 ms to compile: for a daemon that judges a text.
    from claudomator_py.routing.danger import danger
    from claudomator_py.routing.harm import harm

    # With its lines as they are, too: a list may have an order on each.
    texts = dict.fromkeys(
        text for one in (instructions, unsteered(instructions)[0]) for text in (one, _WRAP.sub(" ", one))
    )
    # Most sentences of the other texts are those of the first.
    dangers: dict[tuple[str, str | None, str], Found] = {}
    harms: dict[str, Found] = {}
    signs = [sign for text in texts for sign in (*danger(text, dangers), *harm(text, harms))]
    signs += [(Sign(order.kind), order.words) for order in orders(instructions)]
    if signs:
        return Assessment(Risk.HIGH, tuple(dict.fromkeys(signs)))
    words = _vague(instructions)
    return Assessment(Risk.LOW, () if words is None else ((Sign.VAGUE, words),))


def says_nothing(text: str) -> bool:
    """Whether every word of it could be about anything."""
    return _vague(text) is not None


def _vague(instructions: str) -> str | None:
    """The text, if every word of it could be about anything; None: it says something."""
    words = _WORD.findall(instructions)
    if len(words) > _MOST_WORDS or _CONCRETE.search(_DAYS.sub(" ", instructions.strip().removesuffix("."))):
        return None
    says = [word for word in words if re.sub(r"['\u2019]s?$|['\u2019]\w+$", "", word.lower()) not in _SAYS_NOTHING]
    return None if says else " ".join(words)[:200]
