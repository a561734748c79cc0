"""/v1/tasks: which method of the service answers each operation."""

from claudomator_py.api.served import serve
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.resources.tasks.shape import TaskCalls

tasks = serve(
    "tasks",
    Tasks,
    {
        TaskCalls.submit: Tasks.submit,
        TaskCalls.tasks: Tasks.page,
        TaskCalls.task: Tasks.one,
        TaskCalls.cancel: Tasks.cancel,
        TaskCalls.restart: Tasks.restart,
        TaskCalls.answer: Tasks.answer,
        TaskCalls.approve: Tasks.approve,
        TaskCalls.reject: Tasks.reject,
        TaskCalls.why: Tasks.why,
        TaskCalls.runs: Tasks.runs,
    },
)
