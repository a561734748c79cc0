"""What rules say of a task: of whoever made it, of its text, and again of whoever is to do it and how risky that is."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from claudomator_py.dispatch.policing import Judged, Policing
from claudomator_py.domain.channel import Incoming
from claudomator_py.domain.decision import Versions
from claudomator_py.domain.principal import INBOX, OPERATOR, Principal, Role
from claudomator_py.domain.rationale import RationaleCode
from claudomator_py.domain.routing import Risk
from claudomator_py.domain.units import HOUR_MS, MINUTE_MS
from claudomator_py.policy import expression, sandbox
from claudomator_py.policy.rule import Rule
from claudomator_py.policy.verdict import Policy
from claudomator_py.resources.access import TokenRequest
from claudomator_py.resources.tasks import ApproveRequest
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.scheduler.records import PolicyVerdict
from claudomator_py.store import decision_rows, task_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import Channel
from tests.fakes.cards import card
from tests.fakes.steps import spec
from tests.fakes.world import World

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
    return world.database.read(lambda connection: rules.judge_risk(connection, world.row(name), before, risk, "lite/1"))


# --- its text -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "says"), [("Tidy up.", ALLOWED), (LIVE, HELD), (HARM, DENIED)])
def test_a_text_that_nobody_reads_as_an_order_is_not_judged(world: World, text: str, says: PolicyVerdict) -> None:
    world.submit("t", instructions=text)
    assert judge(world, policing(world), "t").outcome is says
    assert judge(world, policing(world), "t", reads=False).outcome is ALLOWED


def test_a_text_of_which_hardly_a_word_is_known_is_of_medium_risk_and_stops_only_by_a_rule(world: World) -> None:
    world.submit("t", instructions="Giri\u015f sayfas\u0131ndaki yaz\u0131m hatas\u0131n\u0131 d\u00fczelt.")
    judged = judge(world, policing(world), "t")
    assert (judged.outcome, judged.facts.risk, judged.unread) == (ALLOWED, Risk.MEDIUM, True)
    (check,) = judged.verdict.checks
    assert check.detail == "hardly a word of it is known, so its risk is taken to be medium"
    careful = rule(when='task.risk != "low"', approve={})
    assert judge(world, policing(world, careful), "t").outcome is HELD
    assert not raised(world, policing(world), "t", Risk.MEDIUM).unread


def test_rules_are_asked_about_a_task_whose_text_nobody_reads(world: World) -> None:
    world.submit("t", tags=["prod"])
    assert (
        judge(world, policing(world, rule(when='"prod" in task.tags', deny="no")), "t", reads=False).outcome is DENIED
    )


@pytest.mark.parametrize("says", [Risk.LOW, Risk.MEDIUM, Risk.HIGH])
def test_no_model_makes_a_task_less_risky_than_its_words(world: World, says: Risk) -> None:
    world.submit("t", instructions=LIVE)
    judged = raised(world, policing(world), "t", says)
    assert (judged.facts.risk, judged.outcome) == (Risk.HIGH, HELD)
    assert judged.raised_by is None


def test_what_a_model_sees_is_held_and_says_so_and_rules_are_asked_again(world: World) -> None:
    world.submit("t")
    held = raised(world, policing(world), "t", Risk.HIGH)
    policy_check = held.verdict.checks[0]
    assert (held.outcome, policy_check.allowed, policy_check.detail) == (HELD, True, "lite/1 judges its risk high")
    denied = raised(world, policing(world, rule(when='task.risk == "medium"', deny="no")), "t", Risk.MEDIUM)
    assert (denied.outcome, denied.verdict.denied_by) == (DENIED, "it")


# --- where it works -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("named", "says"), [("safe", ALLOWED), ("vault", DENIED), ("link", DENIED)])
def test_a_folder_is_where_it_really_is(world: World, tmp_path: Path, named: str, says: PolicyVerdict) -> None:
    for name in ("safe", "vault"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("vault")
    rules = policing(world, rule(when=f'task.working_dir == "{tmp_path.resolve()}/vault"', deny="no"))
    world.submit("t", working_dir=str(tmp_path / named), permissions={"mode": "plan"})
    assert judge(world, rules, "t").outcome is says


def test_a_path_in_the_text_is_one_of_the_folder_in_which_it_works(world: World, tmp_path: Path) -> None:
    rules = policing(world, rule(when='"infra/main.tf" in task.paths', deny="no"))
    world.submit("t", instructions="Mend ./infra/../infra/main.tf, please.", working_dir=str(tmp_path))
    assert judge(world, rules, "t").outcome is DENIED


# --- who made it ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("by", "role"),
    [(OPERATOR, "admin"), (INBOX, "operate"), (Principal("dash", Role.OPERATE), "operate")],
)
def test_a_rule_sees_the_role_of_whoever_made_it(world: World, by: Principal, role: str) -> None:
    world.tokens.create(TokenRequest(name="dash", role="operate"))
    world.access.as_(by)[Tasks].submit(spec("t"))
    rules = policing(world, rule(when=f'actor.role == "{role}" && actor.id == "{by.id}"', deny="seen"))
    assert judge(world, rules, "t").outcome is DENIED


def test_rules_that_do_not_look_at_whoever_made_it_are_asked_about_everybody(world: World) -> None:
    world.access.as_(Principal("never-was", Role.OPERATE))[Tasks].submit(spec("t"))
    assert judge(world, policing(world, rule(deny="no")), "t").outcome is DENIED


def test_whoever_has_no_role_any_more_is_as_good_as_a_stranger(world: World) -> None:
    world.tokens.create(TokenRequest(name="boss", role="admin"))
    world.access.as_(Principal("boss", Role.ADMIN))[Tasks].submit(spec("t"))
    world.access.as_(Principal("never-was", Role.ADMIN))[Tasks].submit(spec("u"))
    rules = policing(world, rule("admins", when='actor.role == "admin"', allow=True), rule("others", deny="no"))
    assert judge(world, rules, "t").outcome is ALLOWED
    assert judge(world, rules, "u").outcome is DENIED
    world.tokens.revoke("boss")
    assert judge(world, rules, "t").outcome is DENIED


# --- who is to do it ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "chosen", "says"),
    [
        ('task.specialist == "painter"', ("painter", None), DENIED),
        ('task.specialist == "painter"', ("plumber", None), ALLOWED),
        ('task.skill == "walls"', ("painter", "walls"), DENIED),
        ('task.skill == "walls"', ("painter", "doors"), ALLOWED),
        ('task.name == "other"', ("painter", "walls"), ALLOWED),
    ],
)
def test_rules_on_specialists_and_skills_are_asked_of_whoever_was_chosen(
    world: World, condition: str, chosen: tuple[str, str | None], says: PolicyVerdict
) -> None:
    world.submit("t")
    rules = policing(world, rule(when=condition, deny="no"))
    judged = judge(world, rules, "t")
    assert judged.outcome is ALLOWED
    assert rules.judge_specialist(judged, *chosen).outcome is says


@pytest.mark.parametrize(
    ("condition", "moves"), [("now.hour < 8", True), ("spent.day.runs > 1", True), ('task.name == "now"', False)]
)
def test_rules_on_the_time_or_on_what_was_spent_may_say_something_else_later(
    world: World, condition: str, moves: bool
) -> None:
    assert policing(world, rule(when=condition, deny="no")).is_volatile is moves


# --- messages -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "refused"), [("what is your salary?", True), ("the sink leaks", False), (" \n", False)]
)
def test_of_a_message_only_a_refusal_is_said(world: World, text: str, refused: bool) -> None:
    rules = policing(world, rule(when='task.text.contains("salary")', deny="no"), rule("hold", approve={}))
    channel = Channel(id="c", name="house", settings={}, creator="operator", created_ms=0, updated_ms=0)
    message = Incoming(author="operator", content=text)
    checks = world.database.read(lambda connection: rules.judge_message(connection, channel, message))
    assert bool(checks) is refused


COSTLY = "task.paths.all(p, task.paths.all(q, !task.text.matches(p + '.+' + q + '!')))"


def test_of_a_message_that_costs_too_much_nothing_is_said_and_its_task_is_judged(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message is judged while nobody else can write, so that takes little, and waits for no task."""
    monkeypatch.setattr(sandbox, "MAX_CPU_MS", 200)
    monkeypatch.setattr(expression, "MAX_URGENT_CPU_MS", 50)
    rules = policing(world, rule(when=COSTLY, deny="no"))
    channel = Channel(id="c", name="house", settings={}, creator="operator", created_ms=0, updated_ms=0)
    named = " ".join(f"a/{number}.py" for number in range(200))
    hostile = Incoming(author="operator", content=named + " x" * 24_000)

    def judge_message() -> float:
        begun_s = time.monotonic()
        assert not world.database.read(lambda connection: rules.judge_message(connection, channel, hostile))
        return time.monotonic() - begun_s

    judge_message()  # the process for it is there from now on
    world.submit("t", instructions=named)
    others = [threading.Thread(target=judge, args=(world, rules, "t")) for _ in range(4)]
    for other in others:
        other.start()
    took_s = judge_message()
    assert any(other.is_alive() for other in others), "it waited for none of them"
    for other in others:
        other.join()
    assert took_s < 10
    harmless = Incoming(author="operator", content="Tidy a/1.py and a/2.py.")
    assert world.database.read(lambda connection: rules.judge_message(connection, channel, harmless)), "as it should be"


def test_rules_see_what_was_spent_today(world: World) -> None:
    rules = policing(world, rule(when="spent.day.runs >= 1", deny="one is enough"))
    channel = Channel(id="c", name="house", settings={}, creator="operator", created_ms=0, updated_ms=0)
    message = Incoming(author="operator", content="the sink leaks")
    world.submit("t")
    assert judge(world, rules, "t").outcome is ALLOWED
    assert not world.database.read(lambda connection: rules.judge_message(connection, channel, message))
    world.tick()
    assert judge(world, rules, "t").outcome is DENIED
    assert world.database.read(lambda connection: rules.judge_message(connection, channel, message))


# --- what a person approved -----------------------------------------------------------------------------------------


def test_an_approval_is_of_the_rules_that_asked_for_it_and_of_no_others(database: Database) -> None:
    world = policed(database, rule("infra", approve={}), total=0)
    world.submit("t")
    world.tick()
    world.access.as_(OPERATOR)[Tasks].approve("t", ApproveRequest())
    again = judge(world, policing(world, rule("infra", approve={})), "t")
    assert (again.outcome, again.approved) == (ALLOWED, frozenset({"infra"}))
    policy = policing(world, rule("infra", approve={})).record(again, Versions())
    assert policy is not None
    assert (policy.verdict, policy.reason.code, policy.approved) == (ALLOWED, RationaleCode.PERMITTED, ("infra",))
    assert judge(world, policing(world, rule("other", approve={})), "t").outcome is HELD
    assert judge(world, policing(world, rule("infra", deny="no")), "t").outcome is DENIED
    assert judge(world, policing(world, rule(risk="low")), "t").approved == frozenset(), "nobody asked for any"


# --- what is written down -------------------------------------------------------------------------------------------


def test_nothing_is_written_down_where_no_rule_has_anything_to_do_with_it(world: World) -> None:
    world.submit("t")
    world.submit("live", instructions=LIVE)
    versions = Versions()
    assert policing(world).record(judge(world, policing(world), "t"), versions) is None
    held = policing(world).record(judge(world, policing(world), "live"), versions)
    assert held is not None
    assert (held.verdict, held.rules) == (HELD, ("high-risk",))
    refusing = policing(world, rule("no", deny="never"))
    denied = refusing.record(judge(world, refusing, "t"), versions)
    assert denied is not None
    assert (denied.verdict, denied.rules, denied.route, denied.reason.params.text) == (
        DENIED,
        ("no",),
        "reject",
        "never",
    )
    allowing = policing(world, rule("ok", allow=True))
    permitted = allowing.record(judge(world, allowing, "live"), versions)
    assert permitted is not None
    assert (permitted.verdict, permitted.rules, permitted.reason.params.rule) == (ALLOWED, ("ok",), "ok")
    ruled = policing(world, rule(risk="low"))
    allowed = ruled.record(judge(world, ruled, "t"), versions)
    assert allowed is not None
    assert (allowed.verdict, allowed.rules, allowed.route) == (ALLOWED, (), None)


def policed(database: Database, *rules: Rule, total: int = 4) -> World:
    world = World(database, routes=True, routing=True, policed=True, total=total)
    restarted_with(world, *rules)
    return world


def restarted_with(world: World, *rules: Rule) -> None:
    world.policy_rules = rules
    world.restarted_daemon()


def verdicts(world: World, name: str) -> list[str]:
    """What was written down about the task, in order."""
    task_id = world.row(name).id
    result = world.database.read(lambda connection: decision_rows.of_task(connection, task_id))
    return [entry.data["verdict"] for entry in result]


def test_what_is_queued_is_judged_by_other_rules_and_that_once(database: Database) -> None:
    world = policed(database, rule(risk="low"), total=0)
    world.submit("t")
    world.submit("after", depends_on=["t"])
    for _ in range(3):
        world.tick(1)
    assert verdicts(world, "t") == ["allowed"]
    restarted_with(world, rule(risk="low"))
    world.tick(1)
    assert verdicts(world, "t") == ["allowed"], "they are the same rules"
    restarted_with(world, rule(deny="no"))
    world.tick(1)
    assert (world.state("t"), verdicts(world, "t")) == ("FAILED rejected", ["allowed", "denied"])
    assert world.state("after") == "FAILED dependency_failed"


def test_a_person_is_told_which_rules_ask_and_why(database: Database) -> None:
    world = policed(database, rule("infra", approve={"by": ["admin"], "within": "2h"}))
    world.submit("live", instructions=LIVE)
    world.tick()
    asked = world.task("live").asks
    assert asked is not None
    assert asked.text == f"needs approval by policy (infra; high-risk: {LIVE[:-1]})"
    assert world.row("live").until_ms == world.now_ms + 2 * HOUR_MS
    assert verdicts(world, "live") == ["held"]


# --- a verdict that has become old ----------------------------------------------------------------------------------

CEILING = rule("cheap", tier={"ceiling": "fast"})


@pytest.mark.parametrize(("age_ms", "old"), [(0, False), (MINUTE_MS - 1, False), (MINUTE_MS, True)])
def test_a_verdict_is_old_after_a_minute(database: Database, age_ms: int, old: bool) -> None:
    world = policed(database, CEILING, total=0)
    world.submit("t")
    world.tick()
    world.now_ms += age_ms
    task = world.row("t")
    assert world.database.read(lambda connection: policing(world).is_stale(connection, task)) is old


def test_a_task_of_which_nothing_was_said_has_no_old_verdict(world: World) -> None:
    world.submit("t")
    task = world.row("t")
    assert not world.database.read(lambda connection: policing(world).is_stale(connection, task))


@pytest.mark.parametrize(
    ("rules", "other"),
    [
        ((CEILING,), False),
        ((CEILING, rule("r", risk="low")), False),
        ((), True),
        ((rule("cheap", tier={"ceiling": "balanced"}),), True),
        ((CEILING, rule("no", deny="no")), True),
        ((CEILING, rule("ask", approve={})), True),
        ((CEILING, rule("give", specialist="painter")), True),
        ((CEILING, rule("give", specialist="plumber")), False),
        ((CEILING, rule("keep", exclude_specialists=["plumber"])), True),
        ((CEILING, rule("keep", exclude_specialists=["painter"])), False),
    ],
)
def test_rules_say_otherwise_if_they_stop_narrow_or_give_it_to_another(
    database: Database, rules: tuple[Rule, ...], other: bool
) -> None:
    world = policed(database, CEILING, total=0)
    world.specialists.register(card("plumber"))
    world.submit("t", specialist="plumber")
    world.tick()
    task, asking = world.row("t"), policing(world, *rules)
    judged = judge(world, asking, "t")
    assert task.specialist == "plumber"
    assert world.database.read(lambda connection: asking.has_changed(connection, task, judged)) is other


def test_rules_that_narrow_say_otherwise_where_nothing_was_said(world: World) -> None:
    world.submit("t")
    task, asking = world.row("t"), policing(world, CEILING)
    judged = judge(world, asking, "t")
    assert world.database.read(lambda connection: asking.has_changed(connection, task, judged))
    asking = policing(world)
    judged = judge(world, asking, "t")
    assert not world.database.read(lambda connection: asking.has_changed(connection, task, judged))
