"""Cards as vectors: one matrix for all of them, so that a task's similarity to each is computed in one product. Counts
of features are rows that are mostly zeros."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from claudomator_py.routing.profile import Likeness, Profile, text_hash
from claudomator_py.values import dataclass

Vector = npt.NDArray[np.float32]
"""One vector, or a row for each of several."""
_Floats = TypeVar("_Floats", np.float32, np.float64)

_BATCH_SIZE = 32
"""Rows computed at once, which bounds the size of the intermediate double-precision array."""


def cosine(first: Vector, other: Vector) -> float:
    """Return the similarity of two vectors, -1 to 1. Never NaN: 0 for a vector that is empty, has length zero or
    contains non-finite values. Vectors that differ in length are compared in their common prefix."""
    common = min(len(first), len(other))
    if not common:
        return 0.0
    a, b = (_unit(vector[:common].astype(np.float64)) for vector in (first, other))
    return float(np.clip(cosines(a[np.newaxis], b)[0], -1.0, 1.0))


def cosines(rows: npt.NDArray[_Floats], other: npt.NDArray[_Floats]) -> npt.NDArray[_Floats]:
    """Return the similarity of each row to the vector, -1 to 1. All must have length 1 or 0, as from ``normalised``.
    For rows that are weighted sums of such vectors, the result is the sum of the cosines with the same weights."""
    return rows @ other


def normalised(rows: Vector) -> Vector:
    """Return each row scaled to length 1, so that the product with another unit vector is their cosine; a row of length
    zero stays 0."""
    matrix = np.array(np.atleast_2d(rows), dtype=np.float32)
    normalise(matrix)
    return matrix.reshape(rows.shape)


def normalise(rows: Vector) -> None:
    """Normalise the rows in place to length 1; see ``normalised``. rows: two dimensions."""
    for start in range(0, len(rows), _BATCH_SIZE):
        rows[start : start + _BATCH_SIZE] = _units(rows[start : start + _BATCH_SIZE].astype(np.float64))


def _unit(vector: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    length = math.sqrt((vector * vector).sum())
    return vector / length if 0.0 < length < math.inf else np.zeros_like(vector)


def _units(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    # Squares of single-precision numbers neither overflow nor underflow in double precision.
    lengths = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    measured = np.isfinite(lengths) & (lengths != 0.0)
    return np.where(measured, rows, 0.0) / np.where(measured, lengths, 1.0)


def to_bytes(vector: Vector) -> bytes:
    """Write the vector as stored in rows: 32-bit floats, least significant byte first."""
    return vector.astype("<f4").tobytes()


def from_bytes(data: bytes) -> Vector:
    """Return the vector written by ``to_bytes``. Raises ValueError."""
    return np.frombuffer(data, dtype="<f4").astype(np.float32)


_BATCH_SIZE = 32
"""Means computed at once; each temporarily takes 8 bytes per feature."""


@dataclass(frozen=True, eq=False, slots=True)
class SparseRow:
    """A vector that is mostly zeros. Immutable."""

    at: npt.NDArray[np.int32]
    values: Vector
    width: int

    @classmethod
    def of(cls, vector: Vector) -> "SparseRow":
        """Make a sparse row from a dense vector."""
        at = vector.nonzero()[0].astype(np.int32)
        return cls(at, vector[at], len(vector))

    def __len__(self) -> int:
        return self.width

    @property
    def dense(self) -> Vector:
        """The row as a dense vector."""
        row = np.zeros(self.width, dtype=np.float32)
        row[self.at] = self.values
        return row


def frequencies(rows: Sequence[SparseRow], width: int) -> npt.NDArray[np.intp]:
    """Return the number of rows that have each feature."""
    there = [row.at[row.values > 0] for row in rows]
    return np.bincount(np.concatenate(there) if there else np.zeros(0, dtype=np.int32), minlength=width)


def means(groups: Sequence[Sequence[SparseRow]], weights: Vector) -> Vector:
    """Return one row per group: the mean of its rows, each first weighted by feature and scaled to length 1; a row
    without features counts as length 0. weights: one per feature."""
    width = len(weights)
    totals = np.zeros((len(groups), width), dtype=np.float32)
    for first in range(0, len(groups), _BATCH_SIZE):
        some = groups[first : first + _BATCH_SIZE]
        group_of = [place for place, group in enumerate(some) for row in group if len(row.at)]
        rows = [row for group in some for row in group if len(row.at)]
        if not rows:
            continue
        lengths = np.array([len(row.at) for row in rows])
        at = np.concatenate([row.at for row in rows])
        values = np.concatenate([row.values for row in rows]).astype(np.float64) * weights[at]
        norms = np.sqrt(np.add.reduceat(values * values, np.cumsum(lengths) - lengths))
        values /= np.repeat(np.where(norms > 0, norms, 1.0), lengths)
        places = np.repeat(np.array(group_of) * width, lengths) + at
        sums = np.bincount(places, weights=values, minlength=len(some) * width).reshape(len(some), width)
        totals[first : first + len(some)] = sums / np.array([max(1, len(group)) for group in some])[:, np.newaxis]
    return totals


Row = Vector | SparseRow
Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Twin:
    """A skill of another specialist that is similar to one's own."""

    skill: str
    specialist: str
    other: str
    """The other specialist's skill."""
    cosine: float


class Space:
    """The cards of a registry as one encoder sees them. Immutable; rebuilt when a card changes."""

    def __init__(
        self,
        profiles: Sequence[Profile],
        vectors: Mapping[str, Row],
        *,
        weighs_rarity: bool,
        own_share: float,
        card_share: float = 0.0,
        counted: Collection[str] | None = None,
    ) -> None:
        """vectors: of all texts of the profiles, by ``text_hash``. weighs_rarity: True if the vectors are counts of
        features, which weigh more the fewer texts have them: ``ln((texts + 1) / (texts with it + 1)) + 1``, the
        smoothed inverse document frequency (Robertson 2004). own_share: weight of the card's own text, 0 to 1;
        card_share: of all its skills together; the rest is that of its best skill. counted: ids of the cards whose
        texts determine rarity, as a score must not reveal cards that its reader cannot see; None for all."""
        self._profiles = tuple(profiles)
        self._at = {profile.specialist: at for at, profile in enumerate(profiles)}
        self._rest = 1 - own_share - card_share
        skills = [(at, skill) for at, profile in enumerate(profiles) for skill in profile.skills]
        groups = [*([profile.own] for profile in profiles), *(skill.texts for _, skill in skills)]
        rows = [[vectors[text_hash(text)] for text in texts] for texts in groups]
        self._rarity = self._weigh(vectors, counted) if weighs_rarity else None
        # A skill's position is the mean of its text and its examples.
        means = self._means(rows)
        normalise(means)
        self._own = means[: len(profiles)].copy()
        self._skills = means[len(profiles) :] if skills else np.zeros((0, 0), dtype=np.float32)
        self._owners = np.array([at for at, _ in skills], dtype=np.intp)
        self._names = tuple(skill.skill for _, skill in skills)
        # Skills of a card are adjacent, so that the best of each is found by one reduction.
        self._with_skills, self._starts, self._sizes = np.unique(self._owners, return_index=True, return_counts=True)
        # Products are additive, so the card's own text and all its skills need only one row.
        whole = self._own.copy()
        if skills:
            own = own_share * self._own[self._with_skills]
            whole[self._with_skills] = own + card_share * self._together()
        # A task is compared with all of these, for a column for each.
        self._compared = np.ascontiguousarray(np.concatenate([whole, *([self._skills] if skills else [])]).T)
        if skills:
            self._skills = self._compared[:, len(profiles) :].T  # kept once

    def _weigh(self, vectors: Mapping[str, Row], counted: Collection[str] | None) -> Vector:
        profiles = [profile for profile in self._profiles if counted is None or profile.specialist in counted]
        rows = [_sparse(vectors[text_hash(text)]) for profile in profiles for text in profile.weighed]
        counts = frequencies(rows, len(next(iter(vectors.values()), ())))
        return (np.log((len(rows) + 1) / (counts + 1)) + 1).astype(np.float32)

    def _means(self, groups: Sequence[Sequence[Row]]) -> Vector:
        """The mean of each group of texts, in the form compared here."""
        if self._rarity is not None:
            return means([[_sparse(row) for row in group] for group in groups], self._rarity)
        dense = [[row.dense if isinstance(row, SparseRow) else row for row in group] for group in groups]
        if not dense:
            return np.zeros((0, 0), dtype=np.float32)
        return np.stack([self.placed(group).mean(axis=0) for group in dense])

    def _together(self) -> Vector:
        """The mean of all skills of each card that has any."""
        sums = np.add.reduceat(self._skills, self._starts, axis=0)
        sums /= self._sizes[:, np.newaxis].astype(np.float32)
        return normalised(sums)

    def placed(self, texts: Sequence[Vector]) -> Vector:
        """Return texts in the form compared here: a row of length 1 for each. texts: their vectors."""
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        stacked = np.stack(texts)
        return normalised(stacked if self._rarity is None else stacked * self._rarity)

    def cosines(self, text: Vector) -> dict[tuple[str, str | None], float]:
        """Return the similarity of a text to each skill, and to each card as a whole, -1 to 1, by ids of card and
        skill; the skill is None for the card's own text. text: its vector."""
        if not self._profiles:
            return {}
        asked = self.placed([text])[0]
        similarities: dict[tuple[str, str | None], float] = {}
        for profile, alike in zip(self._profiles, cosines(self._own, asked), strict=True):
            similarities[profile.specialist, None] = float(alike)
        if self._names:
            for owner, name, alike in zip(self._owners, self._names, cosines(self._skills, asked), strict=True):
                similarities[self._profiles[owner].specialist, name] = float(alike)
        return similarities

    def twins(self, specialist: str, least: float) -> list[Twin]:
        """Return skills of others with at least this similarity to a skill of the specialist, most similar first."""
        at = self._at.get(specialist)
        if at is None or not self._names:
            return []
        examples = []
        for row in np.flatnonzero(self._owners == at):
            alike = cosines(self._skills, self._skills[row])
            for other in np.flatnonzero(alike >= least):
                if self._owners[other] != at:
                    whose = self._profiles[self._owners[other]].specialist
                    examples.append(Twin(self._names[row], whose, self._names[other], float(alike[other])))
        return sorted(examples, key=lambda example: (-example.cosine, example.skill, example.specialist, example.other))

    def likeness(self, text: Vector) -> Mapping[str, Likeness]:
        """Compare a task with each card, by card id. text: the vector of the task's text."""
        if not self._profiles:
            return {}
        products, cards = self._products(text), len(self._profiles)
        semantic, alike = products[:cards], products[cards:]
        best = np.full(len(self._profiles), -1, dtype=np.intp)
        if len(self._names):
            most = np.maximum.reduceat(alike, self._starts)
            semantic[self._with_skills] += self._rest * most
            best[self._with_skills] = self._first_best(alike, most)
        skills = (*self._names, None)
        return {
            specialist: Likeness(similarity, skills[at])
            for specialist, similarity, at in zip(self._at, semantic.tolist(), best.tolist(), strict=True)
        }

    def _products(self, text: Vector) -> Vector:
        """Return the similarity of a text to each card, then to each skill. Only the features that the text has are
        looked at: of counts of features, about a hundred of thousands. Raises ValueError for another width."""
        if len(text) != len(self._compared):
            raise ValueError(f"a vector of {len(text)}, not of {len(self._compared)}")
        at = (text != 0).nonzero()[0]  # of booleans, it takes a fifth of the time
        values = text[at] if self._rarity is None else text[at] * self._rarity[at]
        return cosines(self._compared[at].T, _unit(values.astype(np.float64)).astype(np.float32))

    def compared(self, text: Vector) -> tuple[Vector, Vector, Vector]:
        """Return the parts of ``likeness``, one column per card: similarity to the card's own text, to all its skills
        together, and to its best skill; for a card without skills, the first one three times."""
        asked = self.placed([text])[0]
        own = cosines(self._own, asked)
        cards, best = own.copy(), own.copy()
        if len(self._names):
            best[self._with_skills] = np.maximum.reduceat(cosines(self._skills, asked), self._starts)
            cards[self._with_skills] = cosines(self._together(), asked)
        return own, cards, best

    def _first_best(self, alike: Vector, most: Vector) -> Indices:
        """Position of the best skill of each card that has any; the first of equal ones. alike: similarity to each
        skill; most: to the best of each card."""
        best = (alike == most.repeat(self._sizes)).nonzero()[0]
        first: Indices = best[best.searchsorted(self._starts)]
        return first


def _sparse(row: Row) -> SparseRow:
    return row if isinstance(row, SparseRow) else SparseRow.of(row)
