"""``channel``: making one, writing, reading, and what it is set to."""

import json
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from claudomator_py.resources.channels import ChannelView, MessageView
from tests.fakes.cards import card
from tests.fakes.command import Command


@pytest.fixture
def kitchen(command: Command) -> ChannelView:
    """A channel in which two specialists take part."""
    documents = "".join(f"---\n{json.dumps(card(name).document)}\n" for name in ("cook", "baker"))
    assert command("specialists", "add", "-", stdin=documents).returncode == 0
    done = command("channel", "create", "kitchen", "cook", "--primary", "baker", "-o", "json")
    assert done.returncode == 0, done.stderr
    return ChannelView.model_validate_json(done.stdout)


def posted(command: Command, *arguments: str) -> MessageView:
    done = command("channel", "post", "kitchen", *arguments, "-o", "json")
    assert done.returncode == 0, done.stderr
    return MessageView.model_validate_json(done.stdout)


def test_where_there_are_none_it_says_how_to_create_one(command: Command) -> None:
    done = command("channel", "list")
    assert (done.returncode, done.stdout) == (0, "")
    assert "channel create NAME" in done.stderr


@pytest.mark.usefixtures("kitchen")
def test_it_is_listed_and_shown(command: Command) -> None:
    lines = command("channel", "list").stdout.splitlines()
    assert lines[1].split()[:5] == ["kitchen", "baker", "cascade", "3", "operator"]
    shown = command("channel", "show", "kitchen").stdout
    for text in ("primary_agent", "cook", "baker", "PARTICIPANTS", "rate_limit"):
        assert text in shown
    assert json.loads(command("channel", "show", "kitchen", "-o", "json").stdout)["primary"] == "baker"


@pytest.mark.usefixtures("kitchen")
def test_what_is_written_is_read_with_who_answers(command: Command) -> None:
    first = posted(command, "@cook soup, please")
    assert [answer.specialist for answer in first.answers] == ["cook"]
    assert command("channel", "post", "kitchen", "@cook again").stdout.strip().endswith("direct_mention: cook asked")
    done = command("channel", "post", "kitchen", "-", "--reply-to", str(first.id), stdin="and bread\n")
    assert done.stdout.strip().endswith("no_trigger")
    read = command("channel", "read", "kitchen").stdout
    assert read.index("soup, please") < read.index("and bread")
    assert f"(answers {first.id})" in read
    assert len(json.loads(command("channel", "read", "kitchen", "--last", "1", "-o", "json").stdout)) == 1


@pytest.mark.usefixtures("kitchen")
def test_a_name_that_is_nobodys_is_told_to_whoever_writes_it(command: Command) -> None:
    assert command("channel", "post", "kitchen", "Thanks!").stderr == ""
    assert command("channel", "post", "kitchen", "@cook soup").stderr == ""
    stderr = command("channel", "post", "kitchen", "@cok soup").stderr
    assert stderr == "It addresses nobody here; those who answer are @baker, @cook.\n"
    assert command("channel", "create", "empty").returncode == 0
    stderr = command("channel", "post", "empty", "Hello?").stderr
    assert stderr == "Nobody answers here; add a specialist: claudomator channel join empty SPECIALIST\n"


@pytest.mark.usefixtures("kitchen")
def test_what_the_channel_itself_says_carries_its_name(command: Command) -> None:
    command("channel", "settings", "kitchen", "mentions=ask")
    posted(command, "@cook @baker bread, please")
    assert "kitchen (answers 1), " in command("channel", "read", "kitchen").stdout


@pytest.mark.usefixtures("kitchen")
def test_what_it_is_set_to_is_changed_one_by_one(command: Command) -> None:
    done = command("channel", "settings", "kitchen", "primary=keywords", "keywords=help,release notes", "cooldown=30s")
    assert done.returncode == 0, done.stderr
    record = json.loads(command("channel", "settings", "kitchen", "-o", "json").stdout)
    assert (record["primary"], record["keywords"], record["cooldown"]) == ("keywords", ["help", "release notes"], "30s")
    assert [answer.specialist for answer in posted(command, "I need help").answers] == ["baker"]
    assert command("channel", "settings", "kitchen", "primary_agent=cook").returncode == 0
    assert "keywords" in command("channel", "settings", "kitchen").stdout
    for wrong in ("primary=often", "colour=white", "primary"):
        assert command("channel", "settings", "kitchen", wrong).returncode == 2, wrong


@pytest.mark.usefixtures("kitchen")
def test_nobody_leaves_who_does_not_take_part(command: Command) -> None:
    done = command("channel", "leave", "kitchen", "cok")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: 'cok' does not take part in kitchen.\nDid you mean `cook`?\n"


@pytest.mark.usefixtures("kitchen")
def test_specialists_join_leave_and_are_muted(command: Command) -> None:
    assert command("channel", "leave", "kitchen", "cook").returncode == 0
    assert posted(command, "@cook soup").answers == ()
    assert command("channel", "join", "kitchen", "cook").returncode == 0
    assert command("channel", "mute", "kitchen", "cook", "--for", "2h").returncode == 0
    assert [answer.skipped for answer in posted(command, "@cook soup").answers] == ["muted"]
    assert command("channel", "mute", "kitchen", "cook").returncode == 0
    assert [answer.skipped for answer in posted(command, "@cook soup").answers] == [None]
    assert command("channel", "mute", "kitchen", "cook", "--for", "soon").returncode == 2


@pytest.mark.usefixtures("kitchen")
def test_until_when_somebody_is_muted_is_shown_in_local_time(command: Command, forked: Command) -> None:
    muted = forked("channel", "mute", "kitchen", "cook", "--for", "30d", TZ="Asia/Tokyo").stdout
    view = ChannelView.model_validate_json(command("channel", "show", "kitchen", "-o", "json").stdout)
    (until,) = (member.muted_until for member in view.participants if member.muted_until is not None)
    at = datetime.fromisoformat(until).astimezone(ZoneInfo("Asia/Tokyo"))
    assert f"{at:%Y-%m-%d %H:%M} JST" in muted


@pytest.mark.usefixtures("kitchen")
def test_what_operators_say_is_counted(command: Command) -> None:
    first = posted(command, "hello")
    assert command("channel", "mark", "kitchen", str(first.id), "should_have").returncode == 0
    record = json.loads(command("channel", "stats", "kitchen", "-o", "json").stdout)
    (nobody,) = [rule for rule in record["rules"] if rule["reason"] == "no_trigger"]
    assert (nobody["messages"], nobody["should_have"]) == (1, 1)
    assert "no_trigger" in command("channel", "stats", "kitchen").stdout
