"""Finding what somebody means, of what exists for them."""

from sqlalchemy import Connection

from claudomator_py.domain.errors import Ambiguous, NotFound
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.units import short_id
from claudomator_py.store import reads, run_rows
from claudomator_py.store.tables import Run, Task


def find_task(connection: Connection, ref: str, by: Principal) -> Task:
    """The task that somebody means, of those that exist for that principal. Raises NotFound or Ambiguous."""
    found = reads.matching(connection, ref, by)
    if not found:
        raise NotFound.among("task", ref, reads.names_like(connection, by))
    if len(found) > 1:
        ids = ", ".join(f"{short_id(task.id)} ({task.name})" for task in found)
        raise Ambiguous(f"{ref!r} could mean {ids}.", remedy="Use a longer prefix of the id.")
    return found[0]


def find_run(connection: Connection, run_id: str, by: Principal) -> Run:
    """The run of that id, if it exists for whoever asks. Raises NotFound."""
    run = run_rows.find(connection, run_id, by)
    if run is None:
        raise NotFound(f"There is no run {run_id!r}.", remedy="List a task's runs with `claudomator show TASK`.")
    return run
