"""Whose word a message is that comes through a webhook, from the signed request to the run: never its channel's."""

import http.client
import itertools
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from claudomator_py.client.http import Client
from claudomator_py.domain.channel import (
    ChannelSettings,
    NewChannel,
    NewMessage,
    PrimaryRule,
    WebhookKind,
    WebhookSettings,
)
from claudomator_py.resources.access import TokenRequest
from claudomator_py.resources.channels import MessageView, SettingsRequest
from claudomator_py.resources.channels.webhook import signature
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import ended, in_state, why
from tests.e2e.site import Site, open_site
from tests.fakes.cards import card
from tests.patience import wait_until
from tests.warm.starter import WarmStarter

SECRET = "a secret of the shop"
POLICY = [
    {"name": "deploys", "when": 'task.text.contains("PRODX") && actor.role != "admin"', "deny": "for administrators"},
    {"name": "outside", "when": 'actor.role == "webhook" && task.text.contains("bread")', "approve": {}},
    {"name": "mara", "when": 'task.author == "webhook:mara" && task.text.contains("cake")', "approve": {}},
    {"name": "operator", "when": 'task.author == "operator" && task.text.contains("pie")', "approve": {}},
    {"name": "slack", "when": 'task.author.startsWith("slack:") && task.creator == "joe"', "deny": "not from there"},
    {"name": "agents", "when": 'actor.role == "webhook" && task.text.contains("wine")', "deny": "no wine"},
]
COOK = card("cook", system_prompt="You cook.\nsimulate: text='Soup. @baker, some wine please.'\n")
BAKER = card("baker", system_prompt="You bake.\nsimulate: text='Here.'\n")
HELD = "NEEDS_INPUT"


class Shop:
    """Channels with webhooks, of a real daemon."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.daemon: Daemon = site.start(SHOP_SECRET=SECRET).ready()
        self.client = self.daemon.client
        for entry in (COOK, BAKER):
            self.client.register_specialist(entry)
        self._numbers = itertools.count(1)
        self._ids: dict[str, str] = {}
        self.open(self.client, "shop", WebhookKind.PLAIN)

    def open(self, client: Client, name: str, kind: WebhookKind) -> None:
        """Create a channel as that client, and have an administrator let it take messages from outside."""
        client.create_channel(NewChannel(name=name, participants=("cook", "baker")))
        hook = WebhookSettings(kind=kind, secret_env="SHOP_SECRET")
        wanted = SettingsRequest(settings=ChannelSettings(primary=PrimaryRule.OFF, webhook=hook))
        self._ids[name] = self.client.change_channel_settings(name, wanted).id

    def send(self, channel: str, document: Mapping[str, Any], *, kind: WebhookKind = WebhookKind.PLAIN) -> int | None:
        """Post it, signed: the message that it became."""
        body, stamp, where = json.dumps(document).encode(), str(int(time.time())), self._ids[channel]
        name = "X-Slack-{}" if kind is WebhookKind.SLACK else "X-Claudomator-{}"
        headers = {
            name.format("Request-Timestamp" if kind is WebhookKind.SLACK else "Timestamp"): stamp,
            name.format("Signature"): signature(kind, SECRET.encode(), stamp, body, where),
            "Content-Type": "application/json",
        }
        connection = http.client.HTTPConnection(str(self.site.endpoint).removeprefix("http://"), timeout=60)
        connection.request("POST", f"/v1/channels/{where}/incoming", body, headers)
        answer = connection.getresponse()
        text = json.loads(answer.read() or b"{}")
        connection.close()
        assert answer.status == 200, (answer.status, text)
        number = text.get("message")
        return None if number is None else int(number)

    def say(self, content: str, author: str = "mara", **more: Any) -> int:
        """Have that author say it through the webhook of ``shop``."""
        sent = self.send("shop", {"id": f"e{next(self._numbers)}", "author": author, "content": content, **more})
        assert sent is not None
        return sent

    def slack(self, channel: str, content: str) -> int:
        event = {"type": "message", "user": "U2147483697", "text": content}
        document = {"type": "event_callback", "event_id": f"E{next(self._numbers)}", "event": event}
        sent = self.send(channel, document, kind=WebhookKind.SLACK)
        assert sent is not None
        return sent

    def tasks(self, message: int, channel: str = "shop") -> list[str]:
        """The tasks that answer it."""
        answers = self.client.message(channel, message).answers
        return [answer.task_id for answer in answers if answer.task_id is not None]


@pytest.fixture
def shop(tmp_path: Path, warm: WarmStarter) -> Iterator[Shop]:
    agents = {"alpha": {"kind": "simulated", "auto_select": True}}
    with open_site(tmp_path / "s", warm=warm, agents=agents, policy=POLICY, routing={"shipped": False}) as site:
        yield Shop(site)


def test_a_signed_message_is_the_word_of_who_wrote_it(shop: Shop) -> None:
    posted = shop.client.post_message("shop", NewMessage(content="@baker PRODX deploy it")).id
    assert ended(shop.daemon, shop.tasks(posted)[0]).state == "COMPLETED", "the operator may"
    for author in ("mara", "operator", "admin", "webhook", "baker"):
        assert shop.tasks(shop.say("@baker PRODX deploy it", author)) == [], author
    (plain,) = shop.tasks(shop.say("@baker, bread please"))
    assert in_state(shop.daemon, plain, HELD, "COMPLETED").state == HELD
    assert "outside" in why(shop.daemon, plain)


@pytest.mark.parametrize(
    ("author", "text", "state"),
    [
        ("mara", "@baker a cake", HELD),
        ("Mara", "@baker a cake", "COMPLETED"),
        ("joe", "@baker a cake", "COMPLETED"),
        ("webhook:mara", "@baker a cake", "COMPLETED"),
        ("operator", "@baker a pie", "COMPLETED"),
    ],
)
def test_rules_see_the_author_by_the_name_that_nobody_inside_has(
    shop: Shop, author: str, text: str, state: str
) -> None:
    (task,) = shop.tasks(shop.say(text, author))
    assert in_state(shop.daemon, task, HELD, "COMPLETED", "FAILED").state == state


def test_nor_is_it_that_of_who_made_the_channel_in_slacks_form(shop: Shop) -> None:
    joe = shop.client.create_token(TokenRequest(name="joe", role="operate")).token
    with Client(str(shop.site.endpoint), joe) as client:
        shop.open(client, "bar", WebhookKind.SLACK)
    shop.open(shop.client, "club", WebhookKind.SLACK)
    assert shop.tasks(shop.slack("bar", "@baker anything"), "bar") == []
    (task,) = shop.tasks(shop.slack("club", "@baker anything"), "club")
    assert ended(shop.daemon, task).state == "COMPLETED"
    assert shop.tasks(shop.slack("club", "@baker PRODX"), "club") == []


def answer_to(shop: Shop, message: int) -> MessageView:
    """The answer to it, once it is there."""

    def look() -> int | None:
        (answer,) = shop.client.message("shop", message).answers
        return answer.message_id

    return shop.client.message("shop", wait_until(look, "the answer"))


def test_what_agents_ask_of_each_other_for_it_stays_its_word(shop: Shop) -> None:
    states = []
    for message in (shop.say("@cook supper"), shop.client.post_message("shop", NewMessage(content="@cook supper")).id):
        (asked,) = answer_to(shop, message).answers
        states.append(ended(shop.daemon, str(asked.task_id)).state)
    assert states == ["FAILED", "COMPLETED"]


def test_an_answer_to_an_answer_takes_over_its_conversation_and_no_more(shop: Shop) -> None:
    posted = shop.client.post_message("shop", NewMessage(content="@baker a tart")).id
    answer = answer_to(shop, posted)
    assert shop.tasks(shop.say("PRODX again", reply_to=answer.id)) == []
    (held,) = shop.tasks(shop.say("some bread", reply_to=answer.id))
    assert in_state(shop.daemon, held, HELD, "COMPLETED").state == HELD
    for odd in (0, -1, True, answer.id + 10_000, 2**70, "1"):
        with pytest.raises(AssertionError, match=r"422|reply_to"):
            shop.say("what?", reply_to=odd)
