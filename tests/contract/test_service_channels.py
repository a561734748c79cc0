"""Channels for those who ask: what exists for each, who takes part, and that each answer is given once."""

from collections.abc import Callable

import pytest

from claudomator_py.domain import crashpoint
from claudomator_py.domain.channel import (
    AttachmentState,
    ChannelSettings,
    MarkVerdict,
    NewMessage,
    PrimaryRule,
    TriageReason,
    TriageSettings,
    WebhookKind,
    WebhookSettings,
)
from claudomator_py.domain.errors import Conflict, Forbidden, Invalid, KeyReused, NotFound, StaleVersion
from claudomator_py.domain.principal import OPERATOR, Principal, RequestKey, Role
from claudomator_py.domain.requests import DecisionFilter
from claudomator_py.resources.channels import (
    AttachmentRequest,
    JoinRequest,
    MarkRequest,
    MuteRequest,
    SettingsRequest,
)
from claudomator_py.resources.decisions.service import Decisions
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.store.database import Database
from claudomator_py.tasks.messages import PostedMessage
from tests.contract.talk import OFF, made, of, said, task_of, told
from tests.fakes.cards import card
from tests.fakes.world import World

ANN = Principal("ann", Role.OPERATE, "acme")
BOB = Principal("bob", Role.OPERATE, "bolt")


@pytest.fixture
def world(database: Database) -> World:
    made = World(database)
    for name in ("cook", "baker", "waiter"):
        made.specialists.register(card(name, name=name.capitalize()))
    return made


# --- what exists for whom ---------------------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_a_channel_of_an_organisation_does_not_exist_for_another(world: World) -> None:
    channel = made(world, by=ANN)
    posted = said(world, "@cook hello", ANN)
    bob = of(world, BOB)
    asks: tuple[Callable[[str], object], ...] = (
        bob.get,
        bob.messages,
        bob.stats,
        lambda ref: bob.message(ref, posted.id),
        lambda ref: bob.post(ref, NewMessage(content="x")),
        lambda ref: bob.join(ref, JoinRequest(specialist="waiter")),
        bob.delete,
        lambda ref: bob.leave(ref, "cook"),
        lambda ref: bob.mute(ref, "cook", MuteRequest()),
        lambda ref: bob.mark(ref, posted.id, MarkRequest()),
        lambda ref: bob.change_settings(ref, SettingsRequest()),
        lambda ref: bob.processed(ref, posted.id, "a", AttachmentRequest(state=AttachmentState.FAILED)),
    )
    for ask in asks:
        for ref in (channel.id, "kitchen"):
            with pytest.raises(NotFound) as refused:
                ask(ref)
            assert str(refused.value) == f"There is no channel {ref!r}. There are no channels yet."
    assert bob.page().items == ()
    assert [item.name for item in of(world, ANN).page().items] == ["kitchen"]
    assert [item.name for item in of(world).page().items] == ["kitchen"]
    assert made(world, by=BOB).id != channel.id, "names are an organisation's own"


def test_specialists_who_do_not_exist_for_its_creator_take_no_part(world: World) -> None:
    of_bob = world.access.as_(BOB)[Specialists]
    of_bob.register(card("spy", visibility="private"))
    for more in ({"participants": ("spy",)}, {"primary": "spy"}, {"participants": ("nobody",)}):
        with pytest.raises(Invalid, match="there is no specialist"):
            made(world, by=ANN, **more)
    made(world, by=ANN)
    with pytest.raises(Invalid):
        of(world, ANN).join("kitchen", JoinRequest(specialist="spy"))


def test_a_specialist_who_was_removed_is_asked_nothing(world: World) -> None:
    made(world)
    world.specialists.remove("cook")
    (answer,) = said(world, "@cook soup").answers
    assert (answer.state, answer.skipped) == ("skipped", "gone")


# --- who takes part ---------------------------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_who_takes_part_changes_and_the_version_rises(world: World) -> None:
    channel = made(world, primary="cook")
    assert [participant.id for participant in channel.participants] == ["baker", "cook", "operator"]
    channels = of(world)
    assert channels.join("kitchen", JoinRequest(specialist="waiter")).version == 2
    assert channels.join("kitchen", JoinRequest(specialist="waiter")).version == 2
    left = channels.leave("kitchen", "cook")
    assert (left.version, left.primary) == (3, None)
    assert channels.leave("kitchen", "cook").version == 3
    assert said(world, "@cook soup").decision.reason is TriageReason.NO_TRIGGER
    with pytest.raises(Conflict):
        made(world)
    with pytest.raises(StaleVersion):
        channels.change_settings("kitchen", SettingsRequest(), versions={1})
    changed = channels.change_settings("kitchen", SettingsRequest(primary="cook"), versions={3})
    assert (changed.version, changed.primary) == (4, "cook")
    assert "cook" in {participant.id for participant in changed.participants}


def test_who_writes_takes_part(world: World) -> None:
    made(world)
    said(world, "hello", Principal("eve", Role.OPERATE))
    assert "eve" in {participant.id for participant in of(world).get("kitchen").participants}


def test_only_an_administrator_of_the_daemon_names_its_secrets(world: World) -> None:
    hooked = ChannelSettings(webhook=WebhookSettings(kind=WebhookKind.SLACK, secret_env="SLACK_SECRET"))
    admin = Principal("boss", Role.ADMIN, "acme")
    for by in (ANN, admin):
        with pytest.raises(Forbidden):
            made(world, hooked, by=by)
    made(world, by=ANN)
    with pytest.raises(Forbidden):
        of(world, ANN).change_settings("kitchen", SettingsRequest(settings=hooked))
    of(world).change_settings("kitchen", SettingsRequest(settings=hooked))
    kept = of(world, ANN).change_settings("kitchen", SettingsRequest(settings=hooked, primary="cook"))
    assert kept.settings.webhook == hooked.webhook
    for wrong in (WebhookSettings(), WebhookSettings(secret_env="A", secret_file="/b")):
        with pytest.raises(Invalid):
            of(world).change_settings("kitchen", SettingsRequest(settings=ChannelSettings(webhook=wrong)))


# --- deleted ----------------------------------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_a_deleted_channel_takes_its_messages_along_and_its_tasks_go_on(world: World) -> None:
    channel = made(world)
    name = task_of(said(world, "@cook soup"), world)
    world.tick()
    with pytest.raises(StaleVersion):
        of(world).delete("kitchen", versions=[channel.version + 1])

    of(world).delete("kitchen")

    for ask in (of(world).get, of(world).messages, of(world).delete):
        with pytest.raises(NotFound):
            ask("kitchen")
    world.end(name, text="Soup.")
    world.tick()
    world.answers.run_once()
    assert (world.state(name), world.faults.all()) == ("COMPLETED", [])


@pytest.mark.both_databases
def test_what_is_written_after_a_channel_was_deleted_is_decided_anew(world: World) -> None:
    """SQLite gives the ids of the deleted messages again, and decisions on those stay."""
    made(world)
    before = said(world, "@cook soup")
    of(world).delete("kitchen")
    made(world)

    after = said(world, "@baker bread")

    assert (before.decision.agents, after.decision.agents) == (("cook",), ("baker",))
    kept = world.access.as_(OPERATOR)[Decisions].page(DecisionFilter(kind="triage"), None, 10).items
    assert {decision.specialist for decision in kept} == {"baker", "cook"}


# --- sent again, and broken off ---------------------------------------------------------------------------------------


def test_a_message_that_says_nothing_is_refused(world: World) -> None:
    made(world)
    for text in ("", " \n"):
        with pytest.raises(Invalid, match="content: is empty; write a text"):
            said(world, text)
    said(world, "", attachments=[{"id": "a", "name": "log.txt", "media_type": "text/plain", "text": "error 7"}])
    assert len(told(world)) == 1


def test_a_message_sent_again_is_there_once(world: World) -> None:
    made(world)
    channels, key = of(world), RequestKey("k", "f")
    first = channels.post("kitchen", NewMessage(content="@cook soup"), key=key)
    assert channels.post("kitchen", NewMessage(content="@cook soup"), key=key) == first
    with pytest.raises(KeyReused):
        channels.post("kitchen", NewMessage(content="other"), key=RequestKey("k", "g"))
    assert len(told(world)) == len(world.names()) == 1


def test_a_message_from_outside_is_there_once(world: World) -> None:
    made(world)
    written = PostedMessage("slack:U1", NewMessage(content="@cook soup"), username="U1", external_id="Ev1")
    assert of(world).write("kitchen", written).id == of(world).write("kitchen", written).id
    assert len(told(world)) == len(world.names()) == 1


@pytest.mark.parametrize(
    "point", ["answer-due", "store-begin", "store-before-commit", "store-after-commit", "answer-given"]
)
def test_an_answer_is_given_once_wherever_the_daemon_ends(world: World, point: str) -> None:
    made(world)
    name = task_of(said(world, "@cook soup"), world)
    world.tick()
    world.end(name, text="Soup.")
    world.tick()
    reached: list[str] = []

    def hook(passed: str) -> None:
        if passed == point and not reached:
            reached.append(passed)
            raise RuntimeError(point)

    crashpoint.install(hook)
    try:
        for _ in range(3):
            try:
                world.answers.run_once()
            except Exception:
                world.restarted_daemon()
    finally:
        crashpoint.install(None)

    assert reached == [point]
    assert told(world)[1:] == [("cook", "assistant", "Soup.")]


def test_an_answer_to_what_is_not_in_the_channel_is_refused(world: World) -> None:
    made(world)
    made(world, name="bar")
    other = of(world).post("bar", NewMessage(content="x"))
    with pytest.raises(Invalid, match="there is no message"):
        said(world, "y", reply_to=other.id)
    with pytest.raises(NotFound):
        of(world).message("kitchen", other.id)


# --- how it does ------------------------------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_what_operators_say_is_counted_by_rule_and_strategies_are_compared(world: World) -> None:
    shadow = TriageSettings(primary=PrimaryRule.ALWAYS)
    made(world, OFF.model_copy(update={"shadow": shadow}), primary="cook")
    quiet, loud = said(world, "hello"), said(world, "@baker bread")
    said(world, "@baker more")
    channels = of(world)
    channels.mark("kitchen", quiet.id, MarkRequest(verdict=MarkVerdict.SHOULD_HAVE))
    channels.mark("kitchen", loud.id, MarkRequest(verdict=MarkVerdict.SHOULD_NOT_HAVE))
    channels.mark("kitchen", loud.id, MarkRequest(verdict=MarkVerdict.RIGHT))
    assert channels.message("kitchen", loud.id).marked_by == "operator"

    stats = channels.stats("kitchen")

    assert (stats.messages, stats.shadowed) == (3, 3)
    by_rule = {rule.reason: rule for rule in stats.rules}
    nobody, mentioned = by_rule[TriageReason.NO_TRIGGER], by_rule[TriageReason.DIRECT_MENTION]
    assert (nobody.messages, nobody.should_have, nobody.shadow_differs) == (1, 1, 1)
    assert (mentioned.messages, mentioned.right, mentioned.should_not_have, mentioned.shadow_differs) == (2, 1, 0, 0)
    both = stats.compared
    assert (both.marked, both.right, both.shadow_right) == (2, 1, 2)
    channels.mark("kitchen", loud.id, MarkRequest(verdict=MarkVerdict.SHOULD_NOT_HAVE))
    both = channels.stats("kitchen").compared
    assert (both.marked, both.right, both.shadow_right) == (2, 0, 1)
    channels.mark("kitchen", quiet.id, MarkRequest())
    assert channels.message("kitchen", quiet.id).verdict is None


@pytest.mark.both_databases
def test_messages_are_paged_newest_first(world: World) -> None:
    made(world)
    for n in range(5):
        said(world, str(n))
    channels = of(world)
    first = channels.messages("kitchen", None, 2)
    second = channels.messages("kitchen", first.next_cursor, 2)
    third = channels.messages("kitchen", second.next_cursor, 2)
    assert [item.content for page in (first, second, third) for item in page.items] == ["4", "3", "2", "1", "0"]
    assert third.next_cursor is None
