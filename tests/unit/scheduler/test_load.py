"""What is in use keeps tasks from starting, whichever agents are free."""

import pytest

from claudomator_py.domain.blocked import BlockCode, Why, blocked
from claudomator_py.domain.routing import Constraints, RuleCap
from claudomator_py.domain.wording import TaskRef
from claudomator_py.scheduler.load import InUse, Load, load_of
from claudomator_py.scheduler.snapshot import KeptDirectory
from tests.fakes.configuration import rules
from tests.unit.scheduler.situations import NOW, agent, decide, head, snapshot, waits


def test_slots_directory_disk_and_draining_are_named() -> None:
    busy = load_of(snapshot(live=1, busy={"/x": 1}))
    task = head(1, dir_key="/x")
    assert waits(task, agent("claude"), load=busy) == blocked(BlockCode.WORKDIR, directory="/x")
    assert decide(task, agent("claude"), load=busy, per_workdir=2).agent == "claude"
    full_up = waits(task, agent("claude"), load=load_of(snapshot(live=4)))
    assert full_up == blocked(BlockCode.SLOTS, active=4, slots=4)
    assert waits(task, agent("claude"), load=load_of(snapshot(disk_low=True))).why is Why.DISK
    assert waits(task, agent("claude"), load=load_of(snapshot(drained=True))) == blocked(BlockCode.DRAINED)


def test_a_directory_that_is_kept_is_for_its_task_and_until_a_time() -> None:
    kept = KeptDirectory(dir_key="/x", task_id="task-002", name="other", until=NOW + 1)
    load = load_of(snapshot(kept=(kept, kept.model_copy(update={"dir_key": "/y"}))))
    result = waits(head(1, dir_key="/x"), agent("claude"), load=load)
    tasks = (TaskRef(name="other", id="task-002"),)
    assert result == blocked(BlockCode.KEPT, directory="/x", tasks=tasks, until=NOW + 1)
    assert decide(head(2, dir_key="/x"), agent("claude"), load=load).agent == "claude"
    assert decide(head(1, dir_key="/z"), agent("claude"), load=load).agent == "claude"
    assert decide(head(1, dir_key="/x"), agent("claude"), load=load, per_workdir=2).agent == "claude"


def kept(number: int, place: str = "/x") -> KeptDirectory:
    return KeptDirectory(dir_key=place, task_id=f"task-{number:03}", name=f"kept-{number}", until=NOW + number)


@pytest.mark.parametrize(
    ("busy", "keepers", "per_workdir", "full", "may"),
    [
        (0, (), 1, False, ()),
        (1, (), 1, True, ()),
        (1, (), 2, False, ()),
        (0, (1,), 1, True, (1,)),
        (0, (1,), 2, False, ()),
        (1, (1,), 1, True, ()),
        (1, (1,), 2, True, (1,)),
        (0, (1, 2), 1, True, ()),
        (0, (1, 2), 2, True, (1, 2)),
        (0, (1, 2), 3, False, ()),
        (2, (1,), 2, True, ()),
    ],
)
def test_a_directory_is_full_by_who_is_in_it_and_for_whom_it_is_kept(
    busy: int, keepers: tuple[int, ...], per_workdir: int, full: bool, may: tuple[int, ...]
) -> None:
    """may: those for whom it is kept, and who may go on there although it is full for others."""
    load = load_of(snapshot(busy={"/x": busy, "/y": 0}, kept=tuple(map(kept, keepers))))

    taken = load.taken(rules(per_workdir=per_workdir))

    assert taken.dir_keys == (frozenset({"/x"}) if full else frozenset())
    assert taken.keepers == {f"task-{number:03}" for number in may}


def test_a_thread_has_one_turn_and_nobody_has_it_while_a_run_of_it_is_live() -> None:
    load = Load(
        now=NOW,
        here=InUse(1),
        busy={},
        disk_low=False,
        threads=frozenset({"a"}),
        in_turn={"a": "task-001", "b": "task-002"},
    )

    taken = load.taken(rules())

    assert taken.threads == {"a", "b"}
    assert isinstance(taken.threads, frozenset)
    assert taken.in_turn == {"task-002"}


@pytest.mark.parametrize(
    ("thread", "may"), [("nobody's", True), ("begun", False), ("its own turn", True), ("another's turn", False)]
)
def test_a_task_waits_while_another_one_is_at_work_in_its_thread_or_has_its_turn_there(thread: str, may: bool) -> None:
    in_turn = {"its own turn": "task-001", "another's turn": "task-002"}
    load = load_of(snapshot(live=1, threads=("begun",), in_turn=in_turn))
    task = head(1 if thread == "its own turn" else 3, thread=thread)
    assert load.taken(rules()).leaves(task.task_id, task.dir_key, thread) is may
    if may:
        assert decide(task, agent("claude"), load=load).agent == "claude"
    else:
        assert waits(task, agent("claude"), load=load) == blocked(BlockCode.CONVERSATION)


def test_a_rule_that_limits_how_many_run_at_a_time_keeps_one_more_from_beginning() -> None:
    few = RuleCap(rule="few deployments", most=2)
    many = RuleCap(rule="many", most=9)
    task = head(1, constraints=Constraints(caps=(many, few)))
    full = load_of(snapshot(capped={"few deployments": 2, "many": 2}))
    assert waits(task, agent("claude"), load=full) == blocked(
        BlockCode.RULE_FULL, rule="few deployments", active=2, slots=2
    )
    assert decide(head(2), agent("claude"), load=full).agent == "claude", "it is not for tasks that no rule limits"
    room = load_of(snapshot(capped={"few deployments": 1, "many": 2}))
    assert decide(task, agent("claude"), load=room).agent == "claude"
