"""Who asks: what exists for a principal of an organisation, on every store, tried in every way there is to ask."""

from collections.abc import Callable

import pytest
from pydantic import ValidationError

from claudomator_py.api.page.task_model import task_page_of
from claudomator_py.domain.errors import Ambiguous, Conflict, Forbidden, Invalid, NotFound, ServiceError
from claudomator_py.domain.handing_on import HANDOFF_MARKER
from claudomator_py.domain.inputs import MARKER
from claudomator_py.domain.outcome import HandoffRequest
from claudomator_py.domain.principal import INBOX, OPERATOR, Principal, RequestKey, Role
from claudomator_py.domain.units import DAY_MS, HOUR_MS, format_instant
from claudomator_py.domain.views import (
    AnswerRequest,
    ApproveRequest,
    RejectRequest,
    RestartRequest,
    TaskFilter,
    TokenRequest,
)
from claudomator_py.domain.views.decisions import DecisionFilter
from claudomator_py.queries.log_stream import LogPosition
from claudomator_py.routing.role import agent_of
from claudomator_py.service.access import Granted
from claudomator_py.store.database import Database
from tests.fakes.cards import card
from tests.fakes.world import World, spec

ANN = Principal("ann", Role.OPERATE, "acme")
BOB = Principal("bob", Role.OPERATE, "bolt")
CARL = Principal("carl", Role.OPERATE)
EVE = Principal("eve", Role.OPERATE, "acme")


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


def unknown(ask: Callable[[], object]) -> str:
    """What is said of a thing that does not exist."""
    with pytest.raises(NotFound) as refused:
        ask()
    return str(refused.value)


@pytest.mark.both_databases
def test_a_task_of_others_is_a_task_that_does_not_exist(world: World) -> None:
    task = world.access.as_(ANN).service.submit(spec("secret-plan"))
    world.tick()
    run = world.live("secret-plan")
    bob = world.access.as_(BOB)
    for ref in (task.id, task.id[:8], "secret-plan"):
        for ask in (
            lambda ref=ref: bob.queries.task(ref),
            lambda ref=ref: bob.queries.why(ref),
            lambda ref=ref: bob.queries.runs(ref),
            lambda ref=ref: bob.service.cancel(ref),
            lambda ref=ref: bob.service.cancel(ref, if_version=1),
            lambda ref=ref: bob.service.restart(ref, RestartRequest(force=True)),
            lambda ref=ref: bob.service.answer(ref, AnswerRequest(text="x")),
            lambda ref=ref: bob.service.approve(ref, ApproveRequest()),
            lambda ref=ref: bob.service.reject(ref, RejectRequest()),
            lambda ref=ref: bob.queries.live.event_filter(ref, ()),
        ):
            assert unknown(ask) == f"There is no task {ref!r}. There are no tasks yet."
    looks: tuple[Callable[[], object], ...] = (
        lambda: bob.queries.run(run.id),
        lambda: bob.queries.log(run.id, "stdout", 0, 10),
        lambda: bob.queries.live.open_log(run.id, "stdout", "text", LogPosition()),
    )
    for look in looks:
        assert unknown(look).startswith(f"There is no run {run.id!r}.")
    assert world.access.as_(ANN).queries.task(task.id).organisation == "acme"
    assert world.access.as_(ANN).queries.run(run.id).id == run.id
    assert world.access.as_(CARL).queries.task("secret-plan").creator == "ann"
    assert world.task("secret-plan").state == "RUNNING"


@pytest.mark.both_databases
def test_nothing_of_others_is_listed_counted_or_followed(world: World) -> None:
    for number in range(3):
        world.access.as_(ANN).service.submit(spec(f"a{number}"))
    world.access.as_(BOB).service.submit(spec("b"))
    world.submit("mine")
    world.tick()
    seen = {by.id: world.access.as_(by) for by in (ANN, BOB, CARL)}
    assert {name: len(desk.queries.tasks(TaskFilter(), None, 50).items) for name, desk in seen.items()} == {
        "ann": 3,
        "bob": 1,
        "carl": 5,
    }
    page = seen["ann"].queries.tasks(TaskFilter(), None, 2)
    assert page.next_cursor is not None
    # The place in a list that somebody else has named leads on in one's own.
    assert {one.name for one in seen["bob"].queries.tasks(TaskFilter(), page.next_cursor, 50).items} <= {"b"}
    assert [one.name for one in seen["carl"].queries.tasks(TaskFilter(creator="bob"), None, 50).items] == ["b"]
    for name, number in (("ann", 3), ("bob", 1), ("carl", 5)):
        status = seen[name].queries.status()
        assert sum(status.counts.values()) == number
        assert len(status.running) + len(status.queued) == status.total("running") + status.total("queued") == number
        assert status.spent_today.runs == len(status.running)
    told = seen["bob"].queries.live.events(seen["bob"].queries.live.event_filter(None, ()), 0, 500).items
    assert {event.task_id for event in told} == {seen["bob"].queries.task("b").id}
    assert seen["bob"].queries.live.last_events(seen["bob"].queries.live.event_filter(None, (), "ann"), 50).items == ()


@pytest.mark.both_databases
def test_a_name_means_one_of_ones_own(world: World) -> None:
    world.access.as_(ANN).service.submit(spec("build"))
    waiting = world.access.as_(BOB).service.submit(spec("deploy", depends_on=["build"]))
    assert [(one.name, one.task_id) for one in waiting.depends_on] == [("build", None)]
    world.submit("build")
    assert world.access.as_(BOB).queries.task("deploy").depends_on[0].task_id is None
    own = world.access.as_(BOB).service.submit(spec("build"))
    assert world.access.as_(BOB).queries.task("deploy").depends_on[0].task_id == own.id
    assert world.access.as_(ANN).queries.task("build").id != own.id
    # No circle is told of that goes through what others have.
    assert world.access.as_(ANN).service.submit(spec("test", depends_on=["deploy"])).depends_on[0].task_id is None


def test_who_works_in_a_directory_is_not_told_to_others(world: World) -> None:
    world.access.as_(ANN).service.submit(spec("secret-plan", working_dir="/tmp"))
    world.tick()
    world.access.as_(BOB).service.submit(spec("waits", working_dir="/tmp"))
    assert world.access.as_(BOB).queries.task("waits").reason == "workdir"
    assert "secret-plan" not in world.access.as_(BOB).queries.why("waits").model_dump_json()
    assert "secret-plan" in world.access.as_(CARL).queries.why("waits").model_dump_json()


def test_for_whom_a_directory_is_kept_is_not_told_to_others(world: World) -> None:
    world.access.as_(ANN).service.submit(spec("secret-plan", working_dir="/tmp"))
    world.tick()
    world.end("secret-plan", text=f"{MARKER} Which one?")
    world.tick()
    world.access.as_(BOB).service.submit(spec("waits", working_dir="/tmp"))
    told = world.access.as_(BOB).queries.why("waits").model_dump_json()
    assert world.access.as_(BOB).queries.task("waits").reason == "kept"
    assert "/tmp is reserved for another task" in told
    assert "secret-plan" not in told
    assert "secret-plan" in world.access.as_(CARL).queries.why("waits").model_dump_json()


@pytest.mark.both_databases
def test_schedules_are_their_organisations(world: World) -> None:
    nightly = spec("nightly", schedule="0 3 * * *")
    for by in (ANN, BOB):
        assert world.access.as_(by).schedules.add(nightly).organisation == by.organisation
    assert len(world.access.as_(CARL).schedules.all()) == 2
    with pytest.raises(Ambiguous):
        world.access.as_(CARL).schedules.one("nightly")
    task = world.access.as_(ANN).schedules.run("nightly")
    assert (task.creator, task.organisation) == ("ann", "acme")
    unknown(lambda: world.access.as_(BOB).queries.task(task.id))
    assert [one.name for one in world.access.as_(BOB).queries.status().schedules] == ["nightly"]
    world.access.as_(BOB).schedules.delete("nightly")
    unknown(lambda: world.access.as_(BOB).schedules.pause("nightly"))
    assert world.access.as_(CARL).schedules.one("nightly").creator == "ann"


@pytest.mark.both_databases
def test_a_key_of_one_says_nothing_to_another(world: World) -> None:
    key = RequestKey("k", "the same question")
    first = world.access.as_(ANN).service.submit(spec("t"), key=key)
    other = world.access.as_(BOB).service.submit(spec("t"), key=key)
    assert first.id != other.id
    world.restarted_daemon()
    assert world.access.as_(ANN).service.submit(spec("t"), key=key) == first
    assert world.access.as_(BOB).service.submit(spec("t"), key=key) == other


@pytest.mark.both_databases
def test_events_say_who_caused_them(world: World) -> None:
    world.take("/in/f.yaml", spec("of-a-file"))
    task = world.access.as_(ANN).service.submit(spec("t"))
    world.tick()
    world.access.as_(CARL).service.cancel(task.id)
    live = world.queries.live
    causes = {event.kind: event.by for event in live.events(live.event_filter("t", ()), 0, 100).items}
    assert (causes["accepted"], causes["cancel_requested"]) == ("ann", "carl")
    started = [event.by for event in live.events(live.event_filter("t", ("state",)), 0, 100).items]
    assert None in started, "what the daemon does by itself is nobody's request"
    assert world.task("of-a-file").creator == INBOX.id
    assert {one.by for one in live.events(live.event_filter("of-a-file", ("accepted",)), 0, 9).items} == {INBOX.id}
    world.submit("u")
    assert world.task("u").creator == OPERATOR.id


def test_what_troubles_the_daemon_is_not_told_to_an_organisation(world: World) -> None:
    bob = world.access.as_(BOB)
    assert (bob.queries.readiness().checks, bob.queries.status().trouble, bob.queries.status().inbox) == ((), (), ())
    assert bob.queries.inbox_problems(None, 10).total == 0
    assert world.access.as_(CARL).queries.readiness().checks


def test_the_agent_that_a_hidden_specialist_is_exists_for_nobody_else(world: World) -> None:
    hidden = card("shepherd", url="ws-agent://shepherd", visibility="private")
    world.access.as_(ANN).specialists.register(hidden)
    world.registry.reach([agent_of(hidden)])
    ann, bob = world.access.as_(ANN), world.access.as_(BOB)

    assert "hub:shepherd" in {one.name for one in ann.queries.agents()}
    assert "hub:shepherd" not in {one.name for one in (*bob.queries.agents(), *bob.queries.status().agents)}
    said = []
    for name in ("shepherd", "sheperd"):
        with pytest.raises(Invalid) as refused:
            bob.service.submit(spec(f"t-{name}", agent={"type": f"hub:{name}", "strict": True}))
        said.append(refused.value.detail.replace(name, "X"))
    assert said[0] == said[1]
    assert "write `specialist: X` instead" in said[0]
    with pytest.raises(ValidationError, match="is a specialist, not an agent"):
        card("mine", allowed_agents=["hub:shepherd"])


def told_of(desk: Granted, name: str) -> str:
    """All that a principal can read that is about that task, as one text."""
    listed = desk.queries.decisions(DecisionFilter(task=name), None, 50).items
    shadows = desk.queries.decisions(DecisionFilter(task=name, kind="shadow"), None, 50).items
    live = desk.queries.live
    runs = desk.queries.runs(name)
    pages = [task_page_of(desk.queries.why(name), runs, run.id) for run in runs]
    told = [desk.run_requests.handoff(run.id) for run in runs]
    answers = [
        *(desk.queries.task(name), desk.queries.why(name), desk.queries.status(), *desk.queries.agents(), *runs),
        *(desk.queries.run(run.id) for run in runs),
        *desk.queries.tasks(TaskFilter(), None, 50).items,
        *(*listed, *shadows, *(desk.queries.decision(one.id) for one in listed)),
        *(desk.queries.explained(one.id) for one in listed),
        *live.events(live.event_filter(name, ()), 0, 500).items,
        *live.last_events(live.event_filter(None, ()), 500).items,
        *(*told, desk.policy.approvals(), desk.learned.stats(), desk.learned.all(), desk.learned.labelled()),
    ]
    return "\n".join([*(one.model_dump_json() for one in answers), *map(repr, pages)])


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("end", "via"),
    [("succeeds", "hub"), ("meets a limit", "http"), ("is handed on", "hub"), ("fails", "hub"), ("is cut off", "http")],
)
def test_colleagues_are_not_told_which_hidden_agent_has_their_task(database: Database, end: str, via: str) -> None:
    world = World(database, routing=True)
    skill = {"id": "count-woolly", "name": "Sheep", "examples": ["Count the sheep.", "How many sheep are there?"]}
    url = "ws-agent://shepherd" if via == "hub" else "https://agents.example/sheep"
    hidden = card("shepherd", url=url, visibility="private" if via == "hub" else "shared", skills=[skill])
    ann, eve = world.access.as_(ANN), world.access.as_(EVE)
    (ann.specialists if via == "hub" else world.specialists).register(hidden)
    if via == "http":  # which only an operator's card is reached by
        world.specialists.grant("shepherd", "ann")
    world.specialists.register(card("ben", description="Bakes bread."))
    world.registry.reach([agent_of(hidden)])
    ann.service.submit(spec("tally", instructions="Count the sheep. How many sheep are there?"))
    world.router.route()
    world.tick()
    run = world.live("tally")
    assert (run.agent, run.specialist, run.skill) == (f"{via}:shepherd", "shepherd", "count-woolly")
    assert f"on {via}" in eve.queries.why("tally").sentences[0]

    if end == "succeeds":
        world.succeed("tally")
    elif end == "meets a limit":
        world.limit("tally", reset_at=world.now_ms + HOUR_MS)
    elif end == "is handed on":
        world.end("tally", text=f'{HANDOFF_MARKER} {{"to": "ben"}}')
    elif end == "is cut off":
        server = "https://agents.example:443"
        world.fail("tally", detail=f"{server} answered with HTTP 502: no upstream for AGENTS.example/sheep. Gave up")
    else:
        world.fail("tally", "not_running", detail="its agent is not connected, and hub:shepherd has no wake_url")
    world.tick()

    known = told_of(ann, "tally")
    assert all(word in known for word in (f"{via}:shepherd", '"shepherd"', "count-woolly"))
    told = told_of(eve, "tally")
    assert [word for word in ("shepherd", "woolly", "agents.example", "AGENTS.example") if word in told] == []
    assert any(one.startswith("tally went to somebody else: ") for one in eve.queries.why("tally").sentences)
    if end == "is cut off":
        assert "agents.example:443 answered" in known
        assert "its server answered with HTTP 502: no upstream for its server. Gave up" in told
    assert eve.queries.run(run.id).agent == via
    for desk, finds in ((ann, True), (eve, False)):
        found = desk.queries.tasks(TaskFilter(agent=run.agent), None, 9).items
        decided = desk.queries.decisions(DecisionFilter(agent=run.agent), None, 9).items
        assert (bool(found), bool(decided)) == (finds, finds)
    assert eve.queries.task("tally").spec == ann.queries.task("tally").spec


@pytest.mark.both_databases
@pytest.mark.parametrize("on_input", ["wait", "deny"])
def test_colleagues_are_not_told_to_which_hidden_specialist_a_task_was_not_handed_on(
    database: Database, on_input: str
) -> None:
    world = World(database, routing=True)
    ann, eve = world.access.as_(ANN), world.access.as_(EVE)
    ann.specialists.register(card("shepherd", visibility="private"))
    for name in ("ben", "cid"):
        world.specialists.register(card(name))
    ann.service.submit(spec("tally", specialist="ben", on_input=on_input))
    for by, to in (("ben", "shepherd"), ("shepherd", "cid"), ("cid", "shepherd")):
        world.router.route()
        world.tick()
        assert world.live("tally").specialist == by
        world.end("tally", text=f'Counted.\n{HANDOFF_MARKER} {{"to": "{to}"}}')
        world.tick()
    assert world.state("tally") == ("NEEDS_INPUT approval" if on_input == "wait" else "FAILED handoff_refused")
    assert "It was not handed on to shepherd: shepherd already had it." in told_of(ann, "tally")
    told = told_of(eve, "tally")
    assert "It was not handed on to somebody else: somebody else already had it." in told
    assert "shepherd" not in told


@pytest.mark.both_databases
def test_colleagues_are_not_told_which_hidden_specialist_may_be_meant(database: Database) -> None:
    world = World(database, routing=True)
    ann, eve = world.access.as_(ANN), world.access.as_(EVE)
    skill = {"id": "count-woolly", "name": "Sheep", "examples": ["Count the sheep.", "How many sheep are there?"]}
    ann.specialists.register(card("shepherd", visibility="private", skills=[skill]))
    world.specialists.register(card("ben", description="Bakes bread."))
    ann.service.submit(spec("tally", instructions="please just fix it"))
    world.router.route()
    assert world.state("tally") == "NEEDS_INPUT clarification"
    assert "Candidates: " in (ann.queries.task("tally").reason_text or "")
    assert "shepherd" in told_of(ann, "tally")
    assert "shepherd" not in told_of(eve, "tally")
    assert unknown_to(eve, "shepherd") == unknown_to(eve, "shopherd").replace("shopherd", "shepherd")

    ann.service.answer("tally", AnswerRequest(text="shepherd"))
    world.router.route()
    world.tick()
    assert world.live("tally").specialist == "shepherd"
    assert "answered: shepherd" in told_of(ann, "tally")
    told = told_of(eve, "tally")
    assert "answered: somebody else" in told
    assert [word for word in ("shepherd", "woolly") if word in told] == []


def unknown_to(desk: Granted, name: str) -> str:
    """What is said where that name is the answer to which specialist is meant."""
    with pytest.raises(Invalid) as refused:
        desk.service.answer("tally", AnswerRequest(text=name))
    return refused.value.detail


@pytest.mark.both_databases
def test_a_colleague_cannot_find_out_a_name_by_handing_on_to_it(database: Database) -> None:
    world = World(database, routing=True)
    ann, eve = world.access.as_(ANN), world.access.as_(EVE)
    ann.specialists.register(card("shepherd", visibility="private"))
    world.specialists.register(card("ben"))
    ann.service.submit(spec("tally", specialist="ben"))
    world.router.route()
    world.tick()
    run = world.live("tally")
    said = []
    for name in ("shepherd", "shopherd"):
        with pytest.raises(Conflict) as refused:
            eve.run_requests.hand_on(run.id, HandoffRequest(to=name))
        said.append(refused.value.detail.replace(name, "X"))
    assert said[0] == said[1]
    ann.run_requests.hand_on(run.id, HandoffRequest(to="shepherd"))
    with pytest.raises(Conflict, match="tally goes to somebody else already"):
        eve.run_requests.hand_on(run.id, HandoffRequest(to="ben"))
    assert "shepherd" not in told_of(eve, "tally")


@pytest.mark.both_databases
def test_a_run_has_its_own_task_and_run(world: World) -> None:
    task = world.access.as_(ANN).service.submit(spec("own"))
    world.access.as_(ANN).service.submit(spec("other"))
    world.tick()
    run, other = world.live("own"), world.live("other")
    by = world.access.as_(Principal(f"run:{run.id}", Role.RUN, "acme", run.id))
    assert (by.queries.task(task.id).id, by.queries.run(run.id).id) == (task.id, run.id)
    for ask in (lambda: by.queries.task("other"), lambda: by.queries.run(other.id), lambda: by.service.cancel("other")):
        with pytest.raises(ServiceError):
            ask()
    assert {one.name for one in by.queries.tasks(TaskFilter(), None, 9).items} == {"own"}


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
    tokens = world.access.as_(boss).tokens
    assert tokens.create(TokenRequest(name="one", role="operate")).organisation == "acme"
    for wanted in ({"organisation": "bolt"}, {"expires": "never"}, {"expires": "25h"}):
        with pytest.raises((Forbidden, Invalid)):
            tokens.create(TokenRequest.model_validate({"name": "two", "role": "read", **wanted}))
    with pytest.raises(Forbidden):
        world.access.as_(ANN).tokens.create(TokenRequest(name="two", role="admin"))
    with pytest.raises(NotFound):
        world.access.as_(Principal("other", Role.ADMIN, "bolt")).tokens.revoke("one")
    tokens.revoke("one")
    with pytest.raises(Conflict):
        tokens.create(TokenRequest(name="one", role="read"))
    live = world.queries.live
    told = live.events(live.event_filter(None, ("token_created", "token_revoked")), 0, 9).items
    assert [event.by for event in told] == ["operator", "boss", "boss"]


@pytest.mark.both_databases
@pytest.mark.parametrize("named", [True, False])
def test_a_queued_task_does_not_keep_a_specialist_whose_grant_was_revoked(database: Database, named: bool) -> None:
    world = World(database, routing=True)
    ann, bob = world.access.as_(ANN), world.access.as_(BOB)
    skill = {"id": "count-woolly", "name": "Sheep", "examples": ["Count the sheep.", "How many sheep are there?"]}
    ann.specialists.register(card("shepherd", visibility="shared", skills=[skill]))
    ann.specialists.grant("shepherd", "bob")
    for desk in (ann, bob):
        fields = {"specialist": "shepherd"} if named else {}
        desk.service.submit(spec("tally", instructions="Count the sheep. How many sheep are there?", **fields))
    world.router.route()
    assert bob.queries.task("tally").specialist == "shepherd"

    ann.specialists.revoke("shepherd", "bob")
    world.router.route()
    world.tick()

    told = bob.queries.task("tally")
    assert (told.state, told.specialist) == (("NEEDS_INPUT" if named else "RUNNING"), "shepherd" if named else None)
    if named:
        why = "The task names shepherd, and there is no specialist of that id any more."
        assert (told.reason_text or "").startswith(why)
        assert any(why[1:] in sentence for sentence in bob.queries.why("tally").sentences)
    assert ann.queries.task("tally").specialist == "shepherd"
    assert ann.queries.task("tally").state == "RUNNING"
