"""/v1/schedules: which method of the service answers each operation."""

from claudomator_py.api.served import serve
from claudomator_py.resources.schedules.service import Schedules
from claudomator_py.resources.schedules.shape import ScheduleCalls

schedules = serve(
    "schedules",
    Schedules,
    {
        ScheduleCalls.schedules: Schedules.all,
        ScheduleCalls.add_schedule: Schedules.add,
        ScheduleCalls.schedule: Schedules.one,
        ScheduleCalls.pause_schedule: Schedules.pause,
        ScheduleCalls.resume_schedule: Schedules.resume,
        ScheduleCalls.run_schedule: Schedules.run,
        ScheduleCalls.delete_schedule: Schedules.delete,
    },
)
