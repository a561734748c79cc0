"""The specialists as an encoder sees them, kept until a card changes."""

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from sqlalchemy import Connection

from claudomator_py.dispatch.learned import LearnedRouting, LearnedWeights
from claudomator_py.dispatch.text_vectors import TextVectors, encoded
from claudomator_py.domain.card import Card, Visibility
from claudomator_py.domain.encoder import Encoder, EncoderFault
from claudomator_py.ports import Clock
from claudomator_py.routing.calibration import Calibration
from claudomator_py.routing.oddities import NEARLY
from claudomator_py.routing.profile import Likeness, Profile, Request, profile_of, text_hash
from claudomator_py.store import specialist_rows
from claudomator_py.store.database import Database
from claudomator_py.store.full_text import Found
from claudomator_py.values import dataclass

if TYPE_CHECKING:
    from claudomator_py.domain.vectors import Vector
    from claudomator_py.routing.space import Space, Twin


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
