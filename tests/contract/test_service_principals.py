"""Who asks: what exists for a principal of an organisation, on every store, tried in every way there is to ask."""

from collections.abc import Callable

import pytest

from claudomator_py.domain.errors import Ambiguous, Conflict, Forbidden, Invalid, NotFound, ServiceError
from claudomator_py.domain.inputs import MARKER
from claudomator_py.domain.principal import INBOX, OPERATOR, Principal, RequestKey, Role
from claudomator_py.domain.requests import RestartRequest, TaskFilter
from claudomator_py.domain.units import DAY_MS, HOUR_MS, format_instant
from claudomator_py.resources.access import TokenRequest
from claudomator_py.resources.access.service import AccessTokens
from claudomator_py.resources.events.service import Events
from claudomator_py.resources.overview.service import Overview
from claudomator_py.resources.runs.logs import LogPosition, Logs
from claudomator_py.resources.runs.service import Runs
from claudomator_py.resources.schedules.service import Schedules
from claudomator_py.resources.tasks import AnswerRequest, ApproveRequest, RejectRequest
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.store.database import Database
from tests.fakes.steps import spec
from tests.fakes.world import World

ANN = Principal("ann", Role.OPERATE, "acme")
BOB = Principal("bob", Role.OPERATE, "bolt")
CARL = Principal("carl", Role.OPERATE)


@pytest.fixture
def world(database: Database) -> World:
    return World(database, routes=True)


def unknown(ask: Callable[[], object]) -> str:
    """What is said of a thing that does not exist."""
    with pytest.raises(NotFound) as refused:
        ask()
    return str(refused.value)


def test_what_one_is_told_of_the_whole_is_never_told_to_another(world: World) -> None:
    """Nothing is written in between, so that what was counted for one is at hand when the next one asks."""
    for who, names in ((ANN, "abc"), (BOB, "d")):
        for name in names:
            world.access.as_(who)[Tasks].submit(spec(name, agent={"type": "claude"}))
    world.tick()
    run = world.live("d")

    def told(by: Principal) -> tuple[int, list[str], int]:
        status = world.access.as_(by)[Overview].status()
        shown = [task.name for task in (*status.running, *status.queued)]
        return sum(status.counts.values()), sorted(shown), status.spent_today.runs

    everybody = [OPERATOR, ANN, BOB, Principal(f"run:{run.id}", Role.RUN, "bolt", run.id), CARL, BOB, ANN, OPERATOR]
    began = len(world.running()) - 1
    expected = {"acme": (3, ["a", "b", "c"], began), "bolt": (1, ["d"], 1), None: (4, ["a", "b", "c", "d"], began + 1)}
    assert [told(by) for by in everybody] == [expected[by.organisation] for by in everybody]
    world.access.as_(BOB)[Tasks].submit(spec("e"))
    assert [told(by)[0] for by in (ANN, BOB, CARL)] == [3, 2, 5]


@pytest.mark.both_databases
def test_tasks_of_others_are_not_among_those_that_a_list_does_not_name(world: World) -> None:
    """Of each list, so that both databases are asked all of it."""
    for who, number in ((ANN, 7), (BOB, 5)):
        for text in range(number):
            tasks = world.access.as_(who)[Tasks]
            tasks.submit(spec(f"{who.id}-waits-{text}", depends_on=["nothing"]))
            _, refused = (tasks.submit(spec(f"{who.id}-{name}-{text}", approval=True)) for name in ("asks", "no"))
            world.tick()
            world.service.reject(refused.id, RejectRequest(reason="Not now."))
    for by, number in ((OPERATOR, 12), (ANN, 7), (BOB, 5), (OPERATOR, 12)):
        status = world.access.as_(by)[Overview].status(2)
        lists = (status.needs_you, status.problems, status.queued)
        assert [sum(status.unlisted.get(task.id, 0) for task in entry) for entry in lists] == [number - 2] * 3
        assert sum(status.unlisted.values()) == 3 * (number - 2)


@pytest.mark.both_databases
def test_a_task_of_others_is_a_task_that_does_not_exist(world: World) -> None:
    task = world.access.as_(ANN)[Tasks].submit(spec("secret-plan"))
    world.tick()
    run = world.live("secret-plan")
    bob = world.access.as_(BOB)
    for ref in (task.id, task.id[:8], "secret-plan"):
        for ask in (
            lambda ref=ref: bob[Tasks].get(ref),
            lambda ref=ref: bob[Tasks].why(ref),
            lambda ref=ref: bob[Tasks].runs(ref),
            lambda ref=ref: bob[Tasks].cancel(ref),
            lambda ref=ref: bob[Tasks].cancel(ref, versions=1),
            lambda ref=ref: bob[Tasks].restart(ref, RestartRequest(force=True)),
            lambda ref=ref: bob[Tasks].answer(ref, AnswerRequest(text="x")),
            lambda ref=ref: bob[Tasks].approve(ref, ApproveRequest()),
            lambda ref=ref: bob[Tasks].reject(ref, RejectRequest()),
            lambda ref=ref: bob[Events].event_filter(ref, ()),
        ):
            assert unknown(ask) == f"There is no task {ref!r}. There are no tasks yet."
    looks: tuple[Callable[[], object], ...] = (
        lambda: bob[Runs].get(run.id),
        lambda: bob[Runs].log(run.id, "stdout", 0, 10),
        lambda: bob[Logs].open_log(run.id, "stdout", "text", LogPosition()),
    )
    for look in looks:
        assert unknown(look).startswith(f"There is no run {run.id!r}.")
    assert world.access.as_(ANN)[Tasks].get(task.id).organisation == "acme"
    assert world.access.as_(ANN)[Runs].get(run.id).id == run.id
    assert world.access.as_(CARL)[Tasks].get("secret-plan").creator == "ann"
    assert world.task("secret-plan").state == "RUNNING"


@pytest.mark.both_databases
def test_nothing_of_others_is_listed_counted_or_followed(world: World) -> None:
    for number in range(3):
        world.access.as_(ANN)[Tasks].submit(spec(f"a{number}"))
    world.access.as_(BOB)[Tasks].submit(spec("b"))
    world.submit("mine")
    world.tick()
    seen = {by.id: world.access.as_(by) for by in (ANN, BOB, CARL)}
    assert {name: len(user[Tasks].page(TaskFilter(), None, 50).items) for name, user in seen.items()} == {
        "ann": 3,
        "bob": 1,
        "carl": 5,
    }
    page = seen["ann"][Tasks].page(TaskFilter(), None, 2)
    assert page.next_cursor is not None
    # The place in a list that somebody else has named leads on in one's own.
    assert {item.name for item in seen["bob"][Tasks].page(TaskFilter(), page.next_cursor, 50).items} <= {"b"}
    assert [item.name for item in seen["carl"][Tasks].page(TaskFilter(creator="bob"), None, 50).items] == ["b"]
    for name, number in (("ann", 3), ("bob", 1), ("carl", 5)):
        status = seen[name][Overview].status()
        assert sum(status.counts.values()) == number
        assert len(status.running) + len(status.queued) == status.total("running") + status.total("queued") == number
        assert status.spent_today.runs == len(status.running)
    live = seen["bob"][Events]
    record = live.events(live.event_filter(None, ()), 0, 500).items
    assert {event.task_id for event in record} == {seen["bob"][Tasks].get("b").id}
    assert seen["bob"][Events].last_events(seen["bob"][Events].event_filter(None, (), "ann"), 50).items == ()


@pytest.mark.both_databases
def test_a_name_means_one_of_ones_own(world: World) -> None:
    world.access.as_(ANN)[Tasks].submit(spec("build"))
    waiting = world.access.as_(BOB)[Tasks].submit(spec("deploy", depends_on=["build"]))
    assert [(entry.name, entry.task_id) for entry in waiting.depends_on] == [("build", None)]
    world.submit("build")
    assert world.access.as_(BOB)[Tasks].get("deploy").depends_on[0].task_id is None
    own = world.access.as_(BOB)[Tasks].submit(spec("build"))
    assert world.access.as_(BOB)[Tasks].get("deploy").depends_on[0].task_id == own.id
    assert world.access.as_(ANN)[Tasks].get("build").id != own.id
    # No cycle is told of that goes through what others have.
    assert world.access.as_(ANN)[Tasks].submit(spec("test", depends_on=["deploy"])).depends_on[0].task_id is None


def test_who_works_in_a_directory_is_not_told_to_others(world: World) -> None:
    world.access.as_(ANN)[Tasks].submit(spec("secret-plan", working_dir="/tmp"))
    world.tick()
    world.access.as_(BOB)[Tasks].submit(spec("waits", working_dir="/tmp"))
    assert world.access.as_(BOB)[Tasks].get("waits").reason == "workdir"
    assert "secret-plan" not in world.access.as_(BOB)[Tasks].why("waits").model_dump_json()
    assert "secret-plan" in world.access.as_(CARL)[Tasks].why("waits").model_dump_json()


def test_for_whom_a_directory_is_kept_is_not_told_to_others(world: World) -> None:
    world.access.as_(ANN)[Tasks].submit(spec("secret-plan", working_dir="/tmp"))
    world.tick()
    world.end("secret-plan", text=f"{MARKER} Which one?")
    world.tick()
    world.access.as_(BOB)[Tasks].submit(spec("waits", working_dir="/tmp"))
    text = world.access.as_(BOB)[Tasks].why("waits").model_dump_json()
    assert world.access.as_(BOB)[Tasks].get("waits").reason == "kept"
    assert "/tmp is reserved for another task" in text
    assert "secret-plan" not in text
    assert "secret-plan" in world.access.as_(CARL)[Tasks].why("waits").model_dump_json()


@pytest.mark.both_databases
def test_schedules_are_their_organisations(world: World) -> None:
    nightly = spec("nightly", schedule="0 3 * * *")
    for by in (ANN, BOB):
        assert world.access.as_(by)[Schedules].add(nightly).organisation == by.organisation
    assert len(world.access.as_(CARL)[Schedules].all()) == 2
    with pytest.raises(Ambiguous):
        world.access.as_(CARL)[Schedules].get("nightly")
    task = world.access.as_(ANN)[Schedules].run("nightly")
    assert (task.creator, task.organisation) == ("ann", "acme")
    unknown(lambda: world.access.as_(BOB)[Tasks].get(task.id))
    assert [schedule.name for schedule in world.access.as_(BOB)[Overview].status().schedules] == ["nightly"]
    world.access.as_(BOB)[Schedules].delete("nightly")
    unknown(lambda: world.access.as_(BOB)[Schedules].pause("nightly"))
    assert world.access.as_(CARL)[Schedules].get("nightly").creator == "ann"


@pytest.mark.both_databases
def test_a_key_of_one_says_nothing_to_another(world: World) -> None:
    key = RequestKey("k", "the same question")
    first = world.access.as_(ANN)[Tasks].submit(spec("t"), key=key)
    other = world.access.as_(BOB)[Tasks].submit(spec("t"), key=key)
    assert first.id != other.id
    world.restarted_daemon()
    assert world.access.as_(ANN)[Tasks].submit(spec("t"), key=key) == first
    assert world.access.as_(BOB)[Tasks].submit(spec("t"), key=key) == other


@pytest.mark.both_databases
def test_events_say_who_caused_them(world: World) -> None:
    world.take("/in/f.yaml", spec("of-a-file"))
    task = world.access.as_(ANN)[Tasks].submit(spec("t"))
    world.tick()
    world.access.as_(CARL)[Tasks].cancel(task.id)
    live = world.events
    causes = {event.kind: event.by for event in live.events(live.event_filter("t", ()), 0, 100).items}
    assert (causes["accepted"], causes["cancel_requested"]) == ("ann", "carl")
    started = [event.by for event in live.events(live.event_filter("t", ("state",)), 0, 100).items]
    assert None in started, "what the daemon does by itself is nobody's request"
    assert world.task("of-a-file").creator == INBOX.id
    assert {item.by for item in live.events(live.event_filter("of-a-file", ("accepted",)), 0, 9).items} == {INBOX.id}
    world.submit("u")
    assert world.task("u").creator == OPERATOR.id


def test_what_troubles_the_daemon_is_not_told_to_an_organisation(world: World) -> None:
    bob = world.access.as_(BOB)
    assert (bob[Overview].readiness().checks, bob[Overview].status().trouble, bob[Overview].status().inbox) == (
        (),
        (),
        (),
    )
    assert bob[Overview].inbox_page(None, 10).total == 0
    assert world.access.as_(CARL)[Overview].readiness().checks


@pytest.mark.both_databases
def test_a_run_has_its_own_task_and_run(world: World) -> None:
    task = world.access.as_(ANN)[Tasks].submit(spec("own"))
    world.access.as_(ANN)[Tasks].submit(spec("other"))
    world.tick()
    run, other = world.live("own"), world.live("other")
    by = world.access.as_(Principal(f"run:{run.id}", Role.RUN, "acme", run.id))
    assert (by[Tasks].get(task.id).id, by[Runs].get(run.id).id) == (task.id, run.id)
    for ask in (
        lambda: by[Tasks].get("other"),
        lambda: by[Runs].get(other.id),
        lambda: by[Tasks].cancel("other"),
    ):
        with pytest.raises(ServiceError):
            ask()
    assert {item.name for item in by[Tasks].page(TaskFilter(), None, 9).items} == {"own"}


def test_a_token_is_good_until_it_expires_or_is_revoked(world: World) -> None:
    made = world.tokens.create(TokenRequest(name="dash", role="read", expires="1d"))
    holder = world.keyring.holder(made.token)
    assert holder == Principal("dash", Role.READ)
    world.now_ms += DAY_MS - 1
    assert world.keyring.holder(made.token) == holder
    world.now_ms += 1
    assert (world.keyring.holder(made.token), world.keyring.named("dash")) == (None, None)
    other = world.tokens.create(TokenRequest(name="other", role="admin", expires="never"))
    assert other.expires_at is None
    world.restarted_daemon()
    assert world.keyring.holder(other.token) == Principal("other", Role.ADMIN)
    assert world.tokens.revoke("other").revoked_at is not None
    assert world.keyring.holder(other.token) is None
    assert world.keyring.holder(f"{other.token}x") is None


def test_that_a_token_is_used_is_written_once_an_hour(world: World) -> None:
    made = world.tokens.create(TokenRequest(name="dash", role="read"))

    def used() -> str | None:
        world.database.write(lambda _: None)  # what was queued before is done
        return world.tokens.all()[0].used_at

    assert used() is None
    begin = world.now_ms
    for after_ms, expected in ((0, begin), (HOUR_MS - 1, begin), (HOUR_MS, begin + HOUR_MS)):
        world.now_ms = begin + after_ms
        world.keyring.holder(made.token)
        assert used() == format_instant(expected)


def test_nobody_gives_out_more_than_they_have(world: World) -> None:
    world.tokens.create(TokenRequest(name="boss", role="admin", organisation="acme", expires="1d"))
    boss = world.keyring.named("boss")
    assert boss is not None
    tokens = world.access.as_(boss)[AccessTokens]
    assert tokens.create(TokenRequest(name="one", role="operate")).organisation == "acme"
    for wanted in ({"organisation": "bolt"}, {"expires": "never"}, {"expires": "25h"}):
        with pytest.raises((Forbidden, Invalid)):
            tokens.create(TokenRequest.model_validate({"name": "two", "role": "read", **wanted}))
    with pytest.raises(Forbidden):
        world.access.as_(ANN)[AccessTokens].create(TokenRequest(name="two", role="admin"))
    with pytest.raises(NotFound):
        world.access.as_(Principal("other", Role.ADMIN, "bolt"))[AccessTokens].revoke("one")
    tokens.revoke("one")
    with pytest.raises(Conflict):
        tokens.create(TokenRequest(name="one", role="read"))
    live = world.events
    record = live.events(live.event_filter(None, ("token_created", "token_revoked")), 0, 9).items
    assert [event.by for event in record] == ["operator", "boss", "boss"]
