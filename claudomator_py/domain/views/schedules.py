"""The JSON shapes of schedules. Field order is the order of the JSON."""

from claudomator_py.domain.lifecycle import StateName
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.schedule import CatchUp, Overlap
from claudomator_py.domain.views.base import Instant, View


class FireView(View):
    """A time of a schedule that was dealt with. skipped: why no task was made. by: ``clock`` or ``operator``."""

    due_at: Instant
    by: str
    task_id: str | None = None
    task_name: str | None = None
    task_state: StateName | None = None
    skipped: str | None = None


class ScheduleView(View):
    """A schedule. next_at: its next time; absent while paused. last: the newest time that was dealt with.

    timezone: the one in force, named or not. source: ``file`` or ``api``. file_path: the file that it follows.
    spec: the content as a task file would write it. creator, organisation: as those of the tasks that it makes.
    """

    id: str
    name: str
    schedule: str
    timezone: str
    catch_up: CatchUp
    overlap: Overlap
    next_at: Instant | None = None
    paused_since: Instant | None = None
    last: FireView | None = None
    source: str
    file_path: str | None = None
    created_at: Instant
    spec: dict[str, object]
    creator: str = OPERATOR.id
    organisation: str | None = None
