"""What of a card and of a task is compared: their texts, each of which becomes a vector."""

import hashlib
import re
from typing import Final

from claudomator_py.domain.card import Card
from claudomator_py.domain.task import TaskSpec
from claudomator_py.risk.vague import says_nothing
from claudomator_py.routing.cleaning import unsteered, without_courtesy
from claudomator_py.values import dataclass, regex

_SAYS_NOTHING: Final = regex(
    r"\b(?:(?=\w*\d)[0-9a-fT.:]+|\d+\w|tasks?|jobs?|todos?|items?|issues?|tickets?|runs?|tests?|tries|try|demo|untitled"
    r"|drafts?|te?mp|files?|prompts?|requests?|notes?|copy|claude|codex|agents?|nightly|daily|weekly|batch)\b",
    re.IGNORECASE,
)
"""What says nothing in a name: words for any task, numbers, dates and hashes."""


def text_hash(text: str) -> str:
    """Return the hash by which the vector of a text is kept: SHA-256, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class SkillTexts:
    """A skill: a text of its own, and its examples."""

    skill: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """A card, as it is compared with tasks."""

    specialist: str
    own: str
    """What it says of itself as a whole."""
    skills: tuple[SkillTexts, ...]
    prompt: str = ""
    """Its system prompt: for the agent, and so only part of ``as_one``."""
    whole: bool = False
    """Whether it is compared by its own text alone, and its skills only say what a task is about."""

    @property
    def texts(self) -> tuple[str, ...]:
        """All of its texts that are compared one by one."""
        return (self.own, *(text for skill in self.skills for text in skill.texts))

    @property
    def weighed(self) -> tuple[str, ...]:
        """Those of them that say how rare a feature is."""
        return (self.own,) if self.whole else self.texts

    @property
    def as_one(self) -> "Profile":
        """All of the card as its own text."""
        parts = (self.own, self.prompt, *(text for skill in self.skills for text in skill.texts))
        return Profile(self.specialist, "\n".join(part for part in parts if part), self.skills, whole=True)


def profile_of(card: Card) -> Profile:
    """Return the profile of the card."""
    skills = []
    for skill in card.skills:
        own = " ".join((skill.name, skill.description, *skill.tags))
        skills.append(SkillTexts(skill.id, (own, *skill.examples)))
    own = " ".join((card.title, card.description, *card.keywords))
    return Profile(card.id, own, tuple(skills), card.system_prompt or "")


@dataclass(frozen=True, slots=True)
class Request:
    """A task, as it is compared with cards: metadata and text only, before anything else of it is loaded."""

    text: str
    name: str = ""
    """In a few words what it is about, if it says anything; empty: it has none."""
    tags: tuple[str, ...] = ()

    @classmethod
    def of(cls, spec: TaskSpec) -> "Request":
        """Make the request of a task. Its name is given, or that of its file."""
        return cls(spec.instructions, spec.name.replace("-", " ").replace("_", " "), spec.tags)

    @property
    def unheeded(self) -> tuple[str, ...]:
        """What its text says of who is to do it, or how, which is not compared."""
        return unsteered(self.text)[1]

    @property
    def compared(self) -> str:
        """What is compared with cards: its text, but for what is unheeded and for courtesy, with its tags, and its name
        unless every word of that could be about anything. A name such as ``task-17`` changes nothing."""
        text = without_courtesy(unsteered(self.text)[0])
        name = self.name if says_nothing(_SAYS_NOTHING.sub(" ", self.name)) is None else ""
        return "\n".join(part for part in (name, text, " ".join(self.tags)) if part)


@dataclass(frozen=True, slots=True)
class Likeness:
    """How alike a task is to a card."""

    semantic: float
    """-1 to 1: of its best skill, all its skills together, and what the card says as a whole."""
    skill: str | None
    """The skill that is most alike; None: the card has none."""
