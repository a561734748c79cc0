"""Doubtful results: which successes may be none, and where that is said."""

from typing import Any

import pytest

from claudomator_py.resources.report.text import markdown
from claudomator_py.store.database import Database
from tests.contract.test_service_report import COMMITS, changed, report, run
from tests.fakes.world import World


@pytest.fixture
def world(database: Database) -> World:
    return World(database, total=20)


def pass_the_check(world: World, **outcome: Any) -> None:
    world.submit("t", check=["pytest"])
    world.tick()
    world.end("t", **outcome)
    world.tick()
    world.host.end(world.live("t").id, 0, step=1)
    world.tick()


def test_a_success_that_changed_nothing_is_counted(world: World) -> None:
    run(world, "real", changes=changed(commits=COMMITS[:1]))
    run(world, "said-fixed", text="Fixed the bug.", changes=changed())
    run(world, "said-nothing", text="The bug is already fixed.", changes=changed())
    run(world, "elsewhere", changes=changed("/tmp/x", is_repository=False))
    result = report(world)
    assert (result.unchanged, result.doubtful) == (2, 1)
    assert [ref.name for ref in result.doubtful_tasks] == ["said-fixed"]
    assert "1 doubtful result" in result.headline
    assert "\n- said-fixed: no changes (its result says otherwise)\n" in markdown(result, str)


@pytest.mark.parametrize(
    ("text", "doubted"),
    [
        ("Should the fence be red or blue?", True),
        ("I looked. **Rot oder blau?**\n", True),
        ("\u8bf7\u95ee\u8981\u4ec0\u4e48\u989c\u8272\uff1f", True),
        ("Why does it fail? The cache is stale.", False),
    ],
)
def test_a_success_that_changed_nothing_and_ends_with_a_question_is_doubtful(
    world: World, text: str, doubted: bool
) -> None:
    run(world, "asks", text=text, changes=changed())
    run(world, "chats", text=text, changes=changed("/tmp/x", is_repository=False))
    run(world, "edits", text=text, changes=changed("/srv/blog", files=("a",)))
    asked = [(ref.name, ref.changes) for ref in report(world).doubtful_tasks]
    assert asked == [("asks", "no changes (its result ends with a question)")] * doubted


def test_a_success_whose_result_admits_a_failure_is_doubtful_whatever_it_changed(world: World) -> None:
    text = "I added the parser. I was not able to finish the printer."
    run(world, "half", text=text, changes=changed(files=("a",)))
    run(world, "none", text="I did nothing.", changes=changed())
    run(world, "refuses", text="I'm sorry, but I can't help with that.", changes=changed("/tmp/x", is_repository=False))
    run(world, "away", text="Ich konnte die Tests nicht starten.")
    run(world, "fine", text="The parser cannot handle this.", changes=changed("/srv/blog", files=("a",)))
    result = report(world)
    assert {ref.name: ref.changes for ref in result.doubtful_tasks} == {
        "half": "1 file (+2 -1) (its result admits a failure)",
        "none": "no changes (its result admits a failure)",
        "refuses": "no changes (its result admits a failure)",
        "away": "no changes recorded (its result admits a failure)",
    }
    assert (result.completed, result.failed, result.doubtful) == (5, 0, 4)


def test_what_an_agent_says_that_it_leaves_undone_stands_in_the_report_even_if_a_check_passed(world: World) -> None:
    text = "Ported CSV and JSON.\n\nCLAUDOMATOR UNFINISHED: the export to PDF,\nas its fonts are missing."
    pass_the_check(world, text=text, changes=changed(files=("a",)))
    (ref,) = report(world).doubtful_tasks
    remark = "its result says what it leaves undone: the export to PDF, as its fonts are missing"
    assert (ref.name, ref.state, ref.changes) == ("t", "COMPLETED", f"1 file (+2 -1) ({remark})")


def test_of_a_result_that_admits_a_failure_why_says_so(world: World) -> None:
    run(world, "half", text="I was not able to finish the printer.", changes=changed(files=("a",)))
    (sentence,) = [entry for entry in world.service.why("half").sentences if "succeeded" in entry]
    assert sentence.endswith("Changed: 1 file (+2 -1) (its result admits a failure).")


@pytest.mark.parametrize(("changes", "doubted"), [({"files": ("a",)}, False), ({}, True)])
def test_what_is_admitted_of_changes_that_passed_a_check_is_not_doubted(
    world: World, changes: dict[str, Any], doubted: bool
) -> None:
    pass_the_check(world, text="I was not able to run the tests.", changes=changed(**changes))
    assert (world.task("t").state, world.task("t").is_doubtful) == ("COMPLETED", doubted)
