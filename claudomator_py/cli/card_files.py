"""Cards from files and addresses named on the command line."""

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

from claudomator_py.certificates import certificate_problem
from claudomator_py.cli.output import error, note
from claudomator_py.cli.task_files import readable_path
from claudomator_py.domain.card import SUCCESSOR_FIELDS, Card
from claudomator_py.domain.errors import Problem, shown
from claudomator_py.domain.remote import is_loopback
from claudomator_py.values import regex

if TYPE_CHECKING:
    import httpx

STDIN = Path("-")
MAX_BYTES: Final = 1024 * 1024
"""Maximum size of a fetched card."""
FETCH_S: Final = 30.0
"""Time limit for fetching a card."""
_SCHEME: Final = regex(r"[A-Za-z][A-Za-z0-9+.-]*://")
_REFUSALS: Final = {
    errno.ECONNREFUSED: "nothing listens there",
    errno.ECONNRESET: "it closed the connection",
    errno.EPIPE: "it closed the connection",
    errno.ENETUNREACH: "its network is unreachable; check the network",
    errno.EHOSTUNREACH: "the host is unreachable; check the network",
    errno.ETIMEDOUT: "it does not answer",
}
_LACKS_AUTHORITY: Final = frozenset({2, 18, 19, 20, 21})
"""OpenSSL's codes for a certificate whose authority is unknown."""


def read(path: Path) -> list[Card]:
    """Return the cards in a file; ``-`` is stdin. Raises Exit, after printing the problems, if there are any."""
    name, data = _content(path)
    return _cards(name, data, path)


class ReadCard(NamedTuple):
    """A card from a file or an address. is_named: whether it gives its id itself, not only a name."""

    card: Card
    is_named: bool = True
    is_fetched: bool = False


def read_any(source: str, secret: str | None) -> list[ReadCard]:
    """Return the cards in a file or at an address, in Claudomator's form or A2A's. secret: see ``a2a_card.read_a2a``.
    Raises Exit, after printing the problems, if there are any."""
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
            f"the answer begins with `{shown(text)}`" if (text := data[:40].decode(errors="replace").strip()) else ""
        )
        raise typer.BadParameter(f"there is no card at {_plain(address)}: {begins or 'the answer is empty'}")
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
    a2a = read_a2a(document, secret=secret)
    if not isinstance(a2a, Card):
        _refuse(name, a2a)
    if unread := unread_keys(document):
        named = ", ".join(f"`{shown(key)}`" for key in unread)
        note(f"{shown(name)}: kept but not applied, as neither A2A nor Claudomator knows it: {named}.")
    if address is not None:
        _sends_nothing_unasked(name, a2a, address, secret)
    return [ReadCard(with_protocol(a2a, document, address), has_own_id(document), address is not None)]


def _sends_nothing_unasked(source: str, card: Card, address: str, secret: str | None) -> None:
    """Raise Exit if the fetched card names a secret of this machine itself, or would have one sent to another host."""
    named = card.authentication.secret
    if named is not None and named != secret:
        message = f"names the variable {shown(named)} of this machine, whose value would be sent to its agent"
        remedy = "use --secret, or save the card, and import the file if that is meant"
        _refuse(source, [Problem(field="authentication.secret", message=message, remedy=remedy)])
    if card.url is not None and _origin(card.url) != _origin(address):
        _elsewhere(source, card.url, named)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    """Return scheme, host and port."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"https": 443, "http": 80}.get(parts.scheme)


def _elsewhere(source: str, url: str, secret: str | None) -> None:
    """Note that the card's agent, and so its tasks, are on another host than the card. Raises Exit if a secret would be
    sent there as well."""
    if secret is None:
        note(f"{shown(source)}: its agent is on another host, {shown(url)}; tasks are sent there.")
        return
    message = f"names another host, `{shown(url)}`, where the secret {secret} would be sent"
    remedy = "save the card, and import the file if that is meant"
    _refuse(source, [Problem(field="url", message=message, remedy=remedy)])


def in_order(cards: Sequence[Card]) -> list[Card]:
    """Return the cards so that those a card names come before it, since it would be refused without them. Cards that
    name each other keep their order."""
    named = {card.id: card for card in reversed(cards)}
    cards_by_line: dict[int, Card] = {}

    def take(card: Card, behind: frozenset[str]) -> None:
        for field in SUCCESSOR_FIELDS:
            other = named.get(getattr(card, field) or "")
            if other is not None and other.id not in behind and id(other) not in cards_by_line:
                take(other, behind | {other.id})
        cards_by_line.setdefault(id(card), card)

    for card in cards:
        take(card, frozenset({card.id}))
    return list(cards_by_line.values())


def _content(path: Path) -> tuple[str, bytes]:
    name = "stdin" if path == STDIN else str(path)
    try:
        return name, sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
    except OSError as failure:
        raise typer.BadParameter(f"{shown(name)} cannot be read: {failure.strerror or failure}") from None


def _cards(name: str, data: bytes, path: Path) -> list[Card]:
    from claudomator_py.schema.cardfile import parse_card_file

    card_file = parse_card_file(data, "stdin.yaml" if path == STDIN else path.name)
    if card_file.problems:
        _refuse(name, card_file.problems)
    return list(card_file.items)


def _refuse(name: str, problems: Sequence[Problem]) -> NoReturn:
    for problem in problems:
        note(problem.render(readable_path(name)))
    error("No specialist was registered.", "Fix the listed problems and retry.")
    raise typer.Exit(1)


def _object_in(data: bytes) -> dict[str, Any] | None:
    """Return the JSON object; None: it is not one."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _card_address(url: str) -> str:
    """Return the address of the card: the URL itself, or A2A's well-known path below it. Raises BadParameter."""
    from claudomator_py.schema.a2a_card import WELL_KNOWN

    try:
        given = urlsplit(url)
        is_address = bool(given.hostname) and given.port != 0 and given.scheme in ("https", "http")
    except ValueError:  # brackets, or an invalid port
        is_address = False
    if not is_address:
        raise typer.BadParameter(
            f"{shown(url)} is not the address of a card; write https://HOST, or the path of a file"
        )
    parts = urlsplit(url)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise typer.BadParameter(f"{_plain(url)} would be fetched unencrypted; use https, as http is for this machine")
    return url if parts.path.endswith(".json") else url.rstrip("/") + WELL_KNOWN


def _fetched(url: str) -> bytes:
    """Return what is at the address. Raises BadParameter."""
    import httpx

    from claudomator_py.outgoing import client

    # As for runs: the machine's certificates, or those in SSL_CERT_FILE; no proxy and no other environment variable.
    data = bytearray()
    try:
        with (
            client(FETCH_S, trusted=ssl.create_default_context) as asking,
            asking.stream("GET", url, headers={"Accept": "application/json"}) as response,
        ):
            if response.status_code != httpx.codes.OK:
                raise typer.BadParameter(f"{_plain(url)} answered {_status(response)}")
            for piece in response.iter_bytes():
                data += piece
                if len(data) > MAX_BYTES:
                    raise typer.BadParameter(f"{_plain(url)} has more than {MAX_BYTES:,} bytes, so it is not a card")
        return bytes(data)
    except httpx.TimeoutException:
        raise typer.BadParameter(f"{_plain(url)} did not send its card within {FETCH_S:.0f} s") from None
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as failure:
        raise typer.BadParameter(f"{_plain(url)} was not reached: {_why(failure)}") from None


def _plain(url: str) -> str:
    """Return the address for people, without its password."""
    parts = urlsplit(url)
    return shown(parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl())


def _status(response: "httpx.Response") -> str:
    """Return the status of an answer without a card, and the remedy."""
    status = response.status_code
    if response.has_redirect_location:
        return f"{status}: import {shown(response.headers['location'])} instead, if that is meant"
    if status in (401, 403):
        return f"{status}: fetch the card with your login, and import the file"
    return f"{status}: there is no card; name the address of one" if status in (404, 410) else str(status)


def _why(failure: BaseException) -> str:
    """Return why a request failed, in words."""
    cause: BaseException | None = failure
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _distrust(cause)
        if isinstance(cause, ssl.SSLError):
            return (
                f"no encrypted connection was possible ({cause.reason or cause}); check the port, and that it is https"
            )
        if isinstance(cause, socket.gaierror):
            unknown = cause.errno in (socket.EAI_NONAME, socket.EAI_NODATA)
            return "there is no such host" if unknown else "its name could not be looked up; check the network"
        if isinstance(cause, UnicodeError):
            return "that is not a host name"
        if isinstance(cause, OSError) and (words := _REFUSALS.get(cause.errno or 0)) is not None:
            return words
        cause = cause.__cause__ or cause.__context__
    return shown(str(failure)) or "it closed the connection"


def _distrust(refused: ssl.SSLCertVerificationError) -> str:
    """Return why the certificate is refused, and the remedy."""
    if refused.verify_code not in _LACKS_AUTHORITY:
        return f"its certificate {certificate_problem(refused)}"
    problem = f"its certificate is not trusted ({refused.verify_message})"
    named = os.environ.get("SSL_CERT_FILE")
    if not named:
        return f"{problem}; name its authority in SSL_CERT_FILE"
    lacks = "does not have its authority" if Path(named).is_file() else "does not exist"
    return f"{problem}; the file named in SSL_CERT_FILE {lacks}: {shown(named)}"
