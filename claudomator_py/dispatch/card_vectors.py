"""The specialists' cards as vectors, cached until a card changes, and what routing has learned."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from sqlalchemy import Connection

from claudomator_py.domain.card import Card, Visibility
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import DAY_MS
from claudomator_py.ports import Clock, Encoder, EncoderFault
from claudomator_py.routing.calibration import Calibration
from claudomator_py.routing.lessons import Lesson, Lessons, SpecialistStats, Standings, Votes
from claudomator_py.routing.oddities import NEARLY
from claudomator_py.routing.profile import Likeness, Profile, Request, profile_of, text_hash
from claudomator_py.routing.ranking import NO_VOTES
from claudomator_py.store import learning_rows, specialist_rows
from claudomator_py.store.database import Database
from claudomator_py.store.full_text import Found
from claudomator_py.store.tables import Label
from claudomator_py.values import dataclass

if TYPE_CHECKING:
    from claudomator_py.routing.space import Row, Space, Twin, Vector

MAX_EXAMPLES: Final = 300
"""Overrides that are used, and confirmed decisions: the newest of each."""
_ORGANISATIONS: Final = 20
"""Organisations whose learning is cached."""


@dataclass(frozen=True, slots=True)
class LearnedWeights:
    """What an organisation's earlier tasks have taught."""

    standings: Standings
    lessons: Lessons | None
    """None if no operator has corrected a decision."""
    space: "Space"
    """The vector space of the lessons."""

    def votes(self, task: "Vector", now_ms: int) -> Votes:
        """Return the votes of similar earlier tasks for each specialist, see ``Lessons.votes``. task: its vector."""
        return NO_VOTES if self.lessons is None else self.lessons.votes(self.space.placed([task])[0], now_ms)


@dataclass(frozen=True, slots=True)
class _Read:
    standings: Standings
    lessons: tuple[Lesson, ...]


class LearnedRouting:
    """Reads what organisations have learned, as vectors of one encoder. Safe to use from any thread."""

    def __init__(self, database: Database, encoder: Encoder, calibration: Calibration) -> None:
        self._database = database
        self._encoder = encoder
        self._calibration = calibration
        self._lock = threading.Lock()
        self._version = -1
        self._read: OrderedDict[str, _Read] = OrderedDict()
        self._vectors: dict[str, dict[str, Vector]] = {}
        self._space: Space | None = None
        self._lessons: dict[str, Lessons] = {}

    def of(self, organisations: Sequence[str | None], space: "Space") -> Mapping[str | None, LearnedWeights]:
        """Return what each organisation has learned; None stands for tasks without an organisation. Raises
        StoreUnavailable, EncoderFault."""
        keys = {organisation: organisation or learning_rows.NO_ORGANISATION for organisation in organisations}
        with self._lock:
            fresh = self._database.read(lambda connection: self._look(connection, sorted(set(keys.values()))))
            if space is not self._space:
                self._space, self._lessons = space, {}
            return {organisation: self._learned(key, fresh[key], space) for organisation, key in keys.items()}

    def _look(self, connection: Connection, keys: Sequence[str]) -> dict[str, _Read]:
        version = learning_rows.version(connection)
        if version != self._version:
            self._version = version
            self._read.clear()
            self._lessons.clear()
        for key in keys:
            if key not in self._read:
                self._read[key] = self._rows(connection, key)
            self._read.move_to_end(key)
        current = {key: self._read[key] for key in keys}
        while len(self._read) > max(_ORGANISATIONS, len(keys)):
            oldest, _ = self._read.popitem(last=False)
            self._lessons.pop(oldest, None)
            self._vectors.pop(oldest, None)
        return current

    def _rows(self, connection: Connection, organisation: str) -> _Read:
        standings = {
            (standing.specialist, standing.topic): SpecialistStats(standing.performance, standing.last_success_ms)
            for standing in learning_rows.standings(connection, organisation)
        }
        if not self._calibration.learned:
            return _Read(standings, ())
        labels = list(learning_rows.overrides(connection, organisation, MAX_EXAMPLES))
        if labels:  # without overrides, confirmations have nothing to weigh against
            labels += learning_rows.confirmations(connection, organisation, MAX_EXAMPLES)
        specs = learning_rows.specs(connection, labels)
        lessons = (_lesson(label, specs[label.decision_id]) for label in labels if label.decision_id in specs)
        return _Read(standings, tuple(lessons))

    def _learned(self, organisation: str, read: _Read, space: "Space") -> LearnedWeights:
        if not read.lessons:
            return LearnedWeights(read.standings, None, space)
        if organisation not in self._lessons:
            rows = space.placed(self._encoded(organisation, [lesson.text for lesson in read.lessons]))
            self._lessons[organisation] = Lessons(read.lessons, rows, self._calibration.alike)
        return LearnedWeights(read.standings, self._lessons[organisation], space)

    def _encoded(self, organisation: str, texts: Sequence[str]) -> "list[Vector]":
        """Return the vectors of the texts. Known texts are not encoded again."""
        width = self._encoder.dimensions
        known = {text: row for text, row in self._vectors.get(organisation, {}).items() if width in (0, len(row))}
        missing = list(dict.fromkeys(text for text in texts if text not in known))
        made = dict(zip(missing, encoded(self._encoder, missing) if missing else (), strict=True))
        self._vectors[organisation] = {text: made[text] if text in made else known[text] for text in texts}
        return [self._vectors[organisation][text] for text in texts]


def _lesson(label: Label, spec: dict[str, object]) -> Lesson:
    text = Request.of(TaskSpec.model_validate(spec)).compared
    return Lesson(text, label.specialist, label.wanted, label.at_ms)


_BATCH_SIZE: Final = 64
"""Texts per call of the encoder: dense vectors need much memory until their zeros are dropped."""
_MIN_DISTINCT: Final = 8
"""From this many texts on, identical vectors mean that the encoder is broken; two texts may differ in case only."""
KEPT_MS: Final = 7 * DAY_MS
"""Age at which vectors of texts that are on no card are removed, so that a quickly reverted edit costs nothing."""


def encoded(encoder: Encoder, texts: "Sequence[str]") -> "Vector":
    """Return the vector of each text. Raises EncoderFault, also for useless vectors."""
    rows = encoder.encode(texts)
    if not encoder.immediate:  # Counts of features may all be zero.
        if not rows.any(axis=1).all():
            raise EncoderFault("it returns zero vectors")
        if len(rows) >= _MIN_DISTINCT and (rows == rows[0]).all():
            raise EncoderFault("it returns the same vector for different texts")
    return rows


class TextVectors:
    """Caches an encoder's vectors in memory, and those of a slow encoder in the database. Not thread-safe.

    Counts of features are stored as sparse rows: a text has about a hundred of thousands of features.
    """

    def __init__(self, database: Database, encoder: Encoder, clock: Clock, *, keeps: bool = True) -> None:
        """keeps: whether to store rows, and to remove unused ones."""
        self._database = database
        self._encoder = encoder
        self._clock = clock
        self._keeps = keeps and not encoder.immediate
        self._cached: dict[str, Row] = {}

    def of(self, texts: Mapping[str, str]) -> "Mapping[str, Row]":
        """Return the vectors by hash of their text, and encode those that are missing. texts: all texts of cards, by
        hash; other texts are dropped from the cache. Raises StoreUnavailable, EncoderFault."""
        rows = self._fitting({digest: self._cached[digest] for digest in texts if digest in self._cached})
        missing = [digest for digest in texts if digest not in rows]
        if missing and not self._encoder.immediate:
            stored = self._database.read(
                lambda connection: specialist_rows.kept_vectors(connection, self._encoder.id, missing)
            )
            rows |= self._fitting(stored)
            missing = [digest for digest in missing if digest not in rows]
        if missing:
            made = self._encode(texts, missing)
            rows = self._fitting(rows) | made
            if outdated := [digest for digest in texts if digest not in rows]:
                rows |= self._encode(texts, outdated)
        if len(rows) < len(self._cached) or missing:
            self._remove_unused(texts)
        self._cached = rows
        return rows

    def _encode(self, texts: Mapping[str, str], digests: "Sequence[str]") -> "dict[str, Row]":
        """Return the vectors of these texts. Raises StoreUnavailable, EncoderFault."""
        rows: dict[str, Row] = {}
        for start in range(0, len(digests), _BATCH_SIZE):
            batch = digests[start : start + _BATCH_SIZE]
            vectors = encoded(self._encoder, [texts[digest] for digest in batch])
            rows |= self._store(dict(zip(batch, vectors, strict=True)))
        return rows

    def _fitting(self, rows: "Mapping[str, Row]") -> "dict[str, Row]":
        """Return the rows with the encoder's current width: a server may serve another model under the same name."""
        width = self._encoder.dimensions
        return {digest: row for digest, row in rows.items() if width in (0, len(row))}

    def _store(self, made: "Mapping[str, Vector]") -> "dict[str, Row]":
        from claudomator_py.routing.space import SparseRow  # numpy is for whoever compares

        if self._keeps:
            now_ms = self._clock()
            self._database.write(
                lambda connection: specialist_rows.keep_vectors(connection, self._encoder.id, made, now_ms)
            )
        return {
            digest: SparseRow.of(row) if self._encoder.weighs_rarity else row.copy() for digest, row in made.items()
        }

    def _remove_unused(self, texts: Mapping[str, str]) -> None:
        """Remove old rows of texts that are on no card, of any encoder."""
        if not self._keeps:
            return
        before_ms = self._clock() - KEPT_MS
        old = self._database.read(lambda connection: specialist_rows.texts_encoded_before(connection, before_ms))
        unused = [digest for digest in old if digest not in texts]
        if unused:
            self._database.write(lambda connection: specialist_rows.drop_vectors(connection, unused))


T = TypeVar("T")
_MANY: Final = 100
"""Number of changed cards from which on all cards are read."""


@dataclass(frozen=True, slots=True)
class Roster:
    """All specialists, whatever their visibility."""

    cards: dict[str, Card]
    """By id."""
    space: "Space"
    registry_hash: str


@dataclass(frozen=True, slots=True)
class _CachedCard:
    """A card as last read."""

    content: str
    """Hash of the card."""
    card: Card
    profile: Profile
    texts: dict[str, str]
    """The texts that tasks are compared with, by hash."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A task compared with all cards."""

    likeness: Mapping[str, Likeness]
    """Likeness to each card, by id."""
    task: "Vector"
    """Vector of the task's text."""


class _OtherWidth(EncoderFault):
    """The encoder's vectors have another width than the cached ones."""


class SpecialistDirectory:
    """All cards with the vectors of their texts. Safe to use from any thread.

    calibration: determines which texts of a card are compared. keeps: whether vectors of a slow encoder are stored.
    """

    def __init__(
        self, database: Database, encoder: Encoder, calibration: Calibration, clock: Clock, *, keeps: bool = True
    ) -> None:
        self._database = database
        self._encoder = encoder
        self._calibration = calibration
        self._vectors = TextVectors(database, encoder, clock, keeps=keeps)
        self._learned = LearnedRouting(database, encoder, calibration)
        self._lock = threading.Lock()
        self._roster: Roster | None = None
        self._known: dict[str, _CachedCard] = {}

    @property
    def encoder(self) -> Encoder:
        """The encoder by which tasks and cards are compared."""
        return self._encoder

    def roster(self, digest: str | None = None) -> Roster:
        """Return the current cards; changed ones are encoded first. digest: the registry's hash, if just read. Raises
        StoreUnavailable, EncoderFault."""
        with self._lock:
            current = self._database.read(specialist_rows.registry_hash) if digest is None else digest
            if self._roster is None or self._roster.registry_hash != current:
                self._roster = None  # so that memory never holds two of them
                self._roster = self._read(current)
            return self._roster

    def look(
        self, requests: Sequence[Request], organisations: Sequence[str | None], digest: str | None
    ) -> tuple[Roster, list[Comparison], Mapping[str | None, LearnedWeights]]:
        """Return the roster, each task compared with all cards, and what was learned. See ``roster``, ``compare`` and
        ``learned``."""
        return self._of_cards(
            digest, lambda roster: (roster, self.compare(roster, requests), self.learned(roster, organisations))
        )

    def compare(self, roster: Roster, requests: Sequence[Request]) -> list[Comparison]:
        """Return each task compared with all cards. Raises EncoderFault."""
        texts = [request.compared for request in requests]
        vectors = encoded(self._encoder, texts) if texts else ()
        return [Comparison(self._compared(partial(roster.space.likeness, vector)), vector) for vector in vectors]

    def learned(self, roster: Roster, organisations: Sequence[str | None]) -> Mapping[str | None, LearnedWeights]:
        """Return what each organisation has learned; None stands for tasks without an organisation. Raises
        StoreUnavailable, EncoderFault."""
        return self._compared(partial(self._learned.of, organisations, roster.space))

    def cosines(self, query: str) -> dict[Found, float]:
        """Return the cosine similarity of the query to each skill and to each card as a whole. Raises
        StoreUnavailable, EncoderFault."""
        (vector,) = encoded(self._encoder, [query])
        return self._of_cards(None, lambda roster: self._compared(partial(roster.space.cosines, vector)))

    def twins(self, specialist_id: str) -> "Sequence[Twin]":
        """Return skills of other specialists, whatever their visibility, that nearly duplicate one of this
        specialist's. Raises StoreUnavailable, EncoderFault."""
        return self.roster().space.twins(specialist_id, NEARLY)

    def _of_cards(self, digest: str | None, use: Callable[[Roster], T]) -> T:
        """Return ``use`` of the roster. If a server has switched its model, the cards are encoded again first."""
        try:
            return use(self.roster(digest))
        except _OtherWidth:
            return use(self.roster(digest))

    def _compared(self, compare: Callable[[], T]) -> T:
        """Return the comparison. Raises EncoderFault if vectors differ in width; the next call encodes the cards
        again."""
        try:
            return compare()
        except ValueError:
            with self._lock:
                self._roster = None
            raise _OtherWidth("its vectors have another width than before") from None

    def _read(self, digest: str) -> Roster:
        from claudomator_py.routing.space import Space  # numpy is for whoever compares

        known = self._known = self._database.read(self._look_at_cards)
        space = Space(
            [cached.profile for cached in known.values()],
            self._vectors.of({digest: text for cached in known.values() for digest, text in cached.texts.items()}),
            weighs_rarity=self._encoder.weighs_rarity,
            own_share=self._calibration.own_share,
            card_share=self._calibration.card_share,
            counted={name for name, cached in known.items() if cached.card.visibility is Visibility.PUBLIC},
        )
        return Roster({name: cached.card for name, cached in known.items()}, space, digest)

    def _look_at_cards(self, connection: Connection) -> dict[str, "_CachedCard"]:
        """Return all cards, by id. Unchanged ones are not read again."""
        hashes = specialist_rows.content_hashes(connection)
        cards = {name: self._known[name] for name in hashes if name in self._known}
        changed = [name for name, content in hashes.items() if name not in cards or cards[name].content != content]
        if changed:
            ids = None if len(changed) > _MANY else changed
            for registered in specialist_rows.seen(connection, ids=ids):
                cards[registered.card.id] = self._cached_card(registered.card, hashes[registered.card.id])
        return {name: cards[name] for name in sorted(cards)}

    def _cached_card(self, card: Card, content: str) -> "_CachedCard":
        profile = profile_of(card)
        if self._calibration.as_one:
            profile = profile.as_one
        return _CachedCard(content, card, profile, {text_hash(text): text for text in profile.texts})
