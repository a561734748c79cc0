"""Schedules in the words of ``why``: which one made a task and for when, and a dependency that is none of a task."""

from sqlalchemy import Connection

from claudomator_py.service.answers.explain import clock_text
from claudomator_py.store import dependency_rows, schedule_rows
from claudomator_py.store.tables import Task


def schedule_sentences(connection: Connection, task: Task) -> list[str]:
    """What schedules have to do with the task."""
    sentences = []
    found = schedule_rows.fire_of(connection, task.id)
    if found is not None:
        fire, schedule = found
        when = "at an operator's request" if fire.by == "operator" else f"due {clock_text(fire.due_ms, fire.at_ms)}"
        sentences.append(f"It was made by the schedule {schedule.name}, {when} ({schedule.cron}, {schedule.timezone}).")
    if task.state == "WAITING":
        for name, bound_id, _ in dependency_rows.bound(connection, task.id):
            if bound_id is None and schedule_rows.named(connection, name, task.organisation) is not None:
                sentences.append(
                    f"{name} is a schedule: its tasks are named {name}.TIME, and none of them ends the wait."
                )
    return sentences
