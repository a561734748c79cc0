"""Equal reasons are one line, which counts all tasks that have it, also those that the list does not name."""

import re

import pytest

from claudomator_py.domain.lifecycle import (
    Completed,
    Failed,
    InputKind,
    NeedsInput,
    Phase,
    Running,
    State,
    Waiting,
    WaitReason,
)
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason
from claudomator_py.domain.units import HOUR_MS
from tests.fakes.prepared import START_MS, PreparedService
from tests.unit.api.page.conftest import Visitor, text_of
from tests.unit.api.page.test_front import section

LISTED = 20
AT_THREE = START_MS + 2_800_000


def folds(markup: str) -> list[tuple[int, int]]:
    """How many tasks each line is about, and how many rows it has."""
    result = re.findall(r'<li class="fold">(.*?)</details>', markup, re.DOTALL)
    counted = [(re.search(r"<strong>([\d,]+) ", entry), entry.count('class="row task"')) for entry in result]
    return [(int(match[1].replace(",", "")), rows) for match, rows in counted if match is not None]


def told(markup: str) -> int:
    """How many tasks the section speaks of, in all."""
    more = re.search(r'<p class="more">and ([\d,]+) more(?! like)', markup)
    outside = re.sub(r'<li class="fold">.*?</details>', "", markup, flags=re.DOTALL)
    return (
        sum(size for size, _ in folds(markup))
        + outside.count('class="row task"')
        + (0 if more is None else int(more[1]))
    )


def count_of(markup: str) -> int:
    match = re.search(r'<span class="count">(\d+)', markup)
    assert match is not None
    return int(match[1])


def fail(prepared: PreparedService, name: str, detail: str) -> None:
    task = prepared.add(name, Failed(Reason.AGENT_ERROR))
    prepared.add_run(task, outcome=Outcome(status=OutcomeStatus.FAILED, reason=Reason.AGENT_ERROR, detail=detail))


def test_a_line_counts_what_the_list_does_not_name(operator: Visitor, prepared: PreparedService) -> None:
    for number in range(40):
        fail(prepared, f"early-{number}", "the disk is read-only")
    for number in range(7):
        fail(prepared, f"odd-{number}", f"cannot parse line {number}")
    for number in range(30):
        fail(prepared, f"late-{number}", "no route to host" if number % 2 else "the disk is read-only")
    problems = section(operator.get("/"), "problems")
    assert count_of(problems) == told(problems) == 77
    assert sorted(folds(problems)) == [(15, 10), (55, 10)]
    assert "and 7 more" in problems
    assert 'href="/?state=FAILED"' in problems
    assert "and 45 more like these" in problems


def test_what_was_said_before_the_last_run_is_another_reason(operator: Visitor, prepared: PreparedService) -> None:
    for number in range(LISTED + 4):
        fail(prepared, f"t-{number}", "out of memory")
    again = prepared.add("again", Failed(Reason.AGENT_ERROR))
    for detail in ("out of memory", "it gave up"):
        outcome = Outcome(status=OutcomeStatus.FAILED, reason=Reason.AGENT_ERROR, detail=detail)
        prepared.add_run(again, outcome=outcome)
    prepared.world.now_ms += 1
    problems = section(operator.get("/"), "problems")
    assert folds(problems) == [(LISTED + 4, LISTED - 1)]
    assert count_of(problems) == told(problems) == LISTED + 5


WAITS: dict[str, tuple[State, str, str]] = {
    "time": (Waiting(WaitReason.TIME, START_MS + 9 * HOUR_MS), "queue", "wait"),
    "backoff": (Waiting(WaitReason.BACKOFF, START_MS + 9 * HOUR_MS), "queue", "wait"),
    "lost": (Failed(Reason.LOST), "problems", "failed"),
    "timeout": (Failed(Reason.TIMEOUT), "problems", "failed"),
    "login": (NeedsInput(InputKind.LOGIN), "needs-you", "ask"),
    "approval": (NeedsInput(InputKind.APPROVAL), "needs-you", "ask"),
}


@pytest.mark.parametrize("name", WAITS)
def test_of_each_sort(operator: Visitor, prepared: PreparedService, name: str) -> None:
    state, place, does = WAITS[name]
    for number in range(LISTED + 13):
        prepared.add(f"t-{number}", state)
    result = section(operator.get("/"), place)
    assert folds(result) == [(LISTED + 13, LISTED)]
    assert f"<strong>{LISTED + 13} {does}</strong>" in result
    assert "and 13 more like these" in result
    assert count_of(result) == told(result) == LISTED + 13


def test_each_question_stands_by_itself(operator: Visitor, prepared: PreparedService) -> None:
    for number in range(LISTED + 5):
        prepared.add(f"t-{number}", NeedsInput(InputKind.QUESTION))
    needs = section(operator.get("/"), "needs-you")
    assert folds(needs) == []
    assert "and 5 more" in needs


def test_what_waits_for_a_limit_is_counted_with_its_lane(operator: Visitor, prepared: PreparedService) -> None:
    prepared.add_agent("claude")
    prepared.limit("claude", AT_THREE)
    prepared.add_run(prepared.add("busy", Running(Phase.RUNNING), working_dir="/srv/busy"))
    for number in range(30):
        prepared.add(f"limited-{number}")
    for number in range(3):
        prepared.add(f"there-{number}", working_dir="/srv/busy")
    page = operator.get("/")
    queue = section(page, "queue")
    assert folds(queue)[0] == (30, LISTED)
    assert count_of(queue) == told(queue) == 33
    assert "30 wait : claude is limited" in text_of(page)


def test_those_that_wait_for_one_task_are_one_line_and_for_another_a_second(
    operator: Visitor, prepared: PreparedService
) -> None:
    for name in ("build", "sign"):
        prepared.add(name, Waiting(WaitReason.TIME, START_MS + HOUR_MS))
    for number in range(30):
        needs = ["sign"] if number % 5 == 0 else ["build"]
        prepared.add(f"t-{number}", Waiting(WaitReason.DEPENDENCY), depends_on=needs)
    queue = section(operator.get("/"), "queue")
    assert count_of(queue) == told(queue) == 32
    assert sorted(size for size, _ in folds(queue)) == [6, 24]


def test_those_that_depend_each_on_another_are_one_line(operator: Visitor, prepared: PreparedService) -> None:
    for number in range(5):
        prepared.add(f"asks-{number}", NeedsInput(InputKind.QUESTION))
        prepared.add(f"after-asks-{number}", Waiting(WaitReason.DEPENDENCY), depends_on=[f"asks-{number}"])
    for number in range(4):
        prepared.add(f"broken-{number}", Failed(Reason.TIMEOUT))
        prepared.add(f"after-broken-{number}", Failed(Reason.DEPENDENCY_FAILED), depends_on=[f"broken-{number}"])
    queue, problems = (section(operator.get("/"), name) for name in ("queue", "problems"))
    assert folds(queue) == [(5, 5)]
    assert "A task that it depends on has not completed." in queue
    assert "asks-3 (NEEDS_INPUT)" in queue, "each names its own once the line is opened"
    assert folds(problems) == [(4, 4), (4, 4)]
    assert "A task that it depends on did not complete." in problems


def test_the_whole_of_a_list_that_fits_is_counted_as_before(operator: Visitor, prepared: PreparedService) -> None:
    for number in range(4):
        fail(prepared, f"t-{number}", "out of memory")
    prepared.add("done", Completed())
    problems = section(operator.get("/"), "problems")
    assert folds(problems) == [(4, 4)]
    assert "more" not in problems
    assert prepared.status().unlisted == {}
