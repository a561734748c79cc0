"""A browser without a window: what it would send, and the pages that come back."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urlencode

import pytest
from fastapi import Response

from tests.fakes.daemon import Answer, Daemon

ACCEPT = "text/html,application/xhtml+xml,*/*;q=0.8"


@dataclass
class Visitor:
    """Sends what a browser sends. With ``cookie``, it is logged in."""

    daemon: Daemon
    cookie: str | None = None
    headers: dict[str, str | None] = field(default_factory=dict)

    def get(self, path: str, **headers: str | None) -> Answer:
        return self._ask("GET", path, {"Sec-Fetch-Site": "same-origin", **_named(headers)}, None)

    def post(self, path: str, fields: Mapping[str, object] | None = None, **headers: str | None) -> Answer:
        return self.post_raw(path, urlencode(fields or {}, doseq=True).encode(), **headers)

    def post_raw(self, path: str, form: bytes, **headers: str | None) -> Answer:
        sent = {
            "Sec-Fetch-Site": "same-origin",
            "Origin": f"http://{self.daemon.page_host}",
            "Content-Type": "application/x-www-form-urlencoded",
            **_named(headers),
        }
        return self._ask("POST", path, sent, form)

    def _ask(self, method: str, path: str, headers: Mapping[str, str | None], body: bytes | None) -> Answer:
        known: dict[str, str | None] = {"Authorization": None, "Accept": ACCEPT, "Cookie": self.cookie}
        known["Host"] = self.daemon.page_host
        return self.daemon.ask(method, path, body=body, headers={**known, **headers})


def _named(headers: Mapping[str, str | None]) -> dict[str, str | None]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def log_in(daemon: Daemon, token: str | None = None) -> Visitor:
    """A visitor who has come in by a code. token: whose it is; None: the operator's."""
    headers = {"Authorization": f"Bearer {token or daemon.token}"}
    code = daemon.ask("POST", "/v1/login-codes", headers=headers).json()["code"]
    answer = Visitor(daemon).post("/login", {"code": code})
    assert answer.status == 303
    return Visitor(daemon, answer.headers["set-cookie"].partition(";")[0])


@pytest.fixture
def stranger(daemon: Daemon) -> Visitor:
    """A browser without a session."""
    return Visitor(daemon)


@pytest.fixture
def operator(daemon: Daemon) -> Visitor:
    """A browser with a session."""
    return log_in(daemon)


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._apart(tag)

    def handle_endtag(self, tag: str) -> None:
        self._apart(tag)

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    def _apart(self, tag: str) -> None:
        if tag != "code":  # which stands within a sentence
            self.parts.append(" ")


def text_of(answer: Answer | Response) -> str:
    """What the page says, without its markup, on one line."""
    parser = _Text()
    parser.feed(bytes(answer.body).decode())
    return " ".join("".join(parser.parts).split())


def hidden(answer: Answer, name: str) -> str:
    """The value of a hidden field of the page's form."""
    match = re.search(rf'<input type="hidden" name="{name}" value="([^"]*)">', answer.body.decode())
    assert match is not None, f"the page has no hidden field {name}"
    return match[1]
