"""A cheap model that says what a test has it say, and an executor that waits until it is let go."""

from concurrent.futures import Executor, Future
from typing import Any

from claudomator_py.scheduler.classification import ModelQuestion

ACCOUNT = ("simulated", "shared")


class Model:
    """Says what it is told to, in turn; then that it is the last one. asked: every question."""

    model = "lite"

    def __init__(self, *says: str | Exception) -> None:
        self.says = list(says)
        self.asked: list[ModelQuestion] = []

    def ask(self, question: ModelQuestion, timeout_s: float) -> str:
        self.asked.append(question)
        text = self.says.pop(0) if self.says else '{"specialist": "twin-b"}'
        if isinstance(text, Exception):
            raise text
        return text

    def close(self) -> None:
        """Nothing to let go of."""


class Later(Executor):
    """Keeps what it is given until somebody lets it be done."""

    def __init__(self) -> None:
        self.given: list[tuple[Any, ...]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        self.given.append((fn, args))
        return Future()

    def work(self) -> None:
        given, self.given = self.given, []
        for fn, args in given:
            fn(*args)
