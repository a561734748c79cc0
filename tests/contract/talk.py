"""A channel of a world, and what is said in it."""

from claudomator_py.domain.channel import (
    ChannelSettings,
    NewChannel,
    NewMessage,
    PrimaryRule,
)
from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.resources.channels import (
    ChannelView,
    MessageView,
)
from claudomator_py.resources.channels.service import Channels
from tests.fakes.world import World

OFF = ChannelSettings(primary=PrimaryRule.OFF)


def of(world: World, by: Principal = OPERATOR) -> Channels:
    return world.access.as_(by)[Channels]


def made(world: World, settings: ChannelSettings = OFF, by: Principal = OPERATOR, **more: object) -> ChannelView:
    wanted = {"name": "kitchen", "participants": ("cook", "baker"), "settings": settings} | more
    return of(world, by).create(NewChannel.model_validate(wanted))


def said(world: World, content: str, by: Principal = OPERATOR, **more: object) -> MessageView:
    message = NewMessage.model_validate({"content": content} | more)
    return of(world, by).post("kitchen", message)


def told(world: World) -> list[tuple[str, str, str]]:
    """The channel's messages, oldest first: author, role and text."""
    result = of(world).messages("kitchen").items
    return [(entry.author, entry.role.value, entry.content) for entry in reversed(result)]


def task_of(message: MessageView, world: World) -> str:
    """The name of the one task that answers it."""
    (answer,) = message.answers
    assert answer.task_id is not None, answer
    return world.task(answer.task_id).name
