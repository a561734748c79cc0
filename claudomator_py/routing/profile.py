"""The texts of cards and tasks that are compared; each becomes a vector. A task's is compared without courtesy, and
without words addressed to the router.

Greetings, thanks and polite forms say nothing about the task, but as words they would attract it to specialists with
polite examples. Only the edges of sentences are considered: "How do you say thank you in French?" asks for something.

A task may also contain words meant for the router, from its author, who could have named a specialist in the task file,
or from somebody quoted in it. The names in them would attract the task to those specialists, so they are removed and
the decision records them. Nothing is removed if nothing else would be left.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, wraps
from typing import Any, Final, TypeVar

from claudomator_py.domain.card import Card
from claudomator_py.domain.task import TaskSpec
from claudomator_py.risk import says_nothing
from claudomator_py.values import dataclass, regex, toml_data

_SAYS_NOTHING: Final = regex(
    r"\b(?:(?=\w*\d)[0-9a-fT.:]+|\d+\w|tasks?|jobs?|todos?|items?|issues?|tickets?|runs?|tests?|tries|try|demo|untitled"
    r"|drafts?|te?mp|files?|prompts?|requests?|notes?|copy|claude|codex|agents?|nightly|daily|weekly|batch)\b",
    re.IGNORECASE,
)
"""Meaningless parts of a name: words for any task, numbers, dates and hashes."""
_NUMBER: Final = regex(r"\d")


def text_hash(text: str) -> str:
    """Return the key under which a text's vector is cached: SHA-256 in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class SkillTexts:
    """A skill: its own text and its examples."""

    skill: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """A card, as compared with tasks."""

    specialist: str
    own: str
    """Description of the card as a whole."""
    skills: tuple[SkillTexts, ...]
    prompt: str = ""
    """The system prompt. It is meant for the agent, so only ``as_one`` includes it."""
    whole: bool = False
    """True if only its own text is compared, and its skills merely tell what a task is about."""

    @property
    def texts(self) -> tuple[str, ...]:
        """All of its texts that are compared one by one."""
        return (self.own, *(text for skill in self.skills for text in skill.texts))

    @property
    def weighed(self) -> tuple[str, ...]:
        """The texts that determine how rare a feature is."""
        return (self.own,) if self.whole else self.texts

    @property
    def as_one(self) -> "Profile":
        """The whole card as a single text."""
        parts = (self.own, self.prompt, *(text for skill in self.skills for text in skill.texts))
        return Profile(self.specialist, "\n".join(part for part in parts if part), self.skills, whole=True)


def profile_of(card: Card) -> Profile:
    """Return the card's profile."""
    skills = []
    for skill in card.skills:
        own = " ".join((skill.name, skill.description, *skill.tags))
        skills.append(SkillTexts(skill.id, (own, *skill.examples)))
    own = " ".join((card.title, card.description, *card.keywords))
    return Profile(card.id, own, tuple(skills), card.system_prompt or "")


@dataclass(frozen=True, slots=True)
class Request:
    """A task, as compared with cards: metadata and text only, before anything else of it is loaded."""

    text: str
    name: str = ""
    """A few words on what it is about, if meaningful; empty if it has none."""
    tags: tuple[str, ...] = ()

    @classmethod
    def of(cls, spec: TaskSpec) -> "Request":
        """Create the request of a task. The task's name was given, or taken from its file name."""
        return cls(spec.instructions, spec.name.replace("-", " ").replace("_", " "), spec.tags)

    @property
    def unheeded(self) -> tuple[str, ...]:
        """Passages in which the text says who should do the task, or how; they are not compared."""
        return unsteered(self.text)[1]

    @property
    def compared(self) -> str:
        """The text that is compared with cards: without ``unheeded`` passages and courtesy, with its tags, and with its
        name unless that could be about anything, such as ``task-17``, or is the key of a ticket, such as ``shop-412``:
        a single word and a number."""
        text = without_courtesy(unsteered(self.text)[0])
        sub = _SAYS_NOTHING.sub(" ", self.name)
        is_key = len(sub.split()) < 2 and _NUMBER.search(self.name) is not None
        name = "" if is_key or says_nothing(sub) is not None else self.name
        return "\n".join(part for part in (name, text, " ".join(self.tags)) if part)


@dataclass(frozen=True, slots=True)
class Likeness:
    """How similar a task is to a card."""

    semantic: float
    """-1 to 1: combines its best skill, all its skills together, and the card as a whole."""
    skill: str | None
    """The most similar skill; None if the card has none."""


T = TypeVar("T")

_MAX_ENTRIES: Final = 64
_MAX_TEXT_LENGTH: Final = 20_000
"""Maximum characters of a cached text: 64 texts of a million would double the daemon's memory."""


def memoized(find: Callable[[str], T]) -> Callable[[str], T]:
    """Remember the results for texts, except very long ones."""
    known = lru_cache(maxsize=_MAX_ENTRIES)(find)

    @wraps(find)
    def cached(text: str) -> T:
        return known(text) if len(text) <= _MAX_TEXT_LENGTH else find(text)

    return cached


_MAX_EDGE: Final = 300
"""Number of characters at the end of a text that are searched for thanks not preceded by a full stop."""


@dataclass(frozen=True, slots=True)
class _Asides:
    """Expressions for what says nothing about a task, from ``asides.toml``."""

    courtesy: re.Pattern[str]
    """A word of courtesy."""
    beginning: re.Pattern[str]
    nothing_else: re.Pattern[str]
    thanks_at_end: re.Pattern[str]
    steering: tuple[str, ...]
    """A text that contains none of these words cannot match ``steers``."""
    steers: re.Pattern[str]


@cache
def _asides() -> _Asides:
    data = toml_data("claudomator_py.routing", "asides.toml")
    courtesy, steering = data["courtesy"], data["steering"]
    begins, is_all = (rf"(?:{_alternatives(courtesy, name)})(?!\w)" for name in ("begins", "is_all"))
    # Possessive, as a phrase may be part of another: otherwise a text that repeats them is tried in every division.
    return _Asides(
        courtesy=regex(rf"\b(?:{'|'.join(courtesy['signs'].split())})\b", re.IGNORECASE),
        beginning=regex(rf"[\W_]*+(?:{begins}[\s,.!:;-]*+)++", re.IGNORECASE),
        nothing_else=regex(rf"\W*+(?:{is_all}\W*+)++", re.IGNORECASE),
        thanks_at_end=regex(rf"(?<=\w)[\s,;:.!-]++(?:{is_all}\W*+)++\Z", re.IGNORECASE),
        steering=tuple(steering["signs"].split()),
        steers=regex(rf"\b(?:{_alternatives(steering, 'steers')})\b", re.IGNORECASE),
    )


def _alternatives(section: Mapping[str, Any], name: str) -> str:
    """Return the list of that name as an expression, with its parts filled in."""
    expression = "|".join(section[name].strip().splitlines())
    for part, meaning in section["parts"].items():
        expression = expression.replace(f"<{part}>", meaning)
    return expression


_SENTENCE: Final = regex(r"[^.!?;\n]++(?:[.!?;]++|\n|\Z)|[.!?;\n]++")


@memoized
def without_courtesy(text: str) -> str:
    """Return the text without greetings, thanks and polite forms at the edges of its sentences; unchanged if nothing
    would be left."""
    asides = _asides()
    if asides.courtesy.search(text) is None:
        return text
    left = "".join(_plain(part) for part in _SENTENCE.findall(text))
    edge = max(0, len(left) - _MAX_EDGE)
    left = left[:edge] + asides.thanks_at_end.sub("", left[edge:])
    return left if re.search(r"\w{3}", left) else text


def _plain(sentence: str) -> str:
    asides = _asides()
    if asides.nothing_else.fullmatch(sentence) is not None:
        return " "
    begins = asides.beginning.match(sentence)
    return sentence if begins is None else f" {sentence[begins.end() :]}"


_MAX_PARTS: Final = 10
"""Maximum number of passages that a decision records: the first ones."""
_MAX_REPORTED: Final = 200
_WHO: Final = (
    r"(?:ai|a\.i\.|assistants?|llm|agents?|bots?|router|dispatcher|classifier|triage|orchestrator|model"
    r"|system(?: prompt)?|admin)"
)
_ADDRESSES: Final = regex(
    rf"(?:^|[\s(\"'\u201c\[<!-])(?:(?:note|hint|message|instructions?) (?:to|for) (?:the |all |any )?)?(?:the )?{_WHO}"
    r"(?: (?:dispatcher|router|triaging this|agents?|assistants?))?\s?: ",
    re.IGNORECASE,
)
_QUOTED: Final = regex(
    r"\"[^\"\n]{0,400}\"|\u201c[^\u201d\n]{0,400}\u201d|(?<!\w)'[^'\n]{0,400}'(?!\w)|`[^`\n]{0,400}`|<!--.{0,400}?-->"
    r"|\[\[[^\]\n]{0,200}\]\]|\([^()\n]{0,400}\)|\[[^\]\n]{0,200}\]",
    re.DOTALL,
)
_STATEMENT: Final = regex(r"[^.!?;\n]+(?:[.!?;]+(?=\s|\Z)|\n|\Z|[.!?;](?=\S))+")


@memoized
def unsteered(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text without passages addressed to the router, and those passages, shortened, in order.

    Within quotation marks or brackets only their contents are removed, otherwise the sentence. The text is unchanged if
    nothing would be left.
    """
    if not _may_steer(text):
        return text, ()
    parts: list[str] = []

    def out(match: re.Match[str]) -> str:
        piece = match.group()
        if not (_asides().steers.search(piece) or _ADDRESSES.search(piece)):
            return piece
        parts.append(" ".join(piece.split())[:_MAX_REPORTED])
        return " "

    left = _STATEMENT.sub(out, _QUOTED.sub(out, text))
    return (left, tuple(parts[:_MAX_PARTS])) if re.search(r"\w{3}", left) else (text, ())


def _may_steer(text: str) -> bool:
    asides, lowered = _asides(), text.lower()
    if any(word in lowered for word in asides.steering) and asides.steers.search(text) is not None:
        return True
    return ": " in text and _ADDRESSES.search(text) is not None
