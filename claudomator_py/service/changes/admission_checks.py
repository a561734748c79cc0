"""What only the store can say against a valid task: a circle of dependencies."""

from collections.abc import Sequence

from sqlalchemy import Connection

from claudomator_py.core.problem import Problem
from claudomator_py.core.task import TaskSpec
from claudomator_py.store import dependency_rows
from claudomator_py.store.tables import Task


def circle_problem(connection: Connection, contents: Sequence[tuple[Task, TaskSpec]]) -> Problem | None:
    """A circle that these tasks close with this content, which is stored or will be, or None."""
    circle = dependency_rows.circle(connection, {task.id: spec.needs for task, spec in contents})
    if circle is None:
        return None
    message = f"the tasks would wait for each other for ever: {' -> '.join(circle)}"
    field = "depends_on" if any(spec.depends_on for _, spec in contents) else "continues"
    return Problem(field=field, message=message, remedy="leave out one of these dependencies")
