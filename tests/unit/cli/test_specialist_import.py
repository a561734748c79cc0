"""Cards that come from elsewhere: fetched, imported, admitted."""

import json
import re
import shutil
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest
import typer

from claudomator_py.cli import card_files
from claudomator_py.domain.card import Card
from tests.fakes.command import Command
from tests.fakes.http_api import own_certificate
from tests.unit.cli.cards import named, told


@contextmanager
def card_server(answers: Mapping[str, tuple[int, object]], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """A host with these answers, by path; to everything else it says 404."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, document = answers.get(self.path, (404, {}))
            self.send_response(status)
            self.send_header("Location", "/bot/card.json")
            self.end_headers()
            with suppress(OSError):  # who has heard enough leaves
                self.wfile.write(json.dumps(document).encode())

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http{'' if tls is None else 's'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


A2A = {
    "name": "Docs Bot",
    "description": "Writes pages.",
    "version": "2.1",
    "supportedInterfaces": [
        {"url": "https://agents.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    ],
    "capabilities": {"streaming": True},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": [{"id": "pages", "name": "Pages", "description": "d", "tags": ["a"], "x-price": 3}],
    "securitySchemes": {"key": {"httpAuthSecurityScheme": {"scheme": "bearer"}}},
    "x-pricing": {"per_task": 1},
}


def test_an_a2a_card_is_imported_and_exported_without_a_loss(command: Command, cards: Path) -> None:
    path = command.home / "docs.json"
    path.write_text(json.dumps(A2A))

    done = command("specialists", "import", str(path), "--secret", "DOCS_TOKEN")

    assert done.returncode == 0, done.stderr
    assert "docs-bot" in done.stdout
    assert json.loads(command("specialists", "export", "docs-bot", "--a2a", "1.0").stdout) == A2A
    shown = json.loads(command("specialists", "show", "docs-bot", "-o", "json").stdout)
    assert shown["card"]["authentication"] == {"scheme": "bearer", "secret": "DOCS_TOKEN"}
    older = json.loads(command("specialists", "export", "docs-bot", "--a2a", "0.3").stdout)
    assert (older["url"], older["x-pricing"]) == ("https://agents.example/rpc", {"per_task": 1})
    as_file = command("specialists", "export", "docs-bot").stdout
    again = command.home / "again.yaml"
    again.write_text(as_file)
    assert command("specialists", "import", str(again)).returncode == 0
    assert json.loads(command("specialists", "export", "docs-bot", "--a2a", "1.0").stdout) == A2A


@pytest.mark.parametrize("name", ["C++ Reviewer", "C# Reviewer"])
def test_a_card_keeps_the_id_under_which_an_earlier_version_had_it(command: Command, tmp_path: Path, name: str) -> None:
    file, old = tmp_path / "a2a.json", tmp_path / "old.yaml"
    file.write_text(json.dumps({**A2A, "name": name}))
    fresh = command("specialists", "import", str(file), "-o", "json").stdout
    (made,) = json.loads(fresh)
    assert re.fullmatch(r"c-reviewer-[0-9a-f]{8}", made["id"])
    command("specialists", "remove", made["id"])
    card = {**made["card"], "id": "c-reviewer"}
    old.write_text(json.dumps({key: value for key, value in card.items() if value is not None}))
    assert command("specialists", "add", str(old)).returncode == 0
    (again,) = json.loads(command("specialists", "import", str(file), "-o", "json").stdout)
    assert again["id"] == "c-reviewer"


def test_keys_that_nobody_knows_are_named_at_import(command: Command, cards: Path) -> None:
    path = command.home / "card.json"
    path.write_text(json.dumps(A2A | {"private": True, "x-team": "docs"}))
    done = command("specialists", "import", str(path))
    path.write_text(json.dumps(A2A | {"name": "Other Bot", "visibel": "private"}))
    refused = command("specialists", "import", str(path))

    assert done.returncode == 0, done.stderr
    assert "kept but not applied, as neither A2A nor Claudomator knows it: `private`." in " ".join(done.stderr.split())
    assert refused.returncode == 1
    assert "visibel: is not a known key; did you mean `visibility`?" in " ".join(refused.stderr.split())
    assert [entry["id"] for entry in told(command, "specialists", "list")] == ["docs-bot"]


def test_a_card_is_fetched_from_where_a2a_has_it(command: Command, cards: Path) -> None:
    with card_server({"/bot/.well-known/agent-card.json": (200, A2A)}) as url:
        done = command("specialists", "import", f"{url}/bot/")

    assert done.returncode == 0, done.stderr
    assert "docs-bot" in done.stdout


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/none", "answered 404"),
        ("/moved/card.json", "answered 302"),
        ("/long/card.json", "so it is not a card"),
        ("/bad/card.json", "description: is empty"),
    ],
)
def test_what_is_no_card_is_refused_with_its_reason(command: Command, cards: Path, path: str, words: str) -> None:
    answers = {
        "/moved/card.json": (302, {}),
        "/long/card.json": (200, {"x": "x" * (1024 * 1024 + 1)}),
        "/bad/card.json": (200, A2A | {"description": ""}),
    }
    with card_server(answers) as url:
        done = command("specialists", "import", f"{url}{path}")

    assert done.returncode != 0
    assert words in " ".join(done.stderr.split())
    assert told(command, "specialists", "list") == []


def admitted(command: Command, name: str) -> bool:
    shown: dict[str, object] = json.loads(command("specialists", "show", name, "-o", "json").stdout)
    return shown["admitted_by"] is not None


@pytest.mark.parametrize("kind", ["A2A", "ours"])
def test_what_was_fetched_is_admitted_by_nobody_until_somebody_has_read_it(
    command: Command, cards: Path, kind: str
) -> None:
    ours = {"id": "docs-bot", "description": "Writes pages.", "permissions": {"mode": "acceptEdits"}}
    card = dict(A2A if kind == "A2A" else ours)
    saved = command.home / "card.json"
    with card_server({"/card.json": (200, card)}) as url:
        address = f"{url}/card.json"
        done = command("specialists", "import", address)
        assert done.returncode == 0, done.stderr
        assert "Read its card; then `claudomator specialists admit docs-bot`" in " ".join(done.stderr.split())
        assert not admitted(command, "docs-bot")
        command("specialists", "admit", "docs-bot")
        same = command("specialists", "import", address)
        assert "Read its card" not in same.stderr
        assert admitted(command, "docs-bot")
        card["description"] = "Writes pages, and reads what others ask for."
        assert "Read its card" in command("specialists", "import", address).stderr
        assert not admitted(command, "docs-bot")
        asked = command("specialists", "import", address, "--admit")
        assert (asked.returncode, "Read its card" in asked.stderr) == (0, False)
        assert admitted(command, "docs-bot")
        card["description"] = "Writes pages of any kind."
        command("specialists", "import", address)
        saved.write_text(json.dumps(card))
    assert not admitted(command, "docs-bot")
    assert command("specialists", "import", str(saved)).returncode == 0
    assert admitted(command, "docs-bot"), "a file is the administrator's own"


def test_a_secret_goes_to_no_other_host_than_the_card_came_from(command: Command, cards: Path) -> None:
    with card_server({"/.well-known/agent-card.json": (200, A2A)}) as url:
        refused = command("specialists", "import", url, "--secret", "DOCS_TOKEN")
        without = command("specialists", "import", url)
    own = dict(A2A)
    with card_server({"/.well-known/agent-card.json": (200, own)}) as url:
        own["supportedInterfaces"] = [{"url": f"{url}/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]
        own["name"] = "Own Bot"
        same = command("specialists", "import", url, "--secret", "DOCS_TOKEN")

    assert refused.returncode == 1
    words = " ".join(refused.stderr.split())
    assert "url: names another host, `https://agents.example/rpc`, where the secret DOCS_TOKEN would be sent" in words
    assert without.returncode == 0
    assert "its agent is on another host, https://agents.example/rpc" in " ".join(without.stderr.split())
    assert same.returncode == 0, same.stderr
    assert [entry["id"] for entry in told(command, "specialists", "list")] == ["docs-bot", "own-bot"]


OURS = {"id": "docs-bot", "description": "Writes pages."}


@pytest.mark.parametrize("url", ["https://agents.example/rpc", "/rpc"])
@pytest.mark.parametrize("card", [OURS, A2A], ids=["ours", "A2A"])
@pytest.mark.parametrize("asked", [(), ("--secret", "DOCS_TOKEN")])
def test_a_card_that_is_fetched_names_no_secret_by_itself(
    command: Command, cards: Path, asked: tuple[str, ...], card: dict[str, object], url: str
) -> None:
    fields = dict(card) | {"authentication": {"scheme": "bearer", "secret": "AWS_SECRET_ACCESS_KEY"}}
    with card_server({"/card.json": (200, fields)}) as host:
        if url != "/rpc" or "supportedInterfaces" not in fields:
            fields["url"] = url if "://" in url else f"{host}{url}"
        command("specialists", "import", f"{host}/card.json", *asked)

    shown = [
        json.loads(command("specialists", "show", str(entry["id"]), "-o", "json").stdout)
        for entry in told(command, "specialists", "list")
    ]
    assert "AWS_SECRET_ACCESS_KEY" not in json.dumps([entry["card"].get("authentication") for entry in shown])
    if card is OURS:
        assert shown == []


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_a_host_that_drips_its_card_is_not_awaited_for_ever(monkeypatch: pytest.MonkeyPatch, head: bytes) -> None:
    monkeypatch.setattr(card_files, "FETCH_S", 0.5)
    left = Event()

    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.recv(4096)
            connection.sendall(head)
            while not left.wait(0.05):
                connection.sendall(b" ")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(target=drip, args=(listener,), daemon=True).start()
        try:
            with pytest.raises(typer.BadParameter, match="did not send its card within"):
                card_files._fetched(f"http://127.0.0.1:{listener.getsockname()[1]}/card.json")
        finally:
            left.set()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://no-such-host.invalid", "there is no such host"),
        ("https://ann:pa55word@no-such-host.invalid", "https://no-such-host.invalid/"),
        ("http://127.0.0.1:1", "nothing listens there"),
        ("HTTP://127.0.0.1:1", "nothing listens there"),
        ("https://xn--a", "that is not a host name"),
        ("http://127.0.0.1:99999", "is not the address of a card"),
        ("https://[::1", "is not the address of a card"),
        ("https://", "is not the address of a card"),
        ("ftp://agents.example/card.json", "is not the address of a card"),
    ],
)
def test_why_a_card_is_not_there_is_said_in_words(command: Command, url: str, words: str) -> None:
    done = command("specialists", "import", url)

    text = " ".join(done.stderr.split())
    assert (done.returncode, "Errno" in text, "pa55word" in text) == (2, False, False)
    assert words in text


def test_what_is_no_card_or_not_encrypted_is_told_by_what_it_is(command: Command) -> None:
    with card_server({"/page/card.json": (200, "<html>"), "/secret/card.json": (401, "")}) as url:
        assert "begins with `" in command("specialists", "import", f"{url}/page/card.json").stderr
        assert "with your login" in command("specialists", "import", f"{url}/secret/card.json").stderr
        plain = command("specialists", "import", url.replace("http:", "https:"))
        assert "no encrypted connection was possible" in " ".join(plain.stderr.split())


def test_a_card_is_not_fetched_unencrypted_from_elsewhere(command: Command) -> None:
    done = command("specialists", "import", "http://agents.example/card.json")

    assert done.returncode == 2
    assert "unencrypted" in done.stderr


def imported(command: Command, card: dict[str, object]) -> dict[str, object]:
    file = command.home / "card.json"
    file.write_text(json.dumps(card))
    (results,) = told(command, "specialists", "import", str(file))
    return results


def test_nothing_is_replaced_that_came_from_elsewhere(command: Command, cards: Path) -> None:
    assert command("specialists", "add", str(cards)).returncode == 0
    mine, theirs = named("Plumber", "https://a.example/rpc"), named("Plumber", "https://b.example:8443/rpc")

    first, second = imported(command, mine), imported(command, theirs)
    third = imported(command, named("Plumber", "https://b.example:8443/other"))
    assert (first["id"], second["id"]) == ("plumber-a.example", "plumber-b.example-8443")
    assert str(third["id"]).startswith("plumber-")

    again = [imported(command, entry)["id"] for entry in (theirs, mine | {"description": "Speaks well."})]
    assert again == [second["id"], first["id"]], "the same agent is the same specialist"
    assert len(told(command, "specialists", "list")) == 4
    own = json.loads(command("specialists", "show", "plumber", "-o", "json").stdout)
    assert own["card"]["description"] == "Fixes leaking pipes."


def test_the_protocol_is_written_down_where_the_card_would_not_be_found_again(command: Command, cards: Path) -> None:
    answers = {
        path: (200, named("Echo", where) | {"protocolVersion": "0.3.0"})
        for path, where in (
            ("/echo/.well-known/agent-card.json", "/echo/rpc"),
            ("/.well-known/agent-card.json", "/rpc"),
            ("/twin/.well-known/agent-card.json", "/twin"),
        )
    }
    with card_server(answers) as url:
        results = [told(command, "specialists", "import", f"{url}{path}")[0] for path in ("/echo", "/", "/twin/")]
    kept = [Card.model_validate(entry["card"]) for entry in results]
    reached = [(str(entry.url).removeprefix(url), entry.protocol.value) for entry in kept]
    assert reached == [("/echo/rpc", "0.3"), ("/rpc", "auto"), ("/twin", "auto")]


def test_an_agent_that_speaks_something_else_becomes_no_role(command: Command, cards: Path) -> None:
    card = named("Echo", "https://a.example") | {"preferredTransport": "GRPC"}
    file = command.home / "card.json"
    file.write_text(json.dumps(card))
    done = command("specialists", "import", str(file))
    assert done.returncode == 1
    assert "offers GRPC, and JSONRPC alone is spoken here" in done.stderr
    assert told(command, "specialists", "list") == []


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_a_host_with_a_certificate_of_its_own_is_trusted_as_runs_trust_it(
    command: Command, cards: Path, tmp_path: Path
) -> None:
    context, certificate = own_certificate(tmp_path)
    with card_server({"/.well-known/agent-card.json": (200, A2A)}, context) as url:
        refused = command("specialists", "import", url)
        trusted = command("specialists", "import", url, SSL_CERT_FILE=str(certificate))
        missing = command("specialists", "import", url, SSL_CERT_FILE=str(tmp_path / "gone.pem"))
    assert "the file named in SSL_CERT_FILE does not exist" in " ".join(missing.stderr.split())
    assert refused.returncode == 2
    assert "certificate is not trusted" in " ".join(refused.stderr.split())
    assert "SSL_CERT_FILE" in refused.stderr
    assert trusted.returncode == 0, trusted.stderr
    assert "docs-bot" in trusted.stdout
