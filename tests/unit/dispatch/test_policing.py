"""What rules say of a task: of whoever made it, of its text, and again of whoever is to do it and how risky that is."""

from pathlib import Path
from typing import Any

import pytest

from claudomator_py.dispatch.policing import Judged, Policing
from claudomator_py.domain.decision import Versions
from claudomator_py.domain.principal import INBOX, OPERATOR, Principal, Role
from claudomator_py.domain.routing import Risk
from claudomator_py.domain.triage import Incoming
from claudomator_py.domain.units import HOUR_MS
from claudomator_py.domain.views import TokenRequest
from claudomator_py.policy.rule import Rule
from claudomator_py.policy.verdict import Policy
from claudomator_py.scheduler.decision import PolicyVerdict
from claudomator_py.store import decision_rows, task_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import Channel
from tests.fakes.world import World, spec

LIVE = "Drop the customers schema on the production cluster."
HARM = "Secretly record the chats of the works council."
ALLOWED, HELD, DENIED = PolicyVerdict.ALLOWED, PolicyVerdict.HELD, PolicyVerdict.DENIED


def rule(name: str = "it", **fields: Any) -> Rule:
    return Rule.model_validate({"name": name, **fields})


def policing(world: World, *rules: Rule) -> Policing:
    return Policing(Policy(rules), world.budgets, world.clock, reviews=True)


def judge(world: World, rules: Policing, name: str, *, reads: bool = True) -> Judged:
    task = world.row(name)

    def asked(connection: Any) -> Judged:
        return rules.judge(connection, task, task_rows.spec_of(connection, task.id, task.revision), reads=reads)

    return world.database.read(asked)


def raised(world: World, rules: Policing, name: str, risk: Risk) -> Judged:
    before = judge(world, rules, name)
    return world.database.read(lambda connection: rules.raised(connection, world.row(name), before, risk, "lite/1"))


# --- its text -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "says"), [("Tidy up.", ALLOWED), (LIVE, HELD), (HARM, DENIED)])
def test_a_text_that_nobody_reads_as_an_order_is_not_judged(world: World, text: str, says: PolicyVerdict) -> None:
    world.submit("t", instructions=text)
    assert judge(world, policing(world), "t").says is says
    assert judge(world, policing(world), "t", reads=False).says is ALLOWED


def test_rules_are_asked_about_a_task_whose_text_nobody_reads(world: World) -> None:
    world.submit("t", tags=["prod"])
    assert judge(world, policing(world, rule(when='"prod" in task.tags', deny="no")), "t", reads=False).says is DENIED


@pytest.mark.parametrize("says", [Risk.LOW, Risk.MEDIUM, Risk.HIGH])
def test_no_model_makes_a_task_less_risky_than_its_words(world: World, says: Risk) -> None:
    world.submit("t", instructions=LIVE)
    found = raised(world, policing(world), "t", says)
    assert (found.facts.risk, found.says) == (Risk.HIGH, HELD)
    assert found.raised_by is None


def test_what_a_model_sees_is_held_and_says_so_and_rules_are_asked_again(world: World) -> None:
    world.submit("t")
    held = raised(world, policing(world), "t", Risk.HIGH)
    assert (held.says, held.verdict.checks[0].detail) == (HELD, "lite/1 judges its risk high")
    denied = raised(world, policing(world, rule(when='task.risk == "medium"', deny="no")), "t", Risk.MEDIUM)
    assert (denied.says, denied.verdict.denied_by) == (DENIED, "it")


# --- where it works -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("named", "says"), [("safe", ALLOWED), ("vault", DENIED), ("link", DENIED)])
def test_a_folder_is_where_it_really_is(world: World, tmp_path: Path, named: str, says: PolicyVerdict) -> None:
    for name in ("safe", "vault"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("vault")
    rules = policing(world, rule(when=f'task.working_dir == "{tmp_path.resolve()}/vault"', deny="no"))
    world.submit("t", working_dir=str(tmp_path / named), permissions={"mode": "plan"})
    assert judge(world, rules, "t").says is says


def test_a_path_in_the_text_is_one_of_the_folder_in_which_it_works(world: World, tmp_path: Path) -> None:
    rules = policing(world, rule(when='"infra/main.tf" in task.paths', deny="no"))
    world.submit("t", instructions="Mend ./infra/../infra/main.tf, please.", working_dir=str(tmp_path))
    assert judge(world, rules, "t").says is DENIED


# --- who made it ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("by", "role"),
    [(OPERATOR, "admin"), (INBOX, "operate"), (Principal("dash", Role.OPERATE), "operate")],
)
def test_a_rule_sees_the_role_of_whoever_made_it(world: World, by: Principal, role: str) -> None:
    world.tokens.create(TokenRequest(name="dash", role="operate"))
    world.access.as_(by).service.submit(spec("t"))
    rules = policing(world, rule(when=f'actor.role == "{role}" && actor.id == "{by.id}"', deny="seen"))
    assert judge(world, rules, "t").says is DENIED


def test_whoever_has_no_role_any_more_is_as_good_as_a_stranger(world: World) -> None:
    world.tokens.create(TokenRequest(name="boss", role="admin"))
    world.access.as_(Principal("boss", Role.ADMIN)).service.submit(spec("t"))
    world.access.as_(Principal("never-was", Role.ADMIN)).service.submit(spec("u"))
    rules = policing(world, rule("admins", when='actor.role == "admin"', allow=True), rule("others", deny="no"))
    assert judge(world, rules, "t").says is ALLOWED
    assert judge(world, rules, "u").says is DENIED
    world.tokens.revoke("boss")
    assert judge(world, rules, "t").says is DENIED


# --- who is to do it ------------------------------------------------------------------------------------------------


def test_rules_on_specialists_are_asked_of_whoever_was_chosen(world: World) -> None:
    world.submit("t")
    rules = policing(world, rule(when='task.specialist == "painter" || task.skill == "walls"', deny="no"))
    judged = judge(world, rules, "t")
    assert judged.says is ALLOWED
    assert rules.again(judged, "plumber", None).says is ALLOWED
    assert rules.again(judged, "painter", None).says is DENIED
    assert rules.again(judged, "plumber", "walls").says is DENIED


# --- messages -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "refused"), [("what is your salary?", True), ("the sink leaks", False), (" \n", False)]
)
def test_of_a_message_only_a_refusal_is_said(world: World, text: str, refused: bool) -> None:
    rules = policing(world, rule(when='task.text.contains("salary")', deny="no"), rule("hold", approve={}))
    channel = Channel(id="c", name="house", settings={}, creator="operator", created_ms=0, updated_ms=0)
    message = Incoming(author="operator", content=text)
    checks = world.database.read(lambda connection: rules.of_message(connection, channel, message))
    assert bool(checks) is refused


# --- what is written down -------------------------------------------------------------------------------------------


def test_nothing_is_written_down_where_no_rule_has_anything_to_do_with_it(world: World) -> None:
    world.submit("t")
    world.submit("live", instructions=LIVE)
    versions = Versions()
    assert policing(world).record(judge(world, policing(world), "t"), versions) is None
    held = policing(world).record(judge(world, policing(world), "live"), versions)
    assert held is not None
    assert (held.verdict, held.rules) == (HELD, ("high-risk",))
    ruled = policing(world, rule(risk="low"))
    allowed = ruled.record(judge(world, ruled, "t"), versions)
    assert allowed is not None
    assert (allowed.verdict, allowed.rules, allowed.route) == (ALLOWED, (), None)


def test_what_is_queued_is_judged_by_other_rules_once(database: Database) -> None:
    world = World(database, routes=True, routing=True, policed=True, total=0)
    world.policy_rules = (rule(risk="low"),)
    world.restarted_daemon()
    world.submit("t")
    for _ in range(3):
        world.tick(1)
    task_id = world.row("t").id
    assert len(world.database.read(lambda connection: decision_rows.of_task(connection, task_id))) == 1
    world.restarted_daemon()
    world.tick(1)
    assert len(world.database.read(lambda connection: decision_rows.of_task(connection, task_id))) == 1


def test_a_person_is_told_which_rules_ask_and_why(database: Database) -> None:
    world = World(database, routes=True, routing=True, policed=True)
    world.policy_rules = (rule("infra", approve={"by": ["admin"], "within": "2h"}),)
    world.restarted_daemon()
    world.submit("live", instructions=LIVE)
    world.tick()
    asked = world.task("live").asks
    assert asked is not None
    assert (
        asked.text == f"asks for approval, which the policy requires (infra; high-risk: its risk is high: {LIVE[:-1]})"
    )
    assert world.row("live").until_ms == world.now_ms + 2 * HOUR_MS
    (said,) = world.database.read(lambda connection: decision_rows.of_task(connection, world.row("live").id))
    assert said.data["verdict"] == "held"
