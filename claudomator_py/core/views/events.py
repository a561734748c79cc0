"""What happened."""

from pydantic import Field

from claudomator_py.core.view import Instant, View


class EventView(View):
    """Something that happened; ids rise in the order of happening. by: whose request caused it, such as the name of a
    token; None: nobody's, but the daemon's own."""

    id: int
    at: Instant
    task_id: str | None = None
    run_id: str | None = None
    kind: str
    data: dict[str, object] = Field(default_factory=dict)
    by: str | None = None
