"""Signals other than similarity: a specialist's keywords, performance and recency; and the votes of earlier labelled
tasks for and against specialists for a similar new task."""

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from claudomator_py.domain.learning import LabelVerdict
from claudomator_py.domain.units import DAY_MS, HOUR_MS
from claudomator_py.routing.profile import memoized
from claudomator_py.values import dataclass

if TYPE_CHECKING:
    from claudomator_py.routing.space import Vector

SUCCESS_HALF_LIFE_MS = 48 * HOUR_MS
"""Time after which a success counts half."""
NO_PERFORMANCE = 0.5
"""Performance of a specialist about which nothing is known."""


def keyword_in(text: str, keywords: Iterable[str]) -> str | None:
    """Return the first keyword that occurs in the text as whole words, ignoring case; None if none does."""
    folded = _folded(text)
    for keyword, word, phrase in _phrases(tuple(keywords)):
        # Most keywords do not occur at all, which a plain search detects without matching whole words.
        if word in folded and phrase.search(folded):
            return keyword
    return None


def _normalised(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


_folded = memoized(_normalised)


@lru_cache(maxsize=2_000)
def _phrases(keywords: tuple[str, ...]) -> list[tuple[str, str, re.Pattern[str]]]:
    """Each keyword with its first word and a pattern for the whole of it; without those that have no words."""
    phrases = []
    for keyword in keywords:
        if words := _normalised(keyword).split():
            phrase = r"\s+".join(map(re.escape, words))
            phrases.append((keyword, words[0], re.compile(rf"(?<!\w){phrase}(?!\w)")))
    return phrases


def recency(last_success_ms: int | None, now_ms: int) -> float:
    """Return 0 to 1: ``0.5 ** (age / 48 h)`` of the last success; 0 if there was none, 1 for one in the future."""
    if last_success_ms is None:
        return 0.0
    return math.pow(0.5, max(0, now_ms - last_success_ms) / SUCCESS_HALF_LIFE_MS)


HALF_LIFE_MS: Final = 90 * DAY_MS
"""Time after which a label counts half."""
PRIOR: Final = 0.25
"""Weight of votes for nobody, so that a single, slightly similar task does not decide."""


def moved(performance: float, verdict: LabelVerdict, rate: float) -> float:
    """Return performance after another label: an exponential moving average (Roberts 1959) towards 1 or 0. It starts at
    ``NO_PERFORMANCE``; a neutral label changes nothing."""
    if verdict is LabelVerdict.NEUTRAL:
        return performance
    return performance + rate * ((1.0 if verdict is LabelVerdict.POSITIVE else 0.0) - performance)


def corrected(performance: float, verdict: LabelVerdict, rate: float, later: int) -> float:
    """Return performance as if a label had had this verdict instead of the opposite one. later: number of labels that
    have changed it since, each of which left ``1 - rate`` of the label's effect."""
    return performance + (1.0 if verdict is LabelVerdict.POSITIVE else -1.0) * rate * (1 - rate) ** later


@dataclass(frozen=True, slots=True)
class SpecialistStats:
    """A specialist's record so far."""

    performance: float = NO_PERFORMANCE
    """0 to 1, on the topic in question."""
    last_success_ms: int | None = None


_NOTHING_KNOWN: Final = SpecialistStats()
Standings = Mapping[tuple[str, str], SpecialistStats]
"""By specialist and topic. The topic ``""`` covers all topics together, and replaces a missing one."""


def standing_of(standings: Standings, specialist: str, topic: str | None) -> SpecialistStats:
    """Return the specialist's record on that topic, or on all topics if nothing is known about it."""
    whole = standings.get((specialist, ""), _NOTHING_KNOWN)
    own = standings.get((specialist, topic)) if topic else None
    # A success counts whatever its topic: recency shows that the specialist is active.
    return whole if own is None else SpecialistStats(own.performance, whole.last_success_ms)


@dataclass(frozen=True, slots=True)
class Lesson:
    """A labelled task."""

    text: str
    """The text that is compared; see ``profile.Request``."""
    chosen: str | None
    """The specialist that did it, or was to; None if there was none."""
    wanted: str | None
    """The specialist to which an operator reassigned it; None if the choice was right."""
    at_ms: int


@dataclass(frozen=True, slots=True)
class Votes:
    """The votes of earlier tasks on who does a new one."""

    shares: Mapping[str, float] = field(default_factory=dict)
    """-1 to 1 by specialist; specialists without votes are absent."""
    corrected: frozenset[str] = frozenset()
    """Specialists to which operators have reassigned such tasks; votes for all others mean only that such tasks went
    well."""


class Lessons:
    """The lessons of one organisation, as one encoder sees them. Immutable.

    The vote for a specialist is the mean verdict of the tasks similar to the new one, weighted by similarity and age: a
    kernel regression (Nadaraya 1964, Watson 1964), shrunk towards 0 by ``PRIOR``. A task that resembles no labelled one
    is decided as if there were none.
    """

    def __init__(self, lessons: Sequence[Lesson], rows: "Vector", alike: float) -> None:
        """rows: the lessons' vectors, of length 1. alike: cosine up to which two tasks have nothing in common, 0 to
        1."""
        self._lessons = tuple(lessons)
        self._rows = rows
        self._alike = alike

    def votes(self, task: "Vector", now_ms: int) -> Votes:
        """Return the lessons' votes on a task. task: its vector, of length 1."""
        if not self._lessons:
            return Votes()
        from claudomator_py.routing.space import cosines  # numpy only when comparing

        alike = (cosines(self._rows, task) - self._alike) / (1 - self._alike)
        total, evidence, corrected = PRIOR, defaultdict[str, float](float), set[str]()
        for at in alike.nonzero()[0]:
            if alike[at] <= 0:
                continue
            lesson = self._lessons[at]
            weight = float(alike[at]) * 0.5 ** (max(0, now_ms - lesson.at_ms) / HALF_LIFE_MS)
            total += weight
            if lesson.wanted is None:
                evidence[lesson.chosen or ""] += weight
                continue
            corrected.add(lesson.wanted)
            evidence[lesson.wanted] += weight
            evidence[lesson.chosen or ""] -= weight
        evidence.pop("", None)
        return Votes({specialist: vote / total for specialist, vote in evidence.items()}, frozenset(corrected))
