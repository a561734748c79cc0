"""Finding what somebody means, of what exists for them."""

from sqlalchemy import Connection

from claudomator_py.domain.errors import Ambiguous, NotFound
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.units import short_id
from claudomator_py.store import reads, run_rows
from claudomator_py.store.tables import Run, Task

SHORTEST_PREFIX = 4
"""A shorter one is hardly meant for an id, even if only one begins so."""


def find_task(connection: Connection, ref: str, by: Principal) -> Task:
    """The task that somebody means, of those that exist for that principal. Raises NotFound or Ambiguous."""
    found = reads.matching(connection, ref, by)
    if not found:
        raise NotFound.among("task", ref, reads.names_like(connection, by), listing="claudomator status")
    ids = ", ".join(f"{short_id(task.id)} ({task.name})" for task in found)
    whole = ref == found[0].name or ref.lower() == found[0].id
    if not whole and len(ref) < SHORTEST_PREFIX:
        detail = f"There is no task {ref!r}. As the beginning of an id it is too short: {ids} would begin so."
        raise NotFound(detail, remedy=f"Write the name, or at least {SHORTEST_PREFIX} characters of the id.")
    if len(found) > 1:
        raise Ambiguous(f"{ref!r} could mean {ids}.", remedy="Write the name, or a longer prefix of the id.")
    return found[0]


def find_run(connection: Connection, ref: str, by: Principal) -> Run:
    """Return the run of that id, or whose id begins so, if it exists for whoever asks. Raises NotFound or Ambiguous."""
    run = run_rows.find(connection, ref, by)
    if run is not None:
        return run
    found = [] if len(ref) < SHORTEST_PREFIX or "\0" in ref else run_rows.beginning(connection, ref, by)
    if not found:
        raise NotFound(f"There is no run {ref!r}.", remedy="List a task's runs with `claudomator show TASK`.")
    if len(found) > 1:
        ids = ", ".join(short_id(one.id) for one in found)
        raise Ambiguous(f"{ref!r} is the beginning of {ids}.", remedy="Write a longer prefix of the id.")
    return found[0]
