"""Changes by HTTP: which method of the service answers each operation."""

from claudomator_py.api.served import serve
from claudomator_py.resources.changes.service import Changes
from claudomator_py.resources.changes.shape import ChangeCalls

changes = serve("changes", Changes, {ChangeCalls.changes: Changes.of_task, ChangeCalls.patch: Changes.patch})
