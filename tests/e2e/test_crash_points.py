"""The daemon killed at every line that matters, the shim too, and both: the next daemon makes everything good."""

import ast
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import claudomator_py
from claudomator_py.domain.crashpoint import CRASH_POINTS
from claudomator_py.hosts.shim.crash import POINTS as SHIM_POINTS
from tests.e2e.operator import ENDLESS, RESUMED, Life, Operator, assert_nothing_shows
from tests.e2e.site import Site
from tests.patience import wait_until

# What the way to a point takes, where a first daemon does not pass it by itself: the life before.
AFTER: dict[str, Life] = {
    "run-dir-trashed": {"crash_at": "run-dir-made"},
    "run-dir-removed": {"crash_at": "run-dir-made"},
    "survivors-ended": {"crash_at": "run-dir-made"},
    "revoked-made": {"crash_at": "start-committed"},
    "revoked-written": {"crash_at": "start-committed"},
}
# And what configuration it takes. Nobody answers at the classifier's port.
MOVING: dict[str, Any] = {"inbox": {"paths": ["tasks"], "after_accept": "move"}}
ASKING: dict[str, Any] = {"classifier": {"kind": "openai", "base_url": "http://127.0.0.1:1/v1", "timeout": "1s"}}
TELLING: dict[str, Any] = {
    "notify": {"log": {"kind": "command", "command": ["true"], "events": ["completed", "failed", "needs_input"]}}
}
WITH: dict[str, dict[str, Any]] = {
    "inbox-before-move": MOVING,
    "inbox-after-move": MOVING,
    "tier-asked": ASKING,
    "notice-stored": TELLING,
    "notice-sent": TELLING,
}
# Passed where a repository is worked in, see test_worktrees.py and tests/integration/hosts/test_worktrees.py.
ON_THE_WAY_TO_TREES = tuple(point for point in CRASH_POINTS if point.startswith("worktree-"))
# Nothing survives unless a shim was killed too.
WITH_LOST_SHIM = ("survivors-signalled",)
# The time of a schedule would be long in coming: `test_schedules` goes through these.
WITH_SCHEDULE = ("schedule-due", "schedule-met")
# Nothing here has a budget: `test_budgets` goes through this one.
WITH_BUDGET = ("budget-met",)
# And so would that of what is kept for days: `test_retention` goes through this one.
WITH_TIME = ("rows-pruned",)
# Nobody asks anything in this workload: `test_questions` goes through this one.
WITH_QUESTION = ("input-committed",)
# Nobody writes in a channel: `test_channels` goes through these.
WITH_CHANNEL = ("answer-due", "answer-given")
# Nobody collects spans: `test_telemetry` goes through this one.
WITH_COLLECTOR = ("spans-sent",)
# Nobody merges: tests/integration/hosts/test_merging.py goes through these.
BY_MERGING = tuple(point for point in CRASH_POINTS if point.startswith(("merge-", "discard-")))
ELSEWHERE = BY_MERGING + WITH_COLLECTOR + WITH_SCHEDULE + WITH_BUDGET + WITH_TIME + WITH_QUESTION + WITH_CHANNEL
AGAIN = tuple(
    f"{point}:{count}"
    for counts, points in {
        (3, 7, 12, 20): ("store-begin", "store-before-commit", "store-after-commit"),
        (3, 6): ("tick-begin", "tick-end"),
        (2, 5): ("run-files-written", "start-committed", "run-spawned", "finish-begin", "finish-committed"),
    }.items()
    for count in counts
    for point in points
)

# Passed by a shim that takes over an agent: tests/integration/hosts/test_shim_takeover.py goes through these.
BY_THE_SECOND_SHIM = ("orphan-ended",)
OF_ONE_SHIM = tuple(point for point in SHIM_POINTS if point not in BY_THE_SECOND_SHIM)
MARKED_FROM = SHIM_POINTS.index("started-made")
RECORDED_FROM = SHIM_POINTS.index("exit-renamed")
STOPPING = ("term-sent", "kill-sent")
# A run whose shim dies there is lost, however long its agent would have worked: it has none yet, or nobody knows of it.
AS_IT_STARTS = SHIM_POINTS[MARKED_FROM : SHIM_POINTS.index("agent-recorded")]
# Points that a daemon passes because its shims die before they mark the start, after it, and once the end is recorded.
UNMARKED_ENDS = ("revoked-written", "start-spawned:3", "tick-end:4")
LOST_ENDS = ("survivors-ended", "finish-begin", "store-before-commit:10")
RECORDED_ENDS = ("outcome-read", "finish-begin", "finish-committed")


def names_in_source(function: str) -> Iterator[str]:
    """The names with which the package calls that function."""
    for path in Path(claudomator_py.__file__).parent.rglob("*.py"):
        if f"{function}(" not in (text := path.read_text()):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function:
                (argument,) = node.args
                assert isinstance(argument, ast.Constant), f"{path}: a crash point is named by a constant"
                yield str(argument.value)


@pytest.mark.parametrize(("function", "registry"), [("crashpoint", CRASH_POINTS), ("crash", SHIM_POINTS)])
def test_every_crash_point_of_the_source_is_registered_and_no_other(function: str, registry: tuple[str, ...]) -> None:
    assert len(registry) == len(set(registry))
    assert set(names_in_source(function)) == set(registry)


def test_without_a_crash_the_workload_comes_out_as_it_should(new_site: Site) -> None:
    operator = Operator(new_site)
    operator.work()
    assert_nothing_shows(operator.finish())


ALONE = tuple(point for point in CRASH_POINTS if point not in WITH_LOST_SHIM + ON_THE_WAY_TO_TREES + ELSEWHERE)
# One installation, whose daemons die one after another, each at the next point. What is passed once in the life of an
# installation or of a task comes before what the tasks that are left pass again.
CHAINS: dict[str, tuple[str, ...]] = {
    "from the lock to the end of a run": (
        *("daemon-locked", "token-written", "schema-changed", "store-begin", "inbox-before-take", "submit-committed"),
        *("run-dir-new", "run-spawned", "start-spawned", "outcome-read", "cancel-asked"),
    ),
    "from the token to a run given up": (
        *("token-linked", "endpoint-written", "store-before-commit", "inbox-after-take", "run-files-written"),
        *("start-committed", "revoked-made", "check-committed", "cancel-made"),
    ),
    "from a refused file to a restart": (
        *("tick-begin", "inbox-before-error-file", "run-dir-renamed", "start-prepared", "lock-held", "check-prepared"),
        *("finish-begin", "cancel-written", "restart-committed"),
    ),
    "from a commit to a directory swept": (
        *("store-after-commit", "tick-end", "inbox-after-error-file", "run-dir-made", "run-dir-trashed"),
        *("finish-committed", "cancel-nudged"),
    ),
    "moved files": (
        *(
            "inbox-before-move",
            "inbox-after-move",
            "run-dir-made",
            "run-dir-removed",
            "run-dir-made",
            "survivors-ended",
            # The last on the way to the end of a run here: the tick may have asked for it before its daemon dies.
            "cancel-committed",
        ),
    ),
    "a tier and a notice": ("tier-asked", "start-committed", "revoked-written", "notice-stored", "notice-sent"),
}
CHAINED = {"moved files": MOVING, "a tier and a notice": {**ASKING, **TELLING}}


def test_every_point_is_in_a_chain() -> None:
    assert set(ALONE) - {point for chain in CHAINS.values() for point in chain} == set()


@pytest.mark.parametrize("chain", CHAINS)
def test_daemons_killed_one_after_another_leave_no_trace_in_their_tasks(new_site: Site, chain: str) -> None:
    new_site.configure(**CHAINED.get(chain, {}))
    operator = Operator(new_site, [{"crash_at": point} for point in CHAINS[chain]])
    operator.work()
    tasks = operator.finish()
    passed = dict(zip(CHAINS[chain], operator.ended, strict=False))
    assert passed == dict.fromkeys(CHAINS[chain], -9), "a crash point was not passed"
    assert_nothing_shows(tasks)


@pytest.mark.chaos
@pytest.mark.parametrize("point", ALONE)
def test_a_daemon_killed_at_any_point_leaves_no_trace_in_its_tasks(new_site: Site, point: str) -> None:
    new_site.configure(**WITH.get(point, {}))
    lives = [AFTER[point]] if point in AFTER else []
    operator = Operator(new_site, [*lives, {"crash_at": point}])
    operator.work()
    tasks = operator.finish()
    assert operator.ended == [-9] * (len(lives) + 1), "the crash point was not passed"
    assert_nothing_shows(tasks)


@pytest.mark.chaos
@pytest.mark.parametrize("point", AGAIN)
def test_a_daemon_killed_in_the_midst_of_its_work_leaves_no_trace(new_site: Site, point: str) -> None:
    operator = Operator(new_site, [{"crash_at": point}])
    operator.work()
    assert_nothing_shows(operator.finish())
    assert operator.ended == [-9], "the crash point was not passed"


def check_after_lost_shims(operator: Operator, *points: str) -> None:
    """Shims died at these points for a while: what had not been marked as started, or was recorded, is as ever."""
    tasks = operator.finish()
    if not any(MARKED_FROM <= SHIM_POINTS.index(point) < RECORDED_FROM for point in points):
        assert_nothing_shows(tasks)
    for task in tasks.values():
        reasons = {"lost", "dependency_failed", "check_failed"}
        if task.name == RESUMED.name:
            # Its agent may have been lost before it could remember anything, and begins its script again.
            reasons.add("agent_error")
        assert task.state in ("COMPLETED", "CANCELLED") or task.reason in reasons
    assert tasks["stubborn"].state == "COMPLETED", "it had asked to be tried again after a loss"


def lose_shims(operator: Operator, point: str) -> None:
    """Wait until a shim of this daemon died at the point, and end the daemon."""
    client = operator.daemon.client

    def shim_was_killed() -> bool:
        runs = [run for task in client.all_tasks() for run in client.runs(task.id)]
        if SHIM_POINTS.index(point) < MARKED_FROM:
            return any(run.state == "revoked" for run in runs)
        if SHIM_POINTS.index(point) < RECORDED_FROM:
            return any(run.outcome is not None and run.outcome.status == "lost" for run in runs)
        return any(run.state == "ended" for run in runs)

    wait_until(shim_was_killed, f"a shim to be killed at {point}")
    operator.daemon.kill()


# One point of each kind in the gate: before the start is marked, after it, of a stopping, and once the end is recorded.
# What a shim leaves behind at each of its points, and what is made of that: tests/integration/hosts/test_shim_crash.py.
SHIMS_IN_SHORT = ("session-made", "started-made", "agent-spawned", "kill-sent", "stragglers-ended", "exit-renamed")


@pytest.mark.parametrize(
    "point",
    [pytest.param(point, marks=[] if point in SHIMS_IN_SHORT else pytest.mark.chaos) for point in OF_ONE_SHIM],
)
def test_shims_killed_at_any_point_lose_no_task_and_start_none_twice(site: Site, point: str) -> None:
    operator = Operator(site, [{"crash_shim": point}])
    operator.hand_in()
    if point in STOPPING:
        operator.cancel_endless()
    if point in AS_IT_STARTS:
        client = operator.daemon.client
        wait_until(lambda: client.task(ENDLESS.name).state == "FAILED", "the endless task to be lost with its shim")
    lose_shims(operator, point)
    operator.work()
    check_after_lost_shims(operator, point)


def pairs() -> Iterator[tuple[str, str]]:
    """Points of shim and daemon that are passed in one life."""
    for position, shim in enumerate(SHIM_POINTS):
        ends = UNMARKED_ENDS if position < MARKED_FROM else LOST_ENDS if position < RECORDED_FROM else RECORDED_ENDS
        if shim not in STOPPING + BY_THE_SECOND_SHIM:
            yield from itertools.product((shim,), ends)
    yield from itertools.product(("agent-spawned",), WITH_LOST_SHIM)


IN_SHORT = (
    ("lock-taken", "revoked-written"),
    ("started-made", "survivors-ended"),
    ("agent-spawned", "survivors-signalled"),
    ("agent-spawned", "survivors-ended"),
    ("agent-ended", "finish-begin"),
    ("exit-renamed", "outcome-read"),
)


@pytest.mark.parametrize(
    ("shim", "daemon"),
    [pytest.param(*pair, marks=[] if pair in IN_SHORT else pytest.mark.chaos) for pair in pairs()],
)
def test_shims_and_daemon_killed_together(site: Site, shim: str, daemon: str) -> None:
    operator = Operator(site, [{"crash_shim": shim, "crash_at": daemon}])
    operator.work()
    check_after_lost_shims(operator, shim)
    assert operator.ended == [-9], "the crash point was not passed"
