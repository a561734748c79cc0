"""Slots are shared among organisations, on every database: who starts, who waits, and what is said of it."""

from typing import Any

import pytest

from claudomator_py.daemon.metering import WaitCount
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.principal import INBOX, OPERATOR, Principal, Role
from claudomator_py.domain.units import DAY_MS
from claudomator_py.lab.replay import Replay, Window
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.schema.settings import Settings
from claudomator_py.store.database import Database
from tests.contract.test_service_metering import measure
from tests.fakes.steps import spec
from tests.fakes.world import World

ACME, GLOBEX = (Principal(f"{name}-ci", Role.OPERATE, name) for name in ("acme", "globex"))
ANN, BEN = (Principal(name, Role.OPERATE) for name in ("ann", "ben"))
AGENTS = (
    AgentSpec(name="claude", kind="claude", max_concurrent=90),
    AgentSpec(name="shop", kind="a2a", max_concurrent=90, auto_select=False),
)


def shared(database: Database, **changes: Any) -> World:
    bounds: dict[str, Any] = {"total": 4, "per_organisation": 2, "remote": 4, "remote_per_organisation": 2}
    return World(database, agents=AGENTS, **bounds | changes)


@pytest.fixture
def world(database: Database) -> World:
    return shared(database)


def submit(world: World, by: Principal, *names: str, **fields: object) -> None:
    """Each behind the one before."""
    for name in names:
        world.now_ms += 1
        world.access.as_(by)[Tasks].submit(spec(name, **fields))


@pytest.mark.both_databases
def test_a_guest_gets_its_share_and_the_operator_the_rest(world: World) -> None:
    submit(world, ACME, "a1", "a2", "a3", priority="urgent")
    submit(world, GLOBEX, "g1", "g2", priority="high")
    submit(world, OPERATOR, "own1", "own2", priority="low")
    world.tick()
    assert set(world.running()) == {"a1", "a2", "g1", "own1"}
    world.succeed("g1")
    world.tick()
    assert set(world.running()) == {"a1", "a2", "g2", "own1"}, "it has waited longest of those that may"
    world.succeed("own1")
    world.tick()
    assert set(world.running()) == {"a1", "a2", "g2", "own2"}, "the last one is the operator's"


@pytest.mark.both_databases
def test_who_waits_for_what_is_told_and_measured(world: World) -> None:
    submit(world, ACME, "a1", "a2", "a3", "a4")
    submit(world, ANN, "n1")
    world.tick()
    submit(world, BEN, "n2")
    submit(world, OPERATOR, "o1")
    task = world.task("a3")
    text = "organisation acme uses all the slots that it may have (2 of 2, concurrency.per_organisation)"
    assert (task.state, task.reason, task.reason_text) == ("QUEUED", "slots", text)
    assert task.blocked is not None
    assert (task.blocked.code, task.blocked.params.organisation) == ("organisation_slots", "acme")
    text = "all slots that organisations share are in use (3 of 3); the last one of concurrency.total is the operator's"
    assert world.task("n2").reason_text == text
    assert world.task("o1").reason == "ready"
    assert measure(world).waits == {
        WaitCount("QUEUED", "slots", code="organisation_slots"): 2,
        WaitCount("QUEUED", "slots", code="kept_slots"): 1,
        WaitCount("QUEUED", "ready"): 1,
    }


@pytest.mark.both_databases
def test_creators_without_an_organisation_share_each_for_itself_and_the_inbox_is_the_operators(world: World) -> None:
    submit(world, ANN, "n1", "n2", "n3")
    submit(world, BEN, "b1", "b2")
    submit(world, INBOX, "i1", "i2")
    world.tick()
    assert set(world.running()) == {"n1", "n2", "b1", "i1"}


@pytest.mark.both_databases
def test_runs_on_remote_agents_take_none_of_the_slots_here(world: World) -> None:
    submit(world, ACME, *(f"r{number}" for number in range(6)), agent={"type": "shop"}, timeout="7d")
    submit(world, OPERATOR, *(f"o{number}" for number in range(5)))
    world.tick()
    assert set(world.running()) == {"r0", "r1", "o0", "o1", "o2", "o3"}
    assert "(2 of 2, concurrency.remote_per_organisation)" in str(world.task("r2").reason_text)
    assert world.task("o4").reason_text == "all slots are in use (4 of 4)"
    submit(world, OPERATOR, "o-remote", agent={"type": "shop"})
    world.tick(DAY_MS)
    assert "o-remote" in world.running()


def test_a_remote_run_needs_a_processor_once_its_check_runs(database: Database) -> None:
    world = shared(database, total=1, per_organisation=1)
    submit(world, OPERATOR, "remote", agent={"type": "shop"}, check=["true"])
    world.tick()
    world.succeed("remote")
    world.tick()
    assert world.task("remote").phase == "checking"
    submit(world, OPERATOR, "here")
    world.tick()
    assert set(world.running()) == {"remote"}
    assert world.task("here").reason == "slots"


@pytest.mark.both_databases
def test_checks_of_remote_runs_wait_for_a_slot_and_get_it_before_any_task(world: World) -> None:
    """Else a guest whose agents all end at once has more processors than its share, and the operator none."""
    submit(world, ACME, "a1", "a2", agent={"type": "shop"}, check=["true"])
    submit(world, OPERATOR, "o1", agent={"type": "shop"}, check=["true"])
    submit(world, ACME, "here1", "here2")
    submit(world, OPERATOR, *(f"own{number}" for number in range(4)))
    world.tick()
    assert set(world.running()) == {"a1", "a2", "o1", "here1", "here2", "own0", "own1"}
    world.tick()
    for name in ("a1", "a2", "o1"):
        world.succeed(name)
    world.tick()
    assert {world.task(name).phase for name in ("a1", "a2", "o1")} == {"running"}
    share = "organisation acme uses all the slots that it may have (2 of 2, concurrency.per_organisation)"
    assert f"Its agent has ended, and its check waits for a slot: {share}." in world.service.why("a1").sentences
    full = "Its agent has ended, and its check waits for a slot: all slots are in use (4 of 4)."
    assert full in world.service.why("o1").sentences

    world.succeed("own0")
    world.tick()
    world.tick()
    assert world.task("o1").phase == "checking"
    assert "own2" not in world.running(), "what became free is for the check"
    assert {world.task(name).phase for name in ("a1", "a2")} == {"running"}, "acme has its share"

    world.succeed("here1")
    world.tick()
    world.tick()
    assert {world.task(name).phase for name in ("a1", "a2")} == {"checking", "running"}
    world.restarted_daemon()
    world.tick()
    world.succeed("here2")
    world.tick()
    world.tick()
    assert (world.task("a1").phase, world.task("a2").phase) == ("checking", "checking")


def test_a_task_whose_check_waits_can_be_cancelled(world: World) -> None:
    submit(world, OPERATOR, "remote", agent={"type": "shop"}, check=["true"])
    submit(world, OPERATOR, *(f"own{number}" for number in range(4)))
    world.tick()
    world.tick()
    world.succeed("remote")
    world.tick()
    assert world.task("remote").phase == "running"
    world.service.cancel("remote")
    world.tick()
    assert world.task("remote").state == "CANCELLED"
    assert "its check waits" not in " ".join(world.service.why("remote").sentences)


@pytest.mark.both_databases
def test_a_tasks_lane_is_its_tenants(world: World) -> None:
    for by in (OPERATOR, INBOX, ANN, ACME, GLOBEX):
        submit(world, by, by.id)
    tenants = {by.id: world.row(by.id).tenant for by in (OPERATOR, INBOX, ANN, ACME, GLOBEX)}
    assert tenants == {
        "operator": "",
        "inbox": "",
        "ann": "by:ann",
        "acme-ci": "org:acme",
        "globex-ci": "org:globex",
    }
    lanes = {by.id: world.row(by.id).lane or "" for by in (OPERATOR, INBOX, ANN, ACME, GLOBEX)}
    own = lanes["operator"]
    assert own == lanes["inbox"]
    assert {lane for lane in lanes.values() if lane != own} == {
        f"{own}|{tenant}" for tenant in tenants.values() if tenant
    }


@pytest.mark.both_databases
def test_what_was_decided_under_shares_is_decided_so_again(world: World) -> None:
    submit(world, ACME, "a1", "a2", "a3")
    submit(world, ANN, "n1", "n2", agent={"type": "shop"})
    submit(world, OPERATOR, "o1")
    world.tick()
    world.succeed("a1")
    world.tick()
    replay = Replay(world.database, Settings(), None, {}, {}).run(Window())
    assert (replay.placements, replay.identical, replay.differing) == (6, 6, ())


def test_an_earlier_versions_snapshot_is_bound_by_no_share(database: Database) -> None:
    """Its rules have none: what a guest was given then, it is given again."""
    world = World(database, agents=AGENTS, total=4)
    submit(world, ACME, *(f"a{number}" for number in range(3)), agent={"type": "shop"})
    submit(world, ACME, "b")
    world.tick()
    assert len(world.running()) == 4
    other = Settings(agents={agent.name: agent for agent in AGENTS}, agents_configured=True)
    replay = Replay(world.database, Settings(), other, {}, {}).run(Window())
    assert (replay.placements, replay.identical) == (4, 4)
    assert replay.other is not None
    assert replay.other.waits == 0
