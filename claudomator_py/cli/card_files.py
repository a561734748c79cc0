"""Card files and addresses of cards named on the command line."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import urlsplit

import typer

from claudomator_py.cli.output import error, note
from claudomator_py.domain.card import WAYS_ON, Card
from claudomator_py.domain.errors import Problem, shown
from claudomator_py.domain.remote import is_loopback

STDIN = Path("-")
WELL_KNOWN: Final = "/.well-known/agent-card.json"
MOST_BYTES: Final = 1024 * 1024
"""Of a card that is fetched."""
FETCH_S: Final = 10.0


def read(path: Path) -> list[Card]:
    """The cards in that file; ``-`` is stdin. Raises Exit where it has a problem, and says which."""
    name, data = _content(path)
    return _cards(name, data, path)


def read_any(source: str, secret: str | None) -> list[Card]:
    """The cards in a file, or at an address: ours, or one of A2A. secret: see ``a2a_card.read_a2a``. Raises Exit where
    it has a problem, and says which."""
    from claudomator_py.schema.a2a_card import is_a2a, read_a2a

    fetched = source.startswith(("https://", "http://"))
    path = Path("fetched.json") if fetched else Path(source)
    name, data = (source, _fetched(source)) if fetched else _content(path)
    document = _object_in(data)
    if document is None or not is_a2a(document):
        return _cards(name, data, path)
    found = read_a2a(document, secret=secret)
    if not isinstance(found, Card):
        _refuse(name, found)
    return [found]


def in_order(cards: Sequence[Card]) -> list[Card]:
    """Whom a card names before the card that names it, since it is refused while there is no such specialist. Cards
    that name each other stay as they are."""
    named = {card.id: card for card in reversed(cards)}
    found: dict[int, Card] = {}

    def take(card: Card, behind: frozenset[str]) -> None:
        for field in WAYS_ON:
            other = named.get(getattr(card, field) or "")
            if other is not None and other.id not in behind and id(other) not in found:
                take(other, behind | {other.id})
        found.setdefault(id(card), card)

    for card in cards:
        take(card, frozenset({card.id}))
    return list(found.values())


def _content(path: Path) -> tuple[str, bytes]:
    name = "stdin" if path == STDIN else str(path)
    try:
        return name, sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
    except OSError as failure:
        raise typer.BadParameter(f"{shown(name)} cannot be read: {failure.strerror or failure}") from None


def _cards(name: str, data: bytes, path: Path) -> list[Card]:
    from claudomator_py.schema.cardfile import parse_card_file

    found = parse_card_file(data, "stdin.yaml" if path == STDIN else path.name)
    if found.problems:
        _refuse(name, found.problems)
    return list(found.cards)


def _refuse(name: str, problems: Sequence[Problem]) -> NoReturn:
    for problem in problems:
        note(problem.render(os.fsencode(name).decode(errors="backslashreplace")))
    error("No specialist was registered.", "Fix the listed problems and retry.")
    raise typer.Exit(1)


def _object_in(data: bytes) -> dict[str, Any] | None:
    """None: it is no JSON, or no object."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _fetched(url: str) -> bytes:
    """What is at that address, or in the place below it where A2A has cards. Raises BadParameter."""
    import httpx

    parts = urlsplit(url)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise typer.BadParameter(f"{shown(url)} would be fetched unencrypted; http:// is for this machine alone")
    if not parts.path.endswith(".json"):
        url = url.rstrip("/") + WELL_KNOWN
    try:
        with (
            httpx.Client(timeout=FETCH_S, follow_redirects=False, trust_env=False) as client,
            client.stream("GET", url, headers={"Accept": "application/json"}) as response,
        ):
            if response.status_code != httpx.codes.OK:
                raise typer.BadParameter(f"{shown(url)} answered {response.status_code}")
            data = bytearray()
            for piece in response.iter_bytes():
                data += piece
                if len(data) > MOST_BYTES:
                    raise typer.BadParameter(f"{shown(url)} has more than {MOST_BYTES:,} bytes: that is not a card")
    except (httpx.HTTPError, httpx.InvalidURL) as failure:
        raise typer.BadParameter(f"{shown(url)} was not reached: {type(failure).__name__}") from None
    return bytes(data)
