"""Why a task is where it is, on one line, with its instants on the clock here."""

from claudomator_py.cli.times import clock
from claudomator_py.core.views import TaskView
from claudomator_py.core.waits import sentence_of, worded


def why_words(task: TaskView, now: int) -> str:
    """The reason, and what it means: ``limited: claude 5h window until 14:20, reported``. now: epoch milliseconds."""
    sentence = sentence_of(task.reason_text, task.waiting_until, [hold.until for hold in task.holds])
    said = worded(sentence, lambda instant: clock(instant, now)) if sentence is not None else ""
    return ": ".join(part for part in (task.reason, said) if part)
