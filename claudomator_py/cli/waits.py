"""Why a task is where it is, on one line, with its instants on the clock here."""

from claudomator_py.cli.times import clock
from claudomator_py.domain.views import TaskView
from claudomator_py.domain.waits import sentence_of, worded


def why_words(task: TaskView, now: int, *, whole: bool = True) -> str:
    """The reason, and what it means: ``limited: claude 5h window until 14:20, reported``. now: epoch milliseconds.

    whole: with all that is known of it; else in a clause, without the time that it waits for.
    """
    text, waits_until = (task.reason_text, task.waiting_until) if whole else (task.reason_short, None)
    instants = [task.waiting_until, *(hold.until for hold in task.holds)]
    sentence = sentence_of(text, waits_until, instants)
    said = worded(sentence, lambda instant: clock(instant, now)) if sentence is not None else ""
    return ": ".join(part for part in (task.reason, said) if part)
