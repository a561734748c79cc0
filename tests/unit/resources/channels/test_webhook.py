"""Incoming webhooks of channels: what is signed is taken once, and all else is refused without a word of why."""

import hmac
import json
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from claudomator_py.domain.channel import ChannelSettings, NewChannel, PrimaryRule, WebhookKind, WebhookSettings
from claudomator_py.domain.principal import Principal, Role
from claudomator_py.resources.channels import SettingsRequest
from claudomator_py.resources.channels.service import Channels
from claudomator_py.resources.channels.webhook import UNBOUND_UNTIL_MS, WINDOW_MS, signature
from tests.fakes.cards import card
from tests.fakes.daemon import Answer, Daemon
from tests.fakes.prepared import PreparedService

SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
CHALLENGE = {
    "token": "Jhj5dZrVaK7ZwHHjRyZWjbDl",
    "challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P",
    "type": "url_verification",
}
EVENT: dict[str, Any] = {
    "token": "Jhj5dZrVaK7ZwHHjRyZWjbDl",
    "team_id": "T061EG9R6",
    "api_app_id": "A0PNCHHK2",
    "event": {
        "type": "message",
        "channel": "C024BE91L",
        "user": "U2147483697",
        "text": "@cook is it &lt;hot&gt;? see <https://x.example/a|this>",
        "ts": "1355517523.000005",
        "event_ts": "1355517523.000005",
        "channel_type": "channel",
    },
    "type": "event_callback",
    "event_id": "Ev9UQ52YNA",
    "event_time": 1355517523,
}
PLAIN = {"id": "e1", "author": "7", "display_name": "Mara", "content": "@cook soup"}


class Hook:
    """A channel's webhook, and how to send to it."""

    def __init__(self, daemon: Daemon, prepared: PreparedService, kind: WebhookKind) -> None:
        self.daemon, self.prepared, self.kind = daemon, prepared, kind
        world = prepared.world
        world.webhook_secrets["HOOK_SECRET"] = SECRET
        world.specialists.register(card("cook"))
        hook = WebhookSettings(kind=kind, secret_env="HOOK_SECRET")
        settings = ChannelSettings(primary=PrimaryRule.OFF, webhook=hook)
        self.channel = world.channels.create(NewChannel(name=f"hook-{kind}", participants=("cook",), settings=settings))

    def send(self, document: object, *, secret: str = SECRET, shift_s: int = 0, **changes: Any) -> Answer:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        stamp = str(self.prepared.world.now_ms // 1000 + shift_s)
        prefix = "X-Slack" if self.kind is WebhookKind.SLACK else "X-Claudomator"
        at = f"{prefix}-Request-Timestamp" if self.kind is WebhookKind.SLACK else f"{prefix}-Timestamp"
        signed_for = changes.pop("signed_for", self.channel.id)
        headers: dict[str, str | None] = {
            "Authorization": None,
            "Content-Type": "application/json",
            at: stamp,
            f"{prefix}-Signature": signature(self.kind, secret.encode(), stamp, body, signed_for),
        }
        headers.update({name.replace("_", "-"): value for name, value in changes.pop("headers", {}).items()})
        path = changes.pop("path", f"/v1/channels/{self.channel.id}/incoming")
        return self.daemon.ask("POST", path, body=changes.pop("body", body), headers=headers)

    @property
    def written(self) -> list[tuple[str, str]]:
        result = self.prepared.world.channels.messages(self.channel.id).items
        return [(entry.author, entry.content) for entry in reversed(result)]


@pytest.fixture
def plain(daemon: Daemon, prepared: PreparedService) -> Hook:
    return Hook(daemon, prepared, WebhookKind.PLAIN)


@pytest.fixture
def slack(daemon: Daemon, prepared: PreparedService) -> Hook:
    return Hook(daemon, prepared, WebhookKind.SLACK)


def test_a_signed_message_is_taken_once_and_answered(plain: Hook) -> None:
    first, again = plain.send(PLAIN), plain.send(PLAIN)
    assert (first.status, again.status, first.body) == (200, 200, again.body)
    assert plain.written == [("webhook:7", "@cook soup")]
    (answer,) = plain.prepared.world.channels.message(plain.channel.id, first.json()["message"]).answers
    assert (answer.specialist, answer.state) == ("cook", "asked")


def test_the_signature_is_the_one_of_slacks_own_example() -> None:
    body = (
        b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V"
        b"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text="
        b"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
        b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
    )
    expected = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
    assert signature(WebhookKind.SLACK, b"8f742231b10e8888abcd99yyyzzz85a5", "1531420618", body, "any") == expected


def test_slack_is_answered_as_it_asks(slack: Hook) -> None:
    verified = slack.send(CHALLENGE)
    assert (verified.status, verified.json()) == (200, {"challenge": CHALLENGE["challenge"]})
    assert [slack.send(EVENT).status for _ in range(2)] == [200, 200]
    assert slack.written == [("slack:U2147483697", "@cook is it <hot>? see https://x.example/a")]


@pytest.mark.parametrize(
    "change",
    [
        {"subtype": "message_changed"},
        {"bot_id": "B1"},
        {"type": "reaction_added"},
        {"type": "app_mention"},
        {"user": None},
        {"text": None},
    ],
)
def test_what_no_person_wrote_is_heard_and_left(slack: Hook, change: dict[str, object]) -> None:
    assert slack.send({**EVENT, "event": {**EVENT["event"], **change}}).status == 200
    assert slack.written == []


@pytest.mark.parametrize("text", ["@cook can you read this?", ""])
def test_a_message_with_a_file_is_a_message(slack: Hook, text: str) -> None:
    file = {
        "id": "F0S43PZDF",
        "name": "tedair.gif",
        "mimetype": "image/gif",
        "url_private": "https://files.slack.com/x",
    }
    shared = {**EVENT["event"], "subtype": "file_share", "text": text, "files": [file, {"mode": "tombstone"}]}
    assert slack.send({**EVENT, "event": shared}).status == 200
    assert slack.written == [("slack:U2147483697", text)]
    (message,) = slack.prepared.world.channels.messages(slack.channel.id).items
    (attachment,) = message.attachments
    assert (attachment.name, attachment.media_type, attachment.state) == ("tedair.gif", "image/gif", "processed")


@pytest.mark.parametrize("kind", WebhookKind)
def test_all_that_is_not_signed_is_refused_in_the_same_words(
    daemon: Daemon, prepared: PreparedService, kind: WebhookKind
) -> None:
    hook = Hook(daemon, prepared, kind)
    document = PLAIN if kind is WebhookKind.PLAIN else EVENT
    for by in (Principal("ann", Role.OPERATE, "acme"), Principal("bob", Role.OPERATE, "bolt")):
        prepared.access.as_(by)[Channels].create(NewChannel(name="twice"))
    bare = prepared.world.channels.create(NewChannel(name="bare"))
    prefix = "X_Slack" if kind is WebhookKind.SLACK else "X_Claudomator"
    window_s = WINDOW_MS // 1000
    refused = [
        hook.send(document, secret="x" * 32),
        hook.send(document, body=b'{"id": "e2"}'),
        hook.send(document, shift_s=-window_s - 1),
        hook.send(document, shift_s=window_s + 1),
        hook.send(document, headers={f"{prefix}_Signature": None}),
        hook.send(document, headers={f"{prefix}_Signature": "sha256=\xe9"}),
        hook.send(document, headers={"X_Claudomator_Timestamp": "soon", "X_Slack_Request_Timestamp": "soon"}),
        hook.send(document, path=f"/v1/channels/{bare.id}/incoming"),
        hook.send(document, path=f"/v1/channels/{hook.channel.name}/incoming"),
        hook.send(document, path="/v1/channels/nowhere/incoming"),
        hook.send(document, path="/v1/channels/twice/incoming"),
        hook.send(b"nonsense", secret="x" * 32),
    ]
    prepared.world.webhook_secrets.clear()
    refused.append(hook.send(document))
    prepared.world.webhook_secrets["HOOK_SECRET"] = ""
    refused.append(hook.send(document, secret=""))
    assert {entry.status for entry in refused} == {401}
    assert len({entry.json()["detail"] for entry in refused}) == 1
    assert hook.written == []


def test_a_signed_request_that_says_nothing_is_refused_with_what_is_wrong(plain: Hook) -> None:
    for wrong in ({"id": "e"}, {**PLAIN, "colour": 1}, {**PLAIN, "content": "\0"}, [1], b"nonsense", b"\xff"):
        assert plain.send(wrong).status == 422, wrong
    assert plain.send({**PLAIN, "content": "x" * 300_000}).status == 413
    assert plain.written == []


def test_nobody_from_outside_takes_the_name_of_somebody(plain: Hook) -> None:
    named = {**PLAIN, "author": "cook", "display_name": "Cook", "content": "hello"}
    assert plain.send(named).status == 200
    assert plain.send({**PLAIN, "id": "e2"}).status == 200
    first, second = plain.prepared.world.channels.messages(plain.channel.id).items[::-1]
    assert (first.author, first.decision.agents, second.decision.agents) == ("webhook:cook", (), ("cook",))


def test_a_secret_is_in_a_file_of_the_users_own(plain: Hook, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")
    hook = WebhookSettings(secret_file=str(file))
    settings = SettingsRequest(settings=ChannelSettings(primary=PrimaryRule.OFF, webhook=hook))
    plain.prepared.world.channels.change_settings(plain.channel.id, settings)
    file.chmod(0o644)
    assert plain.send(PLAIN).status == 401
    file.chmod(0o600)
    assert plain.send(PLAIN).status == 200
    file.unlink()
    assert plain.send({**PLAIN, "id": "e2"}).status == 401


def test_the_secret_is_not_in_the_database(plain: Hook) -> None:
    assert plain.send(PLAIN).status == 200

    def dumped(connection: Connection) -> str:
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        return "".join(driver.iterdump())

    dump = plain.prepared.world.database.read(dumped)
    assert "HOOK_SECRET" in dump
    assert SECRET not in dump


def test_a_signature_is_good_for_its_own_channel_alone(daemon: Daemon, prepared: PreparedService) -> None:
    first = Hook(daemon, prepared, WebhookKind.PLAIN)
    hook = WebhookSettings(kind=WebhookKind.PLAIN, secret_env="HOOK_SECRET")
    settings = ChannelSettings(primary=PrimaryRule.OFF, webhook=hook)
    second = prepared.world.channels.create(NewChannel(name="other", participants=("cook",), settings=settings))
    elsewhere = f"/v1/channels/{second.id}/incoming"
    assert first.send(PLAIN, path=elsewhere).status == 401
    assert first.send(PLAIN, path=elsewhere, signed_for=second.id).status == 200
    assert first.send(PLAIN).status == 200


@pytest.mark.parametrize("accepted", [True, False])
def test_the_former_signature_is_accepted_until_the_date_that_is_told(plain: Hook, accepted: bool) -> None:
    plain.prepared.world.now_ms = UNBOUND_UNTIL_MS - (1 if accepted else 0)
    body = json.dumps(PLAIN).encode()
    stamp = str(plain.prepared.world.now_ms // 1000)
    former = "sha256=" + hmac.digest(SECRET.encode(), f"{stamp}.".encode() + body, "sha256").hex()
    sent = plain.send(body, headers={"X_Claudomator_Signature": former})
    assert sent.status == (200 if accepted else 401)


def test_that_date_is_the_one_in_words() -> None:
    assert datetime.fromtimestamp(UNBOUND_UNTIL_MS / 1000, UTC) == datetime(2027, 6, 1, tzinfo=UTC)
