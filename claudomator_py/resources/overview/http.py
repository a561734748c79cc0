"""/v1/status and /v1/inbox: which method answers each operation."""

from claudomator_py.api.served import serve
from claudomator_py.queries.queries import Queries
from claudomator_py.resources.overview.shape import OverviewCalls

overview = serve(
    "status",
    Queries,
    {OverviewCalls.status: Queries.status, OverviewCalls.inbox_page: Queries.inbox_problems},
)
