"""What speaks for a specialist besides likeness: its keywords, how it has done so far, and how lately; and what earlier
tasks with a label say of a new one: those that are like it vote for and against specialists."""

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
from claudomator_py.routing.cleaning import memoized
from claudomator_py.values import dataclass

if TYPE_CHECKING:
    from claudomator_py.domain.vectors import Vector

SUCCESS_HALF_LIFE_MS = 48 * HOUR_MS
"""How long it takes for a success to count half."""
NO_PERFORMANCE = 0.5
"""Of a specialist of whom nothing is known."""


def keyword_in(text: str, keywords: Iterable[str]) -> str | None:
    """Return the first of the keywords that is in the text, as whole words, in any case; None: none is."""
    folded = _folded(text)
    for keyword in keywords:
        word, phrase = _phrase(keyword)
        # Most keywords are in no part of the text: that is seen without looking for whole words.
        if word and word in folded and phrase.search(folded):
            return keyword
    return None


@memoized
def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


@lru_cache(maxsize=20_000)
def _phrase(keyword: str) -> tuple[str, re.Pattern[str]]:
    """The first word of the keyword, empty if it has none; and what finds all of it."""
    words = _folded(keyword).split()
    phrase = r"\s+".join(map(re.escape, words))
    return words[0] if words else "", re.compile(rf"(?<!\w){phrase}(?!\w)")


def recency(last_success_ms: int | None, now_ms: int) -> float:
    """Return 0 to 1: ``0.5 ** (age / 48 h)`` of the last success; 0 if there was none, 1 for one that is yet to
    come."""
    if last_success_ms is None:
        return 0.0
    return math.pow(0.5, max(0, now_ms - last_success_ms) / SUCCESS_HALF_LIFE_MS)


HALF_LIFE_MS: Final = 90 * DAY_MS
"""How long it takes for a label to count half."""
PRIOR: Final = 0.25
"""Of votes for nobody, so that one task which is a little like it does not decide."""


def moved(performance: float, verdict: LabelVerdict, rate: float) -> float:
    """Return performance after one more label: an exponential moving average (Roberts 1959) towards 1 or 0. It begins
    at ``signals.NO_PERFORMANCE``, and a neutral label moves nothing."""
    if verdict is LabelVerdict.NEUTRAL:
        return performance
    return performance + rate * ((1.0 if verdict is LabelVerdict.POSITIVE else 0.0) - performance)


def corrected(performance: float, verdict: LabelVerdict, rate: float, later: int) -> float:
    """Return performance as if a label had had this verdict, not the opposite one. later: how many have moved it since,
    each of which has left ``1 - rate`` of what the label had moved."""
    return performance + (1.0 if verdict is LabelVerdict.POSITIVE else -1.0) * rate * (1 - rate) ** later


@dataclass(frozen=True, slots=True)
class SpecialistStats:
    """How a specialist has done so far."""

    performance: float = NO_PERFORMANCE
    """0 to 1, on the topic in question."""
    last_success_ms: int | None = None


Standings = Mapping[tuple[str, str], SpecialistStats]
"""By specialist and topic. That of the topic ``""`` is of all topics together, and stands in for one that is not
there."""


def standing_of(standings: Standings, specialist: str, topic: str | None) -> SpecialistStats:
    """Return how the specialist has done on that topic; where nothing is known of that, on any."""
    whole = standings.get((specialist, ""), SpecialistStats())
    own = standings.get((specialist, topic)) if topic else None
    # A success is one whatever it was about: recency says that the specialist is at work.
    return whole if own is None else SpecialistStats(own.performance, whole.last_success_ms)


@dataclass(frozen=True, slots=True)
class Lesson:
    """A task with a label."""

    text: str
    """What is compared of it, see ``profile.Request``."""
    chosen: str | None
    """Who did it, or was to; None: no specialist."""
    wanted: str | None
    """To whom an operator gave it instead; None: it was right as it was."""
    at_ms: int


@dataclass(frozen=True, slots=True)
class Votes:
    """What earlier tasks say of who does a new one."""

    shares: Mapping[str, float] = field(default_factory=dict)
    """-1 to 1 by specialist; of those for whom nothing speaks, none."""
    corrected: frozenset[str] = frozenset()
    """Those to whom operators have given such tasks; for all others speaks only that such tasks went well."""


class Lessons:
    """Those of one organisation, as one encoder sees them. Immutable.

    The vote for a specialist is the mean of what is said by the tasks that are like the new one, weighed by how alike
    they are and how old: a kernel regression (Nadaraya 1964, Watson 1964), shrunk towards 0 by ``PRIOR``. What is like
    no task with a label is decided as if there were none.
    """

    def __init__(self, lessons: Sequence[Lesson], rows: "Vector", alike: float) -> None:
        """rows: their vectors, of length 1. alike: the cosine up to which two tasks have nothing in common, 0 to 1."""
        self._lessons = tuple(lessons)
        self._rows = rows
        self._alike = alike

    def votes(self, task: "Vector", now_ms: int) -> Votes:
        """Return what they say of a task. task: its vector, of length 1."""
        if not self._lessons:
            return Votes()
        from claudomator_py.domain.vectors import cosines  # numpy is for whoever compares

        alike = (cosines(self._rows, task) - self._alike) / (1 - self._alike)
        total, found, corrected = PRIOR, defaultdict[str, float](float), set[str]()
        for at in alike.nonzero()[0]:
            if alike[at] <= 0:
                continue
            lesson = self._lessons[at]
            weight = float(alike[at]) * 0.5 ** (max(0, now_ms - lesson.at_ms) / HALF_LIFE_MS)
            total += weight
            if lesson.wanted is None:
                found[lesson.chosen or ""] += weight
                continue
            corrected.add(lesson.wanted)
            found[lesson.wanted] += weight
            found[lesson.chosen or ""] -= weight
        found.pop("", None)
        return Votes({specialist: vote / total for specialist, vote in found.items()}, frozenset(corrected))
