"""The folders of specialists: card files become cards in the registry that follow them."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from claudomator_py.domain.card import Card, CardWarning
from claudomator_py.domain.errors import Problem, ServiceError, clause
from claudomator_py.domain.principal import INBOX, OPERATOR
from claudomator_py.log import get_logger
from claudomator_py.ports import Clock, EncoderFault
from claudomator_py.routing.oddities import duplicates, oddities
from claudomator_py.schema.cardfile import parse_card_file
from claudomator_py.schema.documents import ParsedFile
from claudomator_py.sources.inbox.ledger import FileFormat, FileRefused, FileStamp, InboxReading
from claudomator_py.store import specialist_rows
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.events import caused_by
from claudomator_py.tasks.specialists import register, remove, successor_problems

if TYPE_CHECKING:
    from claudomator_py.routing.space import Twin

log = get_logger("claudomator.specialists")

CARD_FILES = FileFormat(parse_card_file, "the specialists in it are as they were", "specialists")
_UNKNOWN = FileStamp(0, 0, 0)
_Reading = InboxReading[ParsedFile[Card]]


class CardIntake:
    """The ``Intake`` that registers the cards in files on behalf of the operator, each file whole or not at all. When a
    file disappears its cards are removed; an invalid file leaves them as they were.

    Stamps are not stored: at the start every file is read, and an unchanged file changes nothing.
    """

    def __init__(self, database: Database, clock: Clock, twins: "Callable[[str], Sequence[Twin]]") -> None:
        """twins: returns skills of others that nearly duplicate one of the card's; may raise StoreUnavailable,
        EncoderFault."""
        self._database = database
        self._clock = clock
        self._twins = twins
        self.was_planned = False

    def known_files(self) -> Mapping[str, FileStamp]:
        """See ``inbox.ledger.Intake``. No file has this stamp, so each one is read, and missing ones are noticed."""
        return dict.fromkeys(self._database.read(specialist_rows.files), _UNKNOWN)

    def take(self, readings: Sequence[_Reading]) -> Sequence[Sequence[Problem]]:
        refused = self._database.read(lambda connection: _sent_nowhere(connection, readings))
        beside = {card.id for card in _cards_of([reading for reading in readings if reading.path not in refused])}
        problems = [refused.get(reading.path) or self._take(reading, beside) for reading in readings]
        # Only when all are registered, as cards in one file name those in another.
        self._warn([reading for reading, wrong in zip(readings, problems, strict=True) if not wrong])
        return problems

    def _take(self, reading: _Reading, beside: Collection[str]) -> Sequence[Problem]:
        def transaction(connection: Connection) -> None:
            now_ms = self._clock()
            if reading.renamed_from is not None:
                for registration in specialist_rows.of_file(connection, reading.renamed_from):
                    specialist_rows.change(connection, registration.card.id, file_path=reading.path)
            for card in reading.parsed.items:
                try:
                    register(
                        connection,
                        card,
                        OPERATOR,
                        now_ms,
                        source="file",
                        file_path=reading.path,
                        registered_with=beside,
                    )
                except ServiceError as refused:
                    problems = refused.problems or [_problem(card.id, refused)]
                    raise FileRefused([reading.parsed.located(card, problem) for problem in problems]) from None
            here = {card.id for card in reading.parsed.items}
            for registration in specialist_rows.of_file(connection, reading.path):
                if registration.card.id not in here:
                    remove(connection, registration.card.id, OPERATOR, now_ms, file_path=reading.path)

        try:
            self._database.write(caused_by(INBOX.id, transaction))
        except FileRefused as refused:
            return refused.problems
        log.info("cards_read", file=reading.path, specialists=", ".join(card.id for card in reading.parsed.items))
        return []

    def _warn(self, readings: Sequence[_Reading]) -> None:
        """Log oddities of the cards."""
        if not readings:
            return
        cards = {registration.card.id: registration.card for registration in self._database.read(specialist_rows.seen)}
        for reading in readings:
            for card in reading.parsed.items:
                for odd in [*oddities(card, cards), *self._duplicates(card, cards)]:
                    log.warning("odd_card", file=reading.path, specialist=card.id, note=odd.text)

    def _duplicates(self, card: Card, cards: Mapping[str, Card]) -> Sequence[CardWarning]:
        try:
            return duplicates(self._twins(card.id), cards)
        except (EncoderFault, StoreUnavailable) as fault:
            log.warning("skills_not_compared", specialist=card.id, problem=str(fault))
            return ()

    def gone(self, paths: Sequence[str]) -> None:

        def transaction(connection: Connection) -> None:
            now_ms = self._clock()
            for path in paths:
                for registration in specialist_rows.of_file(connection, path):
                    remove(connection, registration.card.id, OPERATOR, now_ms, file_path=path)

        self._database.write(caused_by(INBOX.id, transaction))

    def archived(self, paths: Sequence[str]) -> None:
        """See ``inbox.ledger.Intake``. A card follows its file in place, and nothing is moved away."""


def _cards_of(readings: Iterable[_Reading]) -> list[Card]:
    return [card for reading in readings for card in reading.parsed.items]


def _sent_nowhere(connection: Connection, readings: Sequence[_Reading]) -> Mapping[str, Sequence[Problem]]:
    """Files, by path, whose cards name a specialist that is neither registered nor among the other valid cards. So the
    order in which files are read does not matter, and cards may name each other."""
    refused: dict[str, Sequence[Problem]] = {}
    while True:
        good = [reading for reading in readings if reading.path not in refused]
        beside = {card.id for card in _cards_of(good)}
        cards = {
            reading.path: [
                reading.parsed.located(card, problem)
                for card in reading.parsed.items
                for problem in successor_problems(connection, card, OPERATOR, beside)
            ]
            for reading in good
        }
        if not any(cards.values()):
            return refused
        refused |= {path: problems for path, problems in cards.items() if problems}


def _problem(specialist_id: str, refused: ServiceError) -> Problem:
    message = f"{clause(refused.detail)} ({specialist_id})"
    return Problem(field="id", message=message, remedy=clause(refused.remedy or "choose another id"))
