"""Conditions that take too much: nothing but the rule notices."""

import fcntl
import os
import signal
import subprocess
import sys
import termios
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.task import TaskSpec
from claudomator_py.policy import condition, sandbox
from claudomator_py.policy.condition import BadCondition, Condition
from claudomator_py.policy.cost import is_small
from claudomator_py.policy.expression import Allowance, Expression, Unevaluated, code_of, context_of
from claudomator_py.policy.facts import MAX_TEXT, Facts
from claudomator_py.policy.rule import Rule
from claudomator_py.policy.verdict import Policy
from tests.cells import cells
from tests.patience import wait_until
from tests.unit.policy.hostile import CONDITIONS, MEGABYTE, MEMORY, NEAR, READ, TIME, facts, large

COSTLY = "task.paths.all(p, task.tags.all(t, p != t))"


def process() -> int:
    """The process that evaluates, which was started."""
    assert Condition(COSTLY).applies(context_of(facts()))
    process = sandbox._SANDBOX._process
    assert process is not None
    return process._popen.pid


def value(tried: Condition, values: dict[str, Any]) -> bool | str:
    """Of that condition; why it has none."""
    try:
        return tried.applies(context_of(values))
    except Unevaluated as undecided:
        text = str(undecided)
    assert len(text) < 500
    return text


@pytest.fixture
def small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes too much takes all that it may, which is less here than for a daemon."""
    monkeypatch.setattr(sandbox, "MAX_CPU_MS", 100)


@pytest.mark.usefixtures("small_budget")
@pytest.mark.parametrize("text", cells([MEMORY[0], TIME[0]], [*MEMORY[1:], *TIME[1:]]))
def test_what_takes_too_much_for_a_task_has_no_value_for_it(text: str) -> None:
    tried = Condition(text)
    assert not tried.is_small
    with pytest.raises(Unevaluated, match="the budget of a rule"):
        tried.applies(context_of(large()))
    assert isinstance(tried.applies(context_of(facts(text="Tidy up.", paths=[], tags=[]))), bool)


@pytest.mark.parametrize("text", cells(MEMORY[:1], MEMORY[1:3]))
def test_what_takes_too_much_memory_is_told_so(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "MAX_CPU_MS", 20_000)
    with pytest.raises(Unevaluated, match="more than 128 MiB of memory, the budget of a rule"):
        Condition(text).applies(context_of(large(), Allowance(20_000, 20_000)))


@pytest.mark.usefixtures("small_budget")
@pytest.mark.parametrize("text", NEAR)
def test_what_may_take_too_much_has_a_value_or_none(text: str) -> None:
    assert isinstance(value(Condition(text), large()), bool | str)


@pytest.mark.parametrize("text", READ)
def test_what_takes_too_much_for_any_task_is_refused_when_it_is_read(text: str) -> None:
    with pytest.raises(BadCondition, match="the budget of a rule") as refused:
        Condition(text)
    assert refused.value.remedy


@pytest.mark.parametrize("pattern", [r"(\w{90}|\W{90}){5}", r"(?i)\pL{250}", r"((a{20}){20}){20}", "(a|" * 20_000])
def test_a_pattern_from_a_text_takes_no_more_than_it_may(pattern: str) -> None:
    tried = Condition("task.name.matches(task.text) || task.text.matches(task.text)")
    assert isinstance(value(tried, facts(text=pattern)), bool | str)


def test_what_is_evaluated_elsewhere_has_the_values_of_its_own_task() -> None:
    tried = Condition('[task.text].exists(t, t == "a") && spent.day.usd < limits.day.usd && size(task.tags) == 1')
    values = facts(text="a")
    assert tried.applies(context_of(values))
    values["task"]["text"] = "b"
    assert not tried.applies(context_of(values))
    values["task"]["text"], values["limits"]["day"]["usd"] = "a", float("inf")
    assert tried.applies(context_of(values))


def test_a_task_that_says_much_is_looked_at_elsewhere_by_ordinary_rules_too() -> None:
    tried, words = Condition('task.text.contains("zzz") || size(task.text) > 5'), context_of(large())
    assert tried.is_small
    assert tried.applies(words)
    assert "converted" not in vars(words), "the library had no part in it here"
    short = context_of(facts(text="zzz"))
    assert tried.applies(short)
    assert "converted" in vars(short)
    of_role = context_of(large())
    assert Condition('actor.role != "read"').applies(of_role)
    assert "converted" in vars(of_role), "that looks at nothing long"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_process_that_was_ended_is_followed_by_another_one(number: signal.Signals) -> None:
    before = process()
    os.kill(before, number)
    os.waitid(os.P_PID, before, os.WEXITED | os.WNOWAIT)
    assert process() != before


def test_a_condition_is_evaluated_again_whose_process_was_ended_from_outside() -> None:
    before, tried = process(), Condition(COSTLY)
    evaluator = sandbox._SANDBOX._process
    assert evaluator is not None
    os.kill(before, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as other:
        asked = other.submit(tried.applies, context_of(facts()))
        waiting = bytearray(4)
        wait_until(lambda: fcntl.ioctl(evaluator._in, termios.FIONREAD, waiting) == 0 and any(waiting), "a question")
        os.kill(before, signal.SIGKILL)
        assert asked.result()


@pytest.mark.usefixtures("small_budget")
def test_the_next_process_is_there_before_it_is_needed() -> None:
    before = process()
    with pytest.raises(Unevaluated):
        Condition(TIME[0]).applies(context_of(large()))
    following = sandbox._SANDBOX._process
    assert following is not None
    assert following._popen.pid != before
    assert process() == following._popen.pid


def test_a_process_that_answers_nothing_is_followed_by_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    before, tried = process(), Condition(COSTLY)
    monkeypatch.setattr(sandbox, "MAX_WALL_S", 0.2)
    os.kill(before, signal.SIGSTOP)
    with pytest.raises(Unevaluated, match=r"longer than 0\.2 s"):
        tried.applies(context_of(large()))
    monkeypatch.undo()
    assert process() != before


def test_rules_together_take_no_more_than_they_may_for_a_task() -> None:
    context = context_of(large(), Allowance(600, 600))
    tried, begun_s = Condition(TIME[0]), time.monotonic()
    texts = []
    for _ in range(20):
        with pytest.raises(Unevaluated) as undecided:
            tried.applies(context)
        texts.append(str(undecided.value))
    assert texts[0] == "it takes more than 0.5 s of the processor's time, the budget of a rule"
    assert texts[-1] == "the rules together take more than 0.6 s of the processor's time"
    assert time.monotonic() - begun_s < 30


def test_no_memory_is_kept_that_a_condition_took() -> None:
    tried = Condition(f"size([task.text]{'.map(t, t + t)' * 4}) > 0")
    for _ in range(3):
        assert tried.applies(context_of(facts(text=MEGABYTE)))
        pid = process()
        resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        assert resident < 120 * 1024 * 1024


def test_it_ends_with_whoever_started_it() -> None:
    code = (
        "import os; from claudomator_py.policy import sandbox; from claudomator_py.policy.condition import Condition; "
        f"Condition({COSTLY!r}); print(sandbox._SANDBOX._process._popen.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    run = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=False)
    assert run.returncode == -signal.SIGKILL
    until_s = time.monotonic() + 20
    while Path(f"/proc/{run.stdout.strip()}/cmdline").exists() and time.monotonic() < until_s:
        time.sleep(0.02)  # it is nobody's child, so nothing tells of its end
    assert not Path(f"/proc/{run.stdout.strip()}/cmdline").exists()


@pytest.mark.usefixtures("small_budget")
def test_a_rule_beyond_its_budget_holds_the_task_and_says_so() -> None:
    rules = [{"name": "wide", "when": TIME[0], "allow": True}, {"name": "deep", "when": MEMORY[0], "deny": "no"}]
    policy = Policy([Rule.model_validate(rule) for rule in rules])
    assert policy.may_take_long
    spec = TaskSpec(name="t", instructions=MEGABYTE.strip())
    paths = tuple(f"a{number}.py" for number in range(200))
    verdict = policy.judge(Facts(spec, OPERATOR, paths=paths))
    assert verdict.demanded is not None
    assert verdict.demanded.rules == ("deep",), "one that only allows is passed over"
    assert [check.rule for check in verdict.checks if check.matched is None] == ["wide", "deep"]
    assert all("the budget of a rule" in str(check.detail) for check in verdict.checks)


def test_no_rule_is_sure_of_a_text_that_is_too_long() -> None:
    policy = Policy([Rule.model_validate({"name": "words", "when": '"x" in [task["text"]]', "deny": "no"})])
    spec = TaskSpec(name="t", instructions="t").model_copy(update={"instructions": "t" * (MAX_TEXT + 1)})
    demanded = policy.judge(Facts(spec)).demanded
    assert demanded is not None
    assert demanded.rules == ("words",)


def of_library(text: str, values: dict[str, Any]) -> object:
    """What the library says in this process, of a condition that costs little."""
    try:
        return Expression(text, code_of(text)).value(context_of(values))
    except Unevaluated as undecided:
        return str(undecided)


@settings(suppress_health_check=list(HealthCheck), deadline=None)
@given(CONDITIONS)
def test_a_condition_has_the_same_value_wherever_it_is_evaluated(text: str) -> None:
    if len(text) > condition.MAX_LENGTH or not is_small(text):
        return
    for values in (facts(), facts(text="\N{PILE OF POO} a", tags=[], paths=["a/b"])):
        try:
            here = of_library(text, values)
        except (ValueError, RecursionError):
            return  # it is none
        try:
            there: object = sandbox.evaluate(text, context_of(values))
        except Unevaluated as undecided:
            there = str(undecided)
        assert there == (here if isinstance(here, bool) else str(here)[:1_000])


@pytest.mark.usefixtures("small_budget")
@settings(suppress_health_check=list(HealthCheck), deadline=None)
@given(CONDITIONS)
def test_no_condition_ends_this_process_or_takes_more_than_it_may(text: str) -> None:
    try:
        tried = Condition(text[: condition.MAX_LENGTH])
    except BadCondition:
        return
    values, begun_s = large(), time.thread_time()
    value(tried, values)
    assert time.thread_time() - begun_s < 0.5, "of this thread; large facts are written to the other process"
