"""The pages of channels: the list, a conversation, writing in it, and saying whether the right ones answered."""

import re
from pathlib import Path

import pytest

from claudomator_py.domain.channel import ChannelSettings, NewChannel, NewMessage, PrimaryRule
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.resources.access import TokenRequest
from claudomator_py.resources.access.service import AccessTokens
from claudomator_py.resources.channels.service import Channels
from tests.fakes.cards import card
from tests.fakes.daemon import running
from tests.fakes.prepared import PreparedService
from tests.unit.api.page.conftest import Visitor, log_in, text_of


@pytest.fixture
def channels(prepared: PreparedService) -> Channels:
    """With one channel, the kitchen."""
    for name in ("cook", "baker"):
        prepared.world.specialists.register(card(name, name=name.capitalize()))
    channels = prepared.access.as_(OPERATOR)[Channels]
    settings = ChannelSettings(primary=PrimaryRule.OFF, shadow=ChannelSettings())
    channels.create(NewChannel(name="kitchen", participants=("cook",), primary="baker", settings=settings))
    return channels


def test_there_are_none(operator: Visitor) -> None:
    assert "There are no channels." in text_of(operator.get("/channels"))


@pytest.mark.usefixtures("channels")
def test_they_are_listed(operator: Visitor) -> None:
    text = text_of(operator.get("/channels"))
    for words in ("kitchen", "2 specialists", "1 person", "primary baker, off", "by operator"):
        assert words in text


def test_one_is_created_and_what_is_wrong_is_said(operator: Visitor, channels: Channels) -> None:
    made = operator.post("/channels", {"name": "bar", "specialists": "cook, baker", "primary": "cook"})
    assert (made.status, made.headers["location"]) == (303, f"/channels/{channels.get('bar').id}")
    again = operator.post("/channels", {"name": "bar", "specialists": "cook"})
    assert again.status == 409
    assert 'value="bar"' in again.body.decode()
    assert operator.post("/channels", {"name": "Bar!"}).status == 422
    assert "there is no specialist waiter" in text_of(operator.post("/channels", {"name": "x", "primary": "waiter"}))


def test_whoever_addresses_nobody_is_told_who_answers(operator: Visitor, channels: Channels) -> None:
    url = f"/channels/{channels.get('kitchen').id}"
    operator.post(f"{url}/messages", {"text": "Thanks!"})
    assert "for nobody" in text_of(operator.get(f"{url}"))
    assert "addresses nobody here" not in text_of(operator.get(url))
    operator.post(f"{url}/messages", {"text": "@cok soup"})
    assert "It addresses nobody here; those who answer are @baker, @cook." in text_of(operator.get(url))


def test_a_conversation_is_read_and_written_in(operator: Visitor, channels: Channels) -> None:
    url = f"/channels/{channels.get('kitchen').id}"
    assert "No messages yet." in text_of(operator.get(url))
    sent = operator.post(f"{url}/messages", {"text": "@cook <b>soup</b>,\r\nplease @nobody"})
    first = channels.messages("kitchen").items[0]
    assert (sent.status, sent.headers["location"]) == (303, f"{url}#message-{first.id}")
    assert first.content == "@cook <b>soup</b>,\nplease @nobody"

    page = operator.get(url)

    assert "<b>soup</b>" not in page.body.decode()
    for words in (
        "operator",
        "@cook <b>soup</b>",
        "mentioned",
        "cook was asked",
        "Was that right?",
        "Primary baker, off",
    ):
        assert words in text_of(page), words
    reply = operator.get(f"{url}?reply={first.id}")
    assert f"Your answer to message {first.id}" in text_of(reply)
    operator.post(f"{url}/messages", {"text": "and bread", "reply_to": str(first.id)})
    assert channels.messages("kitchen").items[0].reply_to == first.id
    assert f"answers message {first.id}" in text_of(operator.get(url))
    refused = operator.post(f"{url}/messages", {"text": "x", "reply_to": "999"})
    assert (refused.status, ">x</textarea>" in refused.body.decode()) == (422, True)


def test_whether_it_was_right_is_said_and_counted(operator: Visitor, channels: Channels) -> None:
    posted = channels.post("kitchen", NewMessage(content="hello"))
    url = f"/channels/{channels.get('kitchen').id}"
    assert operator.post(f"{url}/messages/{posted.id}/verdict", {"verdict": "should_have"}).status == 303
    text = text_of(operator.get(url))
    assert "Marked: should have" in text
    assert re.search(r"for nobody 1 0 1 0 0", text), text
    operator.post(f"{url}/messages/{posted.id}/verdict", {"verdict": ""})
    assert channels.message("kitchen", posted.id).verdict is None


def test_who_takes_part_changes(operator: Visitor, channels: Channels) -> None:
    url = f"/channels/{channels.get('kitchen').id}"
    assert operator.post(f"{url}/participants/cook/mute", {"duration": "1h"}).status == 303
    assert "muted until" in text_of(operator.get(url))
    operator.post(f"{url}/participants/cook/mute", {"duration": ""})
    operator.post(f"{url}/participants/cook/leave")
    assert "cook" not in {participant.id for participant in channels.get("kitchen").participants}
    assert operator.post(f"{url}/join", {"specialist": "cook"}).status == 303
    assert "cook" in {participant.id for participant in channels.get("kitchen").participants}
    assert operator.post(f"{url}/join", {"specialist": "waiter"}).status == 422


def test_who_may_only_read_sees_no_forms(prepared: PreparedService, channels: Channels, tmp_path: Path) -> None:
    token = prepared.access.as_(OPERATOR)[AccessTokens].create(TokenRequest(name="eve", role="read")).token
    posted = channels.post("kitchen", NewMessage(content="hello"))
    url = f"/channels/{channels.get('kitchen').id}"
    with running(prepared, tmp_path / "state") as daemon:
        reader = log_in(daemon, token)
        page = reader.get(url).body.decode()
        assert "hello" in page
        assert "<textarea" not in page
        assert "Was that right?" not in page
        assert reader.post(f"{url}/messages", {"text": "x"}).status == 403
        assert reader.post(f"{url}/messages/{posted.id}/verdict", {"verdict": "right"}).status == 403


def test_earlier_messages_come_in_parts(operator: Visitor, channels: Channels) -> None:
    for number in range(51):
        channels.post("kitchen", NewMessage(content=f"note {number:02}"))
    page = operator.get(f"/channels/{channels.get('kitchen').id}").body.decode()
    assert ("note 50" in page, "note 00" in page) == (True, False)
    following = page.partition('<p class="more"><a href="')[2].partition('"')[0]
    assert "note 00" in text_of(operator.get(following))
