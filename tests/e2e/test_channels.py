"""A channel of a real daemon: who is mentioned answers, once, whatever becomes of the daemon."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.domain.channel import ChannelSettings, NewChannel, NewMessage, PrimaryRule
from claudomator_py.resources.channels import MessageView
from tests.e2e.daemon import Daemon
from tests.e2e.site import Site, open_site
from tests.fakes.cards import card
from tests.patience import wait_until
from tests.warm.starter import WarmStarter

POINTS = ("answer-due", "answer-given")
"""The crash points on the way of an answer; ``test_crash_points`` leaves them to this module."""
COOK = card("cook", system_prompt="You cook.\nsimulate: text='Here is soup.'\n")


@pytest.fixture
def site(tmp_path: Path, warm: WarmStarter) -> Iterator[Site]:
    agents = {"alpha": {"kind": "simulated", "auto_select": True}}
    with open_site(tmp_path / "site", warm=warm, agents=agents, routing={"shipped": False}) as site:
        yield site


def opened(daemon: Daemon) -> None:
    daemon.client.register_specialist(COOK)
    settings = ChannelSettings(primary=PrimaryRule.OFF)
    daemon.client.create_channel(NewChannel(name="kitchen", participants=("cook",), settings=settings))


def posted(daemon: Daemon, content: str) -> MessageView:
    return daemon.client.post_message("kitchen", NewMessage(content=content))


def written(daemon: Daemon) -> list[tuple[str, str]]:
    """Authors and roles, oldest first."""
    return [(item.author, item.role.value) for item in reversed(daemon.client.messages("kitchen").items)]


def answered(daemon: Daemon, message: MessageView) -> MessageView:
    def answer() -> MessageView | None:
        (answer,) = daemon.client.message("kitchen", message.id).answers
        return None if answer.message_id is None else daemon.client.message("kitchen", answer.message_id)

    result = wait_until(answer, "the answer")
    assert result is not None
    return result


def test_who_is_mentioned_answers_and_goes_on_in_the_conversation(site: Site) -> None:
    daemon = site.start().ready()
    opened(daemon)
    answer = answered(daemon, posted(daemon, "@cook soup, please"))
    assert "Here is soup." in answer.content
    again = daemon.client.post_message("kitchen", NewMessage(content="more", reply_to=answer.id))
    assert [answer.specialist for answer in again.answers] == ["cook"]
    answered(daemon, again)
    assert written(daemon) == [("operator", "user"), ("cook", "assistant")] * 2
    first, second = (daemon.client.runs(str(message.answers[0].task_id))[0] for message in (posted_of(daemon), again))
    assert second.resumes == first.id


def posted_of(daemon: Daemon) -> MessageView:
    """The first message."""
    return daemon.client.messages("kitchen").items[-1]


@pytest.mark.parametrize("point", POINTS)
def test_a_daemon_killed_on_the_way_gives_each_answer_once(site: Site, point: str) -> None:
    first = site.start(crash_at=point).ready()
    opened(first)
    message = posted(first, "@cook soup, please")
    assert first.wait() == -9, "the crash point was not passed"

    daemon = site.start().ready()

    assert "Here is soup." in answered(daemon, message).content
    assert written(daemon) == [("operator", "user"), ("cook", "assistant")]
    assert [task.runs for task in site.drain(daemon).values()] == [1]
