"""What was learned from earlier decisions, as the next one takes it into account: read again when it has changed."""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection

from claudomator_py.dispatch.text_vectors import encoded
from claudomator_py.domain.encoder import Encoder
from claudomator_py.domain.task import TaskSpec
from claudomator_py.routing.calibration import Calibration
from claudomator_py.routing.lessons import Lesson, Lessons, SpecialistStats, Standings, Votes
from claudomator_py.routing.profile import Request
from claudomator_py.routing.ranking import NO_VOTES
from claudomator_py.store import learning_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import Label
from claudomator_py.values import dataclass

if TYPE_CHECKING:
    from claudomator_py.domain.vectors import Vector
    from claudomator_py.routing.space import Space

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
