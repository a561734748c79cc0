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
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Final, TypeVar

from claudomator_py.domain.card import Card
from claudomator_py.domain.task import TaskSpec
from claudomator_py.risk import says_nothing
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


def _phrases(text: str) -> str:
    """Matches one of the phrases as whole words; each line contains one or more."""
    return rf"(?:{'|'.join(line.strip() for line in text.strip().splitlines())})(?!\w)"


_GREETING: Final = (
    r"(?:hi|hello|hey|dear|greetings|howdy|good (?:morning|afternoon|evening|day))"
    r"(?: (?:there|again|all|everyone|everybody|team|folks|friends?|colleagues?|sirs?|madam))*"
)
_HELP: Final = r"(?:your|the|any|all your) (?:help|time|support|assistance|efforts?|patience|understanding)"
_MORE: Final = (
    rf"(?: (?:you|again|in advance|(?:so|very) (?:much|kindly)|a (?:lot|million|bunch|ton)|all|for {_HELP}))*"
)
_BEGINS: Final = _phrases(
    rf"""
    {_GREETING}
    (?:i am |i['\u2019]m )?(?:so |very |really )?sorry (?:to (?:bother|disturb|trouble|interrupt) you)(?: again| but)*
    (?:i am |i['\u2019]m )?(?:so |very |really )?sorry for (?:the trouble|(?:bothering|disturbing) you)(?: again| but)*
    sorry|excuse me|pardon(?: me)?|please|pls|plz|kindly|if (?:possible|you (?:do not|don['\u2019]t) mind)
    (?:when|if|once|whenever) you (?:have|get|find) (?:a (?:moment|minute|chance|second)|(?:the |some )?time)
    (?:can|could|would|will) you (?:(?:maybe|perhaps|possibly) )?(?:please|kindly)
    (?:(?:can|could|would|will) you )?be so (?:kind|good) (?:as|and) to
    (?:would|do) you mind(?: helping me(?: with(?: this)?)?)?|help me(?: out)?(?: with (?:this|the following))?(?=\s*:)
    (?:i (?:was|am) |i['\u2019]m |just )?wondering (?:if|whether) you (?:can|could|might|would)
    (?:i|we)(?: would|['\u2019]d) be (?:very |so |really |most )?(?:grateful|thankful|glad|happy|obliged) if you \w+
    (?:i|we)(?: would|['\u2019]d) (?:really |greatly |very much )?appreciate it if you \w+
    it would be (?:great|nice|lovely|good|helpful|kind|wonderful) if you (?:can|could|would)
    """
)
_IS_ALL: Final = _phrases(
    rf"""
    {_GREETING}
    (?:many |a thousand )?(?:thanks|thx|ty){_MORE}|thank you{_MORE}|cheers|please|and
    (?:(?:with )?(?:kind|best|warm|many)(?: (?:kind|best|warm))? )?(?:regards|wishes)|best
    (?:yours )?sincerely(?: yours)?
    (?:i|we) (?:(?:really|do|greatly|very much|truly) )*appreciate (?:it|that|this|{_HELP})(?: very much| a lot)?
    {_HELP} (?:is|would be|will be) (?:much |greatly |very |highly |really )?(?:appreciated|welcome)|much appreciated
    that would be (?:great|nice|lovely|good|helpful|kind|wonderful|perfect)
    (?:i )?hope (?:that )?you(?:['\u2019]re| are) (?:all )?(?:doing )?(?:well|fine|good|great|ok|okay)
    (?:i )?hope (?:this|my) (?:message|e?-?mail|note) finds you well|(?:i )?hope all is well
    how are you(?: doing| today)*
    (?:i )?hope you (?:had|are having) a (?:nice|good|great) (?:day|week|weekend|start)
    have a (?:nice|good|great|lovely|pleasant) (?:day|one|evening|weekend|week|time)
    let me know(?: when (?:it|this) is (?:done|ready)| if (?:you have|there are) any (?:questions|problems))?
    (?:i am |i['\u2019]m )?(?:so |very |really )?sorry (?:to (?:bother|trouble) you|for the trouble)(?: again)*
    sorry|no (?:rush|hurry)|take your time
    """
)
# Possessive, as a phrase may be part of another: otherwise a text that repeats them is tried in every division.
_BEGINNING: Final = regex(rf"[\W_]*+(?:{_BEGINS}[\s,.!:;-]*+)++", re.IGNORECASE)
_NOTHING_ELSE: Final = regex(rf"\W*+(?:{_IS_ALL}\W*+)++", re.IGNORECASE)
_THANKS_AT_END: Final = regex(rf"(?<=\w)[\s,;:.!-]++(?:{_IS_ALL}\W*+)++\Z", re.IGNORECASE)
_ANY: Final = regex(
    r"\b(?:hi|hello|hey|dear|greetings|howdy|good|sorry|excuse|pardon|please|pls|plz|kindly|mind|kind|possible|you"
    r"|wondering|grateful|thankful|glad|obliged|appreciate|thanks|thank|thx|cheers|regards|best|sincerely|appreciated"
    r"|know|hope|help)\b",
    re.IGNORECASE,
)
_SENTENCE: Final = regex(r"[^.!?;\n]++(?:[.!?;]++|\n|\Z)|[.!?;\n]++")


@memoized
def without_courtesy(text: str) -> str:
    """Return the text without greetings, thanks and polite forms at the edges of its sentences; unchanged if nothing
    would be left."""
    if _ANY.search(text) is None:
        return text
    left = "".join(_plain(part) for part in _SENTENCE.findall(text))
    edge = max(0, len(left) - _MAX_EDGE)
    left = left[:edge] + _THANKS_AT_END.sub("", left[edge:])
    return left if re.search(r"\w{3}", left) else text


def _plain(sentence: str) -> str:
    if _NOTHING_ELSE.fullmatch(sentence) is not None:
        return " "
    begins = _BEGINNING.match(sentence)
    return sentence if begins is None else f" {sentence[begins.end() :]}"


_MAX_PARTS: Final = 10
"""Maximum number of passages that a decision records: the first ones."""
_MAX_REPORTED: Final = 200
_WHO: Final = (
    r"(?:ai|a\.i\.|assistants?|llm|agents?|bots?|router|dispatcher|classifier|triage|orchestrator|model"
    r"|system(?: prompt)?|admin)"
)
_STEERS: Final = regex(
    r"\b(?:"
    r"(?:ignore|disregard|forget|override) (?:all |any |the |your |my |our |these )*(?:previous |prior |above "
    r"|earlier|preceding |former )?(?:instructions?|rules|polic(?:y|ies)|prompts?|guidelines)|(?:choose|select"
    r"|pick|prefer|use|assign|route|hand|send|give|forward|pass|delegate|escalate|direct|dispatch)\b.{0,40}\b("
    r"?:to|specialist|for) (?:the )?(?:specialist )?(?:[a-z]+-(?:[a-z]+-)*(?:engineer|reviewer|manager|auditor"
    r"|writer|administrator|researcher|designer|analyst|developer|architect|specialist|doctor)|human[_ ]review"
    r"|reject|clarify)|(?:choose|select|pick|use) (?:the )?specialist\b.*|(?:choose|select|pick|use|require|se"
    r"t|take|with)\b.{0,30}\b(?:(?:most )?(?:powerful|strong\w*|best|largest|big\w*|cheap\w*|fast\w*|balanced|"
    r"expensive) (?:tier|model)s?|tier (?:to )?(?:powerful|fast|balanced)|(?:opus|sonnet|haiku))|tier ?(?:=|:|"
    r"is|to)? ?(?:powerful|balanced|fast)|(?:set|lower|raise|treat|mark|change)\b.{0,20}\b(?:risk|priority|tie"
    r"r) (?:to|as|=) ?\w+|risk ?[=:] ?(?:low|medium|high)|route ?[=:] ?\w+|specialist ?[=:] ?[\w-]+|polic(?:y|"
    r"ies) ?[=:] ?\w+|skip (?:the )?(?:human[_ ]review|approvals?|reviews?|polic(?:y|ies)|checks)|no (?:review"
    r"|approval) (?:is )?(?:needed|required|necessary)|polic(?:y checks|ies) (?:is|are) (?:off|disabled|void)|"
    r"(?:all )?filters are off|any specialist may|unrestricted mode|(?:hereby|as the operator i) declare|admin"
    r" override|(?:this|it)(?:['\u2019]s| is) (?:low|high|medium)[ -]risk"
    r")\b",
    re.IGNORECASE,
)
_TELLING: Final = (
    "ignore", "disregard", "forget", "override", "specialist", "engineer", "reviewer", "manager", "auditor", "writer",
    "administrator", "researcher", "designer", "analyst", "developer", "architect", "doctor", "human", "reject",
    "clarify", "tier", "model", "opus", "sonnet", "haiku", "risk", "priority", "route", "polic", "skip", "review",
    "approval", "filters", "unrestricted", "declare",
)  # fmt: skip
"""A text that contains none of these words cannot match ``_STEERS``."""
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
        if not (_STEERS.search(piece) or _ADDRESSES.search(piece)):
            return piece
        parts.append(" ".join(piece.split())[:_MAX_REPORTED])
        return " "

    left = _STATEMENT.sub(out, _QUOTED.sub(out, text))
    return (left, tuple(parts[:_MAX_PARTS])) if re.search(r"\w{3}", left) else (text, ())


def _may_steer(text: str) -> bool:
    lowered = text.lower()
    if any(word in lowered for word in _TELLING) and _STEERS.search(text) is not None:
        return True
    return ": " in text and _ADDRESSES.search(text) is not None
