"""The texts of cards and tasks that are compared; each becomes a vector."""

import hashlib
import re
from typing import Final

from claudomator_py.domain.card import Card
from claudomator_py.domain.task import TaskSpec
from claudomator_py.risk import says_nothing
from claudomator_py.routing.cleaning import unsteered, without_courtesy
from claudomator_py.values import dataclass, regex

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
