"""Asking for a tier: the breaker is consulted, only what was put counts for or against it, and limits are shared only
where an account is.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, select

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.health import FAILURES, FIRST_PAUSE_MS
from claudomator_py.domain.rationale import RationaleCode
from claudomator_py.domain.units import HOUR_MS, MINUTE_MS
from claudomator_py.faults import Activity
from claudomator_py.scheduler.classification import PROMPT_VERSION, Cause, ModelFault
from claudomator_py.scheduler.records import TierRecord
from claudomator_py.store import classification_rows, decision_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import TIER_ANSWER, ClassificationRow
from tests.fakes.decisions import classification_of
from tests.unit.dispatch.asking import FAST, ROOMY, TIMEOUT_MS, Asking

DOWN = ModelFault(Cause.UNREACHABLE, "nobody there")


def test_a_failing_classifier_is_told_of_until_it_answers(database: Database) -> None:
    asking = Asking(database, DOWN, DOWN, FAST)
    for name in ("a", "b"):
        asking.ask(name)
        asking.world.now_ms += 1_000
    trouble = asking.asker.model.trouble
    assert trouble is not None
    assert trouble.since_ms == asking.world.now_ms - 2_000
    asking.ask("c")
    assert asking.asker.model.trouble is None


def test_what_came_of_the_question_is_a_decision(database: Database) -> None:
    asking = Asking(database, FAST, DOWN)
    asking.inline.before = lambda: setattr(asking.world, "now_ms", asking.world.now_ms + 40)
    for name, tier, source in (("answered", Tier.FAST, "classifier"), ("not", None, "default")):
        asking.ask(name)
        task = asking.world.row(name)

        (decision,) = database.read(partial(decision_rows.of_task, task_id=task.id))
        assert (decision.kind, decision.generation, decision.run_id) == ("tier", 1, None)
        assert (decision.latency_ms, decision.confidence) == (40, None)
        assert decision.input_ref == f"task:{task.id}/1"
        record = TierRecord.model_validate(decision.data)
        assert (record.tier, record.agent, record.classification.source) == (tier, "claude", source)
        assert record.reason.code is (RationaleCode.UNANSWERED if tier is None else RationaleCode.ANSWERED)
        assert record.versions.classifier == f"lite/{PROMPT_VERSION}"


def test_asking_again_supersedes_the_answer_before(database: Database) -> None:
    asking = Asking(database, FAST, FAST)
    asking.ask("t")
    asking.world.tick()
    asking.world.succeed("t")
    asking.world.restart("t")
    asking.ask_again("t")

    task_id = asking.world.row("t").id
    tiers = [result for result in database.read(lambda c: decision_rows.of_task(c, task_id)) if result.kind == "tier"]
    first, second = sorted(tiers, key=lambda decision: decision.generation or 0)
    assert second.supersedes == first.id


def test_the_breaker_is_consulted(database: Database) -> None:
    asking = Asking(database, *[DOWN] * FAILURES)
    for number in range(FAILURES):
        assert asking.ask(f"t{number}").cause == Cause.UNREACHABLE
    assert asking.ask("late").cause == Cause.BREAKER_OPEN
    assert len(asking.model.asked) == FAILURES, "the last one was never put"
    asking.world.now_ms += FIRST_PAUSE_MS
    assert asking.ask("trial").source == "classifier"
    assert asking.ask("after").source == "classifier"


def test_an_unusable_answer_is_no_failure_of_the_service(database: Database) -> None:
    asking = Asking(database, DOWN, DOWN, "I cannot tell.", '{"tier": "ultra"}', "{}", DOWN)
    causes = [asking.ask(f"t{number}").cause for number in range(6)]
    assert causes[2:] == [Cause.GARBAGE, Cause.DISALLOWED, Cause.GARBAGE, Cause.UNREACHABLE]
    assert asking.ask("next").source == "classifier", "it was asked all along"


def test_a_question_that_was_never_put_is_neither_success_nor_failure(database: Database) -> None:
    asking = Asking(database, *[DOWN] * (FAILURES - 1))
    for number in range(FAILURES - 1):
        asking.ask(f"t{number}")

    def too_late() -> None:
        asking.world.now_ms += TIMEOUT_MS

    asking.inline.before = too_late
    for number in range(FAILURES):
        assert asking.ask(f"late{number}").cause == Cause.TIMEOUT
    assert len(asking.model.asked) == FAILURES - 1
    asking.inline.before = lambda: None
    asking.model.says = [DOWN]
    assert asking.ask("last").cause == Cause.UNREACHABLE, "those in between opened nothing"
    assert asking.ask("open").cause == Cause.BREAKER_OPEN, "and closed nothing"


def test_a_fault_of_our_own_in_a_trial_does_not_leave_the_breaker_open_for_ever(database: Database) -> None:
    asking = Asking(database, *[DOWN] * FAILURES, RuntimeError("a bug"))
    for number in range(FAILURES):
        asking.ask(f"t{number}")
    asking.world.now_ms += FIRST_PAUSE_MS
    assert asking.ask("odd").answered_ms is None, "its deadline passes without an answer"
    asking.world.now_ms += HOUR_MS
    assert asking.ask("trial").source == "classifier"


def test_a_manual_restart_asks_even_when_the_breaker_is_open(database: Database) -> None:
    asking = Asking(database, *[DOWN] * FAILURES)
    for number in range(FAILURES):
        asking.ask(f"t{number}")
    assert asking.ask("late").cause == Cause.BREAKER_OPEN
    asking.world.now_ms += 1
    asking.world.service.cancel("late")
    asking.world.restart("late")
    assert asking.ask_again("late").source == "classifier"


def test_the_deadline_is_stored_with_the_question_and_holds_for_a_daemon_that_never_asked(database: Database) -> None:
    asking = Asking(database, RuntimeError("a crash in the middle"))
    asking.world.now_ms += 7
    asked = asking.ask("t")
    assert (asked.asked_ms, asked.deadline_ms) == (asking.world.now_ms, asking.world.now_ms + TIMEOUT_MS)
    asking.world.restarted_daemon()
    asking.world.tick(TIMEOUT_MS - 1)
    assert asking.world.state("t") == "QUEUED classifying"
    asking.world.tick(1)
    assert asking.world.running() == {"t": "claude"}


@pytest.mark.parametrize(("text", "shown"), [("codex", "codex"), (" Claude ", None)])
def test_another_agent_in_the_answer_is_shown_and_changes_nothing(
    database: Database, text: str, shown: str | None
) -> None:
    asking = Asking(database, f'{{"tier": "fast", "reason": "a recipe", "agent_type": "{text}"}}')
    asking.ask("t")
    asking.world.tick()
    assert asking.world.running() == {"t": "claude"}
    why = asking.world.service.why("t")
    assert (why.decisions[0].tier, classification_of(why.decisions[0]).said_agent) == (Tier.FAST, shown)
    sentence = "Tier fast (haiku): as the classifier says (a recipe"
    sentence += f"; it named the agent {shown}, which changes nothing)." if shown else ")."
    assert sentence in why.sentences


def test_an_answer_that_names_the_kind_of_its_agent_names_no_other(database: Database) -> None:
    asking = Asking(database, FAST)
    asking.world.agents = (ROOMY.model_copy(update={"name": "mine"}),)
    asking.world.restarted_daemon()
    asking.ask("t")
    asking.world.tick()
    assert asking.world.running() == {"t": "mine"}
    assert classification_of(asking.world.service.why("t").decisions[0]).said_agent is None


# --- questions that are not put, and answers that come too late -------------------------------------------------------


def test_the_same_question_is_answered_from_before_and_keeps_the_time_of_its_answer(database: Database) -> None:
    asking = Asking(database, FAST)
    asking.ask("t")
    asking.world.tick()
    asking.world.succeed("t")
    first_ms = asking.world.now_ms
    asking.world.now_ms += HOUR_MS
    asking.world.submit("t")
    known = asking.ask_again("t")
    assert (known.source, known.tier, known.detail) == ("cache", Tier.FAST, "a recipe")
    assert asking.model.asked == ["t"]
    assert asking.event_data("t", "classified") == [{"source": "cache", "tier": "fast", "detail": "a recipe"}]
    (decided,) = asking.tiers("t")
    assert (decided.classification.source, decided.tier, decided.reason.text) == ("cache", Tier.FAST, "a recipe")
    kept = database.read(lambda connection: connection.execute(select(TIER_ANSWER.c.created_ms)).scalars().all())
    assert kept == [first_ms], "or what is used would never be forgotten"


def test_only_an_answer_is_remembered_and_a_restart_asks_again(database: Database) -> None:
    asking = Asking(database, DOWN, FAST, FAST)
    assert asking.ask("t").cause == Cause.UNREACHABLE
    for _ in range(2):
        asking.world.now_ms += 1
        asking.world.service.cancel("t")
        asking.world.restart("t")
        assert asking.ask_again("t").source == "classifier"
    assert asking.model.asked == ["t"] * 3


def test_an_answer_without_a_reason_is_kept_without_one(database: Database) -> None:
    asking = Asking(database, '{"tier": "fast"}')
    assert asking.ask("t").tier == Tier.FAST
    assert [decided.reason.text for decided in asking.tiers("t")] == ["no reason was given"]
    asking.world.tick()
    asking.world.succeed("t")
    asking.world.submit("t")
    assert asking.ask_again("t").detail == ""


def test_what_is_told_of_an_answer_leaves_out_what_is_not_known(database: Database) -> None:
    asking = Asking(database, FAST, DOWN)
    asking.ask("answered")
    asking.ask("not")
    assert asking.event_data("answered", "classified") == [
        {"source": "classifier", "tier": "fast", "detail": "a recipe"}
    ]
    assert asking.event_data("not", "classified") == [
        {"source": "default", "cause": "unreachable", "detail": "nobody there"}
    ]


def test_nothing_is_asked_twice_nor_about_a_task_that_has_changed(database: Database) -> None:
    asking = Asking(database)
    asking.world.submit("t")
    asking.world.submit("cancelled")
    questions = [*asking.questions("t"), *asking.questions("cancelled")]
    assert len(questions) == 2
    asking.world.service.cancel("cancelled")
    assert asking.asker.ask(questions) == {}
    assert asking.asker.ask(questions) == {}
    unknown = replace(questions[0], head=questions[0].head.model_copy(update={"task_id": "gone"}))
    assert asking.asker.ask([unknown]) == {}
    assert asking.model.asked == ["t"]


def test_an_answer_that_somebody_was_faster_than_changes_nothing(database: Database) -> None:
    asking = Asking(database, FAST)

    def faster() -> None:
        known = asking.known("t")
        fields: dict[str, Any] = {"source": "default", "tier": None, "cause": "interrupted", "detail": None}
        write = partial(classification_rows.answer, task_id=known.task_id, generation=1, said_agent=None, now_ms=1)
        assert database.write(partial(write, **fields))

    asking.inline.before = faster
    assert asking.ask("t").source == "default"
    assert (asking.event_data("t", "classified"), asking.tiers("t")) == ([], [])


def test_an_answer_about_a_task_that_was_restarted_decides_nothing(database: Database) -> None:
    asking = Asking(database, FAST)

    def restart() -> None:
        asking.world.now_ms += 1
        asking.world.service.cancel("t")
        asking.world.restart("t")

    asking.inline.before = restart
    asking.world.submit("t")
    asking.asker.ask(asking.questions("t"))
    assert asking.model.asked == ["t"]
    assert asking.tiers("t") == []


# --- in ticks ---------------------------------------------------------------------------------------------------------


def test_a_question_that_cannot_be_stored_waits_for_its_next_try_and_no_other_waits_with_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = Asking(database)
    world, add = asking.world, classification_rows.add

    def broken(connection: Connection, row: ClassificationRow) -> None:
        if row.task_id == world.row("bad").id:
            raise ValueError("a row that makes no sense")
        add(connection, row)

    def failed() -> list[tuple[Activity, str, int]]:
        return [(fault.item.activity, fault.item.name, fault.times) for fault in world.faults.all()]

    monkeypatch.setattr(classification_rows, "add", broken)
    world.asker = asking.asker
    world.submit("bad")
    world.submit("good")
    world.tick()
    assert asking.model.asked == ["good"]
    assert failed() == [(Activity.CLASSIFY, "bad", 1)]
    world.tick()
    assert failed() == [(Activity.CLASSIFY, "bad", 1)], "it was not tried in the pause"
    world.tick(MINUTE_MS)
    assert failed() == [(Activity.CLASSIFY, "bad", 2)]
    monkeypatch.undo()
    world.tick(MINUTE_MS)
    assert asking.model.asked == ["good", "bad"]
    assert failed() == []
