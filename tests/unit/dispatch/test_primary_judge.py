"""Asking the cheap model whether the primary should answer: yes in time means yes, and everything else no."""

import threading
from collections.abc import Callable, Iterator

import pytest

from claudomator_py.dispatch.cheap_model import TIMEOUT_S, GuardedModel, PrimaryJudge
from claudomator_py.routing.questions import Reply, ReplyQuestion
from claudomator_py.scheduler.classification import Cause, ModelFault, ModelQuestion
from claudomator_py.store.database import Database

QUESTION = ReplyQuestion("kitchen", "Cook", "what is for dinner?")


class Told:
    """A model that does what a test says."""

    model = "told"

    def __init__(self, answer: Callable[[], str]) -> None:
        self._answer = answer

    def ask(self, question: ModelQuestion, timeout_s: float) -> str:
        assert "what is for dinner?" in question.prompt
        assert timeout_s < 1
        return self._answer()

    def close(self) -> None:
        """Nothing."""


@pytest.fixture
def judging(database: Database) -> Iterator[Callable[..., PrimaryJudge]]:
    made: list[PrimaryJudge] = []

    def judge(answer: Callable[[], str] | None, **more: float) -> PrimaryJudge:
        model = None if answer is None else GuardedModel(Told(answer), lambda: 0)
        made.append(PrimaryJudge(database, lambda: model, **more))
        return made[-1]

    yield judge
    for primary_judge in made:
        primary_judge.close()


def fails() -> str:
    raise ModelFault(Cause.SERVER_ERROR, "it is down")


def breaks() -> str:
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("answer", "yes"),
    [
        (lambda: '{"answer": "yes"}', True),
        (lambda: '{"answer": "no"}', False),
        (lambda: "perhaps", False),
        (fails, False),
        (breaks, False),
        (None, False),
    ],
    ids=["yes", "no", "perhaps", "fails", "breaks", "none"],
)
def test_only_yes_is_yes(judging: Callable[..., PrimaryJudge], answer: Callable[[], str] | None, yes: bool) -> None:
    assert judging(answer).ask(QUESTION).yes is yes


def test_a_model_that_takes_longer_has_said_no(judging: Callable[..., PrimaryJudge]) -> None:
    held = threading.Event()

    def late() -> str:
        held.wait(60)
        return '{"answer": "yes"}'

    try:
        assert judging(late, timeout_s=0.01).ask(QUESTION) == Reply(yes=False, cause="timeout")
    finally:
        held.set()


def test_one_that_is_closed_says_no(judging: Callable[..., PrimaryJudge]) -> None:
    judge = judging(lambda: '{"answer": "yes"}')
    judge.close()
    assert not judge.ask(QUESTION).yes


def test_it_has_less_than_a_second() -> None:
    assert TIMEOUT_S < 1
