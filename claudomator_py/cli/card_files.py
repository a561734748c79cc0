"""Card files and addresses of cards named on the command line."""

import errno
import json
import os
import socket
import ssl
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn
from urllib.parse import urlsplit

import typer

from claudomator_py.cli.output import error, note
from claudomator_py.domain.card import WAYS_ON, Card
from claudomator_py.domain.errors import Problem, shown
from claudomator_py.domain.remote import is_loopback
from claudomator_py.values import regex

if TYPE_CHECKING:
    import httpx

STDIN = Path("-")
MAX_BYTES: Final = 1024 * 1024
"""Of a card that is fetched."""
FETCH_S: Final = 30.0
"""In all, until a card is there."""
_SCHEME: Final = regex(r"[A-Za-z][A-Za-z0-9+.-]*://")
_REFUSALS: Final = {
    errno.ECONNREFUSED: "nothing listens there",
    errno.ECONNRESET: "it ended the connection",
    errno.EPIPE: "it ended the connection",
    errno.ENETUNREACH: "there is no way to its network; check the network",
    errno.EHOSTUNREACH: "there is no way to that host; check the network",
    errno.ETIMEDOUT: "it does not answer",
}
_LACKS_AUTHORITY: Final = frozenset({2, 18, 19, 20, 21})
"""The codes of OpenSSL for a certificate whose authority is not known."""


def read(path: Path) -> list[Card]:
    """Return the cards in that file; ``-`` is stdin. Raises Exit where it has a problem, and says which."""
    name, data = _content(path)
    return _cards(name, data, path)


class ReadCard(NamedTuple):
    """A card from a file or an address. is_named: whether it says its id itself, and not only a name."""

    card: Card
    is_named: bool = True
    is_fetched: bool = False


def read_any(source: str, secret: str | None) -> list[ReadCard]:
    """Return the cards in a file, or at an address: ours, or one of A2A. secret: see ``a2a_card.read_a2a``. Raises Exit
    where it has a problem, and says which."""
    from claudomator_py.schema.a2a_card import (
        has_own_id,
        is_a2a,
        is_written_for_a2a,
        read_a2a,
        unreachable,
        unread_keys,
        with_protocol,
        with_whole_addresses,
    )

    address = _card_address(source) if _SCHEME.match(source) else None
    path = Path(source) if address is None else Path("fetched.json")
    name, data = _content(path) if address is None else (source, _fetched(address))
    document = _object_in(data)
    if address is not None and document is None:
        begins = (
            f"what it sent begins with `{shown(text)}`" if (text := data[:40].decode(errors="replace").strip()) else ""
        )
        raise typer.BadParameter(f"there is no card at {_plain(address)}: {begins or 'it sent nothing'}")
    if document is None or not is_a2a(document):
        cards = _cards(name, data, path)
        if address is not None:
            for card in cards:
                _sends_nothing_unasked(name, card, address, secret)
        return [ReadCard(card, is_fetched=address is not None) for card in cards]
    if address is not None:
        document = with_whole_addresses(document, address)
    if is_written_for_a2a(document) and (problems := unreachable(document)):
        _refuse(name, problems)
    found = read_a2a(document, secret=secret)
    if not isinstance(found, Card):
        _refuse(name, found)
    if unread := unread_keys(document):
        named = ", ".join(f"`{shown(key)}`" for key in unread)
        note(f"{shown(name)}: kept, and not applied, as neither A2A nor Claudomator knows it: {named}.")
    if address is not None:
        _sends_nothing_unasked(name, found, address, secret)
    return [ReadCard(with_protocol(found, document, address), has_own_id(document), address is not None)]


def _sends_nothing_unasked(source: str, card: Card, address: str, secret: str | None) -> None:
    """Raises Exit where the card that was fetched there names a secret of this machine's by itself, or has one sent to
    another host."""
    named = card.authentication.secret
    if named is not None and named != secret:
        message = f"names the variable {shown(named)} of this machine, whose value would be sent to its agent"
        remedy = "use --secret, or save the card, and import the file if that is meant"
        _refuse(source, [Problem(field="authentication.secret", message=message, remedy=remedy)])
    if card.url is not None and _origin(card.url) != _origin(address):
        _elsewhere(source, card.url, named)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    """Scheme, host and port."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"https": 443, "http": 80}.get(parts.scheme)


def _elsewhere(source: str, url: str, secret: str | None) -> None:
    """Tell of a card whose agent is on another host than the card: tasks would go there. Raises Exit where a secret
    would as well."""
    if secret is None:
        note(f"{shown(source)}: its agent is on another host, {shown(url)}: tasks go there.")
        return
    message = f"names another host, `{shown(url)}`, where the secret {secret} would be sent"
    remedy = "save the card, and import the file if that is meant"
    _refuse(source, [Problem(field="url", message=message, remedy=remedy)])


def in_order(cards: Sequence[Card]) -> list[Card]:
    """Return whom a card names before the card that names it, since it is refused while there is no such specialist.
    Cards that name each other stay as they are."""
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


def _card_address(url: str) -> str:
    """That address, or the place below it where A2A has cards. Raises BadParameter."""
    from claudomator_py.schema.a2a_card import WELL_KNOWN

    try:
        given = urlsplit(url)
        is_address = bool(given.hostname) and given.port != 0 and given.scheme in ("https", "http")
    except ValueError:  # of brackets, or a port that is no number, or too large
        is_address = False
    if not is_address:
        raise typer.BadParameter(f"{shown(url)} is no address of a card; write https://HOST, or the file's path")
    parts = urlsplit(url)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise typer.BadParameter(f"{_plain(url)} would be fetched unencrypted; http:// is for this machine alone")
    return url if parts.path.endswith(".json") else url.rstrip("/") + WELL_KNOWN


def _fetched(url: str) -> bytes:
    """What is at that address. Raises BadParameter."""
    import httpx

    from claudomator_py.outgoing import client

    # As runs do: what the machine trusts, or SSL_CERT_FILE says. No proxy and no other setting of the environment.
    trusted, data = ssl.create_default_context(), bytearray()
    try:
        with (
            client(FETCH_S, verify=trusted) as asking,
            asking.stream("GET", url, headers={"Accept": "application/json"}) as response,
        ):
            if response.status_code != httpx.codes.OK:
                raise typer.BadParameter(f"{_plain(url)} answered {_status(response)}")
            for piece in response.iter_bytes():
                data += piece
                if len(data) > MAX_BYTES:
                    raise typer.BadParameter(f"{_plain(url)} has more than {MAX_BYTES:,} bytes: that is not a card")
        return bytes(data)
    except httpx.TimeoutException:
        raise typer.BadParameter(f"{_plain(url)} did not send its card within {FETCH_S:.0f} s") from None
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as failure:
        raise typer.BadParameter(f"{_plain(url)} was not reached: {_why(failure)}") from None


def _plain(url: str) -> str:
    """The address for people, without a password that it may hold."""
    parts = urlsplit(url)
    return shown(parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl())


def _status(response: "httpx.Response") -> str:
    """The status of an answer that is no card, and what to do."""
    status = response.status_code
    if response.has_redirect_location:
        return f"{status}: import {shown(response.headers['location'])} if that is meant"
    if status in (401, 403):
        return f"{status}: fetch the card with your login, and import the file"
    return f"{status}: there is no card; name the address of one" if status in (404, 410) else str(status)


def _why(failure: BaseException) -> str:
    """What has kept a request from being answered, in words."""
    cause: BaseException | None = failure
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _distrust(cause)
        if isinstance(cause, ssl.SSLError):
            return f"no encrypted connection came about ({cause.reason or cause}); check the port, or that it is https"
        if isinstance(cause, socket.gaierror):
            unknown = cause.errno in (socket.EAI_NONAME, socket.EAI_NODATA)
            return "there is no host of that name" if unknown else "its name could not be looked up; check the network"
        if isinstance(cause, UnicodeError):
            return "that is not the name of a host"
        if isinstance(cause, OSError) and (words := _REFUSALS.get(cause.errno or 0)) is not None:
            return words
        cause = cause.__cause__ or cause.__context__
    return shown(str(failure)) or "it ended the connection"


def _distrust(refused: ssl.SSLCertVerificationError) -> str:
    """Why its certificate is refused, and what helps where an authority is what lacks."""
    said = f"its certificate is not trusted ({refused.verify_message})"
    if refused.verify_code not in _LACKS_AUTHORITY:
        return said
    named = os.environ.get("SSL_CERT_FILE")
    if not named:
        return f"{said}; name its authority in SSL_CERT_FILE"
    lacks = "does not have its authority" if Path(named).is_file() else "is not there"
    return f"{said}; the file that SSL_CERT_FILE names {lacks}: {shown(named)}"
