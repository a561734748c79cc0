"""What the classifier's own limits hold, what is given up, and what comes too late."""

import pytest

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.limits import FIRST_ESTIMATE_MS, Bucket, Hold
from claudomator_py.domain.outcome import Provenance, Reason
from claudomator_py.domain.units import HOUR_MS, MINUTE_MS, format_instant
from claudomator_py.scheduler.classification import Cause, ModelFault
from claudomator_py.store import hold_rows
from claudomator_py.store.database import Database
from tests.fakes.decisions import classification_of
from tests.fakes.world import START_MS, World
from tests.unit.dispatch.asking import FAST, ROOMY, TIMEOUT_MS, Asking

LIMITED = ModelFault(Cause.LIMITED, "it answered with HTTP 429", retry_after_s=600)


def test_a_tick_carries_on_where_nothing_can_be_asked_at_all(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = Asking(database)
    asking.world.asker = asking.asker
    asking.world.submit("pinned", agent={"tier": "fast"}, priority="low")
    asking.world.submit("t")
    monkeypatch.setattr(asking.asker, "ask", lambda asks: 1 / 0)
    asking.world.tick()
    assert list(asking.world.running()) == ["pinned"]
    monkeypatch.undo()
    asking.world.tick(MINUTE_MS)
    assert asking.model.asked == ["t"]


def test_a_task_whose_question_is_given_up_starts_before_an_urgent_one_whose_question_is_open(
    database: Database,
) -> None:
    asking = Asking(database, *[RuntimeError("a crash in the middle")] * 2)
    asking.ask("early")
    asking.world.now_ms += 1
    asking.world.submit("late", priority="urgent")
    assert asking.ask_again("late").deadline_ms == asking.known("early").deadline_ms + 1
    asking.world.tick(TIMEOUT_MS - 1)
    assert list(asking.world.running()) == ["early"]


def test_an_answer_about_an_agent_that_is_gone_counts_for_another(database: Database) -> None:
    asking = Asking(database, FAST)
    asking.ask("t")
    asking.world.agents = (ROOMY.model_copy(update={"name": "other"}),)
    asking.world.restarted_daemon()
    asking.world.tick()
    assert (asking.world.live("t").agent, asking.world.live("t").tier) == ("other", Tier.FAST)


def test_once_nothing_is_asked_any_more_an_answer_from_before_says_nothing(database: Database) -> None:
    asking = Asking(database, FAST)
    assert asking.ask("t").tier == Tier.FAST
    without = World(database, agents=(ROOMY,))
    without.tick()
    assert without.live("t").tier == ROOMY.default_tier != Tier.FAST
    (decided,) = without.service.why("t").decisions[:1]
    assert (classification_of(decided).source, classification_of(decided).cause) == ("default", Cause.OFF)


@pytest.mark.parametrize("wait", [True, False])
def test_closing_drops_what_waits_unless_it_is_awaited_and_then_closes_the_model(
    database: Database, wait: bool
) -> None:
    asking = Asking(database)
    asking.asker.close(wait=wait)
    assert asking.inline.shut == [(wait, not wait)]
    assert asking.model.closed


# --- one account ------------------------------------------------------------------------------------------------------

ACCOUNT = ("claude", "default")


def test_a_limit_of_the_classifier_holds_no_agent(database: Database) -> None:
    asking = Asking(database, LIMITED)
    assert asking.ask("t").cause == Cause.LIMITED
    assert asking.world.roster.all()[0].holds == ()
    asking.world.service.cancel("t")
    hold = Hold(Bucket(kind="claude", account="default"), Reason.AUTH, None, Provenance.REPORTED, "log in", START_MS)
    database.write(lambda connection: hold_rows.add(connection, hold, None))
    assert asking.ask("u").source == "classifier", "nor does a limit of the agent hold the classifier"


def test_a_limit_of_the_classifier_holds_the_agents_of_its_account(database: Database) -> None:
    asking = Asking(database, LIMITED, account=ACCOUNT)
    assert asking.ask("t").cause == Cause.LIMITED
    (claude,) = asking.world.roster.all()
    assert (claude.limited, claude.limited_until) == (True, format_instant(START_MS + 600_000))
    assert [hold.bucket for hold in claude.holds] == ["claude/default"]
    (payload,) = asking.event_data("t", "hold")
    assert (payload["bucket"], payload["reason"], payload["until"]) == (
        "claude/default",
        "rate_limited",
        START_MS + 600_000,
    )
    asking.world.tick()
    assert asking.world.state("t") == "QUEUED limited"


def test_a_limit_that_names_no_time_is_guessed(database: Database) -> None:
    asking = Asking(database, ModelFault(Cause.LIMITED, "slow down"), account=ACCOUNT)
    assert asking.ask("t").cause == Cause.LIMITED
    (hold,) = database.read(lambda connection: hold_rows.in_force(connection, START_MS))
    assert (hold.until_ms, hold.provenance) == (START_MS + FIRST_ESTIMATE_MS, Provenance.ESTIMATED)


def held(asking: Asking, family: str | None) -> None:
    bucket = Bucket(kind="claude", account="default", family=family)
    hold = Hold(bucket, Reason.RATE_LIMITED, START_MS + HOUR_MS, Provenance.REPORTED, "five_hour", START_MS)
    asking.world.database.write(lambda connection: hold_rows.add(connection, hold, None))


@pytest.mark.parametrize(("family", "asked"), [("lite", False), ("opus", True)])
def test_a_limit_of_its_account_and_model_holds_the_classifier(database: Database, family: str, asked: bool) -> None:
    asking = Asking(database, account=ACCOUNT)
    held(asking, family)
    assert asking.ask("t").cause == (None if asked else Cause.LIMITED), "it could start now, and so is not kept waiting"
    assert asking.model.asked == (["t"] if asked else [])
    asking.world.now_ms += HOUR_MS
    assert asking.ask("u").source == "classifier"


def test_while_the_account_holds_the_task_too_the_question_waits_with_it(database: Database) -> None:
    asking = Asking(database, account=ACCOUNT)
    held(asking, None)
    with pytest.raises(AssertionError, match="nobody was asked"):
        asking.ask("t")
    asking.world.now_ms += HOUR_MS
    assert asking.ask_again("t").source == "classifier"
