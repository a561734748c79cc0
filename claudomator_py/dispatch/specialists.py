"""The specialists as an encoder sees them, kept until a card changes."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from sqlalchemy import Connection

from claudomator_py.domain.card import Card, Visibility
from claudomator_py.domain.encoder import Encoder, EncoderFault
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import DAY_MS
from claudomator_py.ports import Clock
from claudomator_py.routing.calibration import Calibration
from claudomator_py.routing.lessons import Lesson, Lessons, SpecialistStats, Standings, Votes
from claudomator_py.routing.oddities import NEARLY
from claudomator_py.routing.profile import Likeness, Profile, Request, profile_of, text_hash
from claudomator_py.routing.ranking import NO_VOTES
from claudomator_py.store import embedding_rows, learning_rows, specialist_rows
from claudomator_py.store.database import Database
from claudomator_py.store.full_text import Found
from claudomator_py.store.tables import Label
from claudomator_py.values import dataclass

if TYPE_CHECKING:
    from claudomator_py.domain.vectors import Vector
    from claudomator_py.routing.space import Row, Space, Twin

MAX_EXAMPLES: Final = 300
"""Overrides, and tasks that were right as they were, that are remembered: the newest of each."""
_ORGANISATIONS: Final = 20
"""Whose is kept in memory."""


@dataclass(frozen=True, slots=True)
class LearnedWeights:
    """For one organisation."""

    standings: Standings
    lessons: Lessons | None
    """None: no operator has corrected anything."""
    space: "Space"
    """Where those are."""

    def votes(self, task: "Vector", now_ms: int) -> Votes:
        """Return what earlier tasks that are like it say of each specialist, see ``Lessons.votes``. task: its
        vector."""
        return NO_VOTES if self.lessons is None else self.lessons.votes(self.space.placed([task])[0], now_ms)


@dataclass(frozen=True, slots=True)
class _Read:
    standings: Standings
    lessons: tuple[Lesson, ...]


class LearnedRouting:
    """What one encoder makes of it. Safe to use from any thread."""

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
        """Return what was learned, for each of them; None: for the tasks that belong to none. Raises StoreUnavailable,
        EncoderFault."""
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
            (one.specialist, one.topic): SpecialistStats(one.performance, one.last_success_ms)
            for one in learning_rows.standings(connection, organisation)
        }
        if not self._calibration.learned:
            return _Read(standings, ())
        labels = list(learning_rows.overrides(connection, organisation, MAX_EXAMPLES))
        if labels:  # else there is nothing that what was right could be weighed against
            labels += learning_rows.confirmations(connection, organisation, MAX_EXAMPLES)
        specs = learning_rows.specs(connection, labels)
        lessons = (_lesson(one, specs[one.decision_id]) for one in labels if one.decision_id in specs)
        return _Read(standings, tuple(lessons))

    def _learned(self, organisation: str, read: _Read, space: "Space") -> LearnedWeights:
        if not read.lessons:
            return LearnedWeights(read.standings, None, space)
        if organisation not in self._lessons:
            rows = space.placed(self._encoded(organisation, [one.text for one in read.lessons]))
            self._lessons[organisation] = Lessons(read.lessons, rows, self._calibration.alike)
        return LearnedWeights(read.standings, self._lessons[organisation], space)

    def _encoded(self, organisation: str, texts: Sequence[str]) -> "list[Vector]":
        """The vectors of these texts; of those that were there before, none is made again."""
        width = self._encoder.dimensions
        there = {text: one for text, one in self._vectors.get(organisation, {}).items() if width in (0, len(one))}
        missing = list(dict.fromkeys(text for text in texts if text not in there))
        made = dict(zip(missing, encoded(self._encoder, missing) if missing else (), strict=True))
        self._vectors[organisation] = {text: made[text] if text in made else there[text] for text in texts}
        return [self._vectors[organisation][text] for text in texts]


def _lesson(label: Label, spec: dict[str, object]) -> Lesson:
    text = Request.of(TaskSpec.model_validate(spec)).compared
    return Lesson(text, label.specialist, label.wanted, label.at_ms)


_BATCH_SIZE: Final = 256
"""Texts that are encoded in one go, as their vectors take much room until their zeros are left out."""
_TELLING: Final = 8
"""Texts of one go that no encoder of any use has one vector for; two may differ in case alone."""
KEPT_MS: Final = 7 * DAY_MS
"""How old the row of a text that no card has must be to go: what is taken back next day is not encoded again."""


def encoded(encoder: Encoder, texts: "Sequence[str]") -> "Vector":
    """Return a row for each text. Raises EncoderFault, for rows that tell nothing as well."""
    rows = encoder.encode(texts)
    if not encoder.immediate:  # Counts of features may well be none.
        if not rows.any(axis=1).all():
            raise EncoderFault("it has vectors of no length")
        if len(rows) >= _TELLING and (rows == rows[0]).all():
            raise EncoderFault("it has the same vector for different texts")
    return rows


class TextVectors:
    """Those of one encoder: in memory, and in rows where it takes its time. Not safe to use from several threads.

    Counts of features are kept without their zeros: a text has some hundred features of thousands.
    """

    def __init__(self, database: Database, encoder: Encoder, clock: Clock, *, keeps: bool = True) -> None:
        """keeps: whether rows are written, and those of no use removed."""
        self._database = database
        self._encoder = encoder
        self._clock = clock
        self._keeps = keeps and not encoder.immediate
        self._there: dict[str, Row] = {}

    def of(self, texts: Mapping[str, str]) -> "Mapping[str, Row]":
        """Return the vectors by hash of their text; those that are not there are made. texts: all that cards have, by
        hash: what else was there is let go of. Raises StoreUnavailable, EncoderFault."""
        there = self._fitting({digest: self._there[digest] for digest in texts if digest in self._there})
        missing = [digest for digest in texts if digest not in there]
        if missing and not self._encoder.immediate:
            kept = self._database.read(lambda connection: embedding_rows.kept(connection, self._encoder.id, missing))
            there |= self._fitting(kept)
            missing = [digest for digest in missing if digest not in there]
        if missing:
            made = self._made(texts, missing)
            there = self._fitting(there) | made
            if narrower := [digest for digest in texts if digest not in there]:
                there |= self._made(texts, narrower)
        if len(there) < len(self._there) or missing:
            self._let_go(texts)
        self._there = there
        return there

    def _made(self, texts: Mapping[str, str], digests: "Sequence[str]") -> "dict[str, Row]":
        """Raises StoreUnavailable, EncoderFault."""
        found: dict[str, Row] = {}
        for start in range(0, len(digests), _BATCH_SIZE):
            some = digests[start : start + _BATCH_SIZE]
            rows = encoded(self._encoder, [texts[digest] for digest in some])
            found |= self._kept(dict(zip(some, rows, strict=True)))
        return found

    def _fitting(self, there: "Mapping[str, Row]") -> "dict[str, Row]":
        """Those as wide as what the encoder gives now: a server may have another model under the same name."""
        width = self._encoder.dimensions
        return {digest: found for digest, found in there.items() if width in (0, len(found))}

    def _kept(self, made: "Mapping[str, Vector]") -> "dict[str, Row]":
        from claudomator_py.routing.sparse import SparseRow  # numpy is for whoever compares

        if self._keeps:
            now_ms = self._clock()
            self._database.write(lambda connection: embedding_rows.keep(connection, self._encoder.id, made, now_ms))
        return {
            digest: SparseRow.of(row) if self._encoder.weighs_rarity else row.copy() for digest, row in made.items()
        }

    def _let_go(self, texts: Mapping[str, str]) -> None:
        """Of rows whose texts no card has, whichever encoder made them."""
        if not self._keeps:
            return
        before_ms = self._clock() - KEPT_MS
        old = self._database.read(lambda connection: embedding_rows.made_before(connection, before_ms))
        unused = [digest for digest in old if digest not in texts]
        if unused:
            self._database.write(lambda connection: embedding_rows.drop(connection, unused))


T = TypeVar("T")
_MANY: Final = 100
"""Cards that have changed, beyond which all are read."""


@dataclass(frozen=True, slots=True)
class Roster:
    """Who there is, whoever sees them."""

    cards: dict[str, Card]
    """By id."""
    space: "Space"
    registry_hash: str


@dataclass(frozen=True, slots=True)
class _CachedCard:
    """A card as it was read last."""

    content: str
    """Its hash."""
    card: Card
    profile: Profile
    texts: dict[str, str]
    """What it is compared by, by hash."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A task beside all cards."""

    likeness: Mapping[str, Likeness]
    """To each card, by id."""
    task: "Vector"
    """All of its text."""


class _OtherWidth(EncoderFault):
    """What an encoder gives is as wide as nothing that it gave before."""


class SpecialistDirectory:
    """All cards, with the vectors of their texts. Safe to use from any thread.

    calibration: says what of a card is compared. keeps: whether vectors that took their time are written down.
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
        """By which it compares."""
        return self._encoder

    def roster(self, digest: str | None = None) -> Roster:
        """Return the cards as they are now; what has changed is encoded first. digest: the registry's hash, for whoever
        has just read it. Raises StoreUnavailable, EncoderFault."""
        with self._lock:
            current = self._database.read(specialist_rows.registry_hash) if digest is None else digest
            if self._roster is None or self._roster.registry_hash != current:
                self._roster = None  # two of them, and what the new one is made of, would be there at once
                self._roster = self._read(current)
            return self._roster

    def look(
        self, requests: Sequence[Request], organisations: Sequence[str | None], digest: str | None
    ) -> tuple[Roster, list[Comparison], Mapping[str | None, LearnedWeights]]:
        """Return each task beside all cards, and what was learned from earlier ones. See ``roster``, ``compare`` and
        ``learned``."""
        return self._of_cards(
            digest, lambda roster: (roster, self.compare(roster, requests), self.learned(roster, organisations))
        )

    def compare(self, roster: Roster, requests: Sequence[Request]) -> list[Comparison]:
        """Return how alike each task is to each card. Raises EncoderFault."""
        texts = [request.compared for request in requests]
        vectors = encoded(self._encoder, texts) if texts else ()
        return [Comparison(self._compared(partial(roster.space.likeness, one)), one) for one in vectors]

    def learned(self, roster: Roster, organisations: Sequence[str | None]) -> Mapping[str | None, LearnedWeights]:
        """Return what was learned from earlier decisions on the tasks of each organisation; None: of those that belong
        to none. Raises StoreUnavailable, EncoderFault."""
        return self._compared(partial(self._learned.of, organisations, roster.space))

    def cosines(self, query: str) -> dict[Found, float]:
        """Return how alike a query is to each skill, and to what each card says as a whole. Raises StoreUnavailable,
        EncoderFault."""
        (vector,) = encoded(self._encoder, [query])
        return self._of_cards(None, lambda roster: self._compared(partial(roster.space.cosines, vector)))

    def twins(self, specialist_id: str) -> "Sequence[Twin]":
        """Return skills of others, whoever sees them, that are nearly one of that specialist's. Raises
        StoreUnavailable, EncoderFault."""
        return self.roster().space.twins(specialist_id, NEARLY)

    def _of_cards(self, digest: str | None, use: Callable[[Roster], T]) -> T:
        """Return what is made of the cards. Where a server has another model by now, their vectors are made again."""
        try:
            return use(self.roster(digest))
        except _OtherWidth:
            return use(self.roster(digest))

    def _compared(self, compare: Callable[[], T]) -> T:
        """Raises EncoderFault where vectors cannot be compared; those of the cards are made again by the next look."""
        try:
            return compare()
        except ValueError:
            with self._lock:
                self._roster = None
            raise _OtherWidth("its vectors are of another width than before") from None

    def _read(self, digest: str) -> Roster:
        from claudomator_py.routing.space import Space  # numpy is for whoever compares

        known = self._known = self._database.read(self._look_at_cards)
        space = Space(
            [one.profile for one in known.values()],
            self._vectors.of({digest: text for one in known.values() for digest, text in one.texts.items()}),
            weighs_rarity=self._encoder.weighs_rarity,
            own_share=self._calibration.own_share,
            card_share=self._calibration.card_share,
            counted={name for name, one in known.items() if one.card.visibility is Visibility.PUBLIC},
        )
        return Roster({name: one.card for name, one in known.items()}, space, digest)

    def _look_at_cards(self, connection: Connection) -> dict[str, "_CachedCard"]:
        """All cards, by id; of those that were known before, none is read again."""
        hashes = specialist_rows.content_hashes(connection)
        found = {name: self._known[name] for name in hashes if name in self._known}
        changed = [name for name, content in hashes.items() if name not in found or found[name].content != content]
        if changed:
            some = None if len(changed) > _MANY else changed
            for one in specialist_rows.seen(connection, ids=some):
                found[one.card.id] = self._seen(one.card, hashes[one.card.id])
        return {name: found[name] for name in sorted(found)}

    def _seen(self, card: Card, content: str) -> "_CachedCard":
        profile = profile_of(card)
        if self._calibration.as_one:
            profile = profile.as_one
        return _CachedCard(content, card, profile, {text_hash(text): text for text in profile.texts})
