"""Why a task is where it is, on one line, with its instants on the clock here."""

from claudomator_py.cli.times import clock
from claudomator_py.domain.blocked import brief_of, wait_of
from claudomator_py.domain.views import TaskView
from claudomator_py.domain.wording import worded


def why_words(task: TaskView, now: int, *, whole: bool = True) -> str:
    """The reason, and what it means: ``limited: claude is limited (5h window, reported) until 14:20``.

    now: epoch milliseconds. whole: with all that is known of it; else in a clause.
    """
    sentence = wait_of(task.blocked, task.reason_text) if whole else brief_of(task.blocked, task.reason_short)
    said = worded(sentence, lambda instant: clock(instant, now)) if sentence is not None else ""
    return ": ".join(part for part in (task.reason, said) if part)
