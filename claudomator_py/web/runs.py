"""/v1/runs: one run, and what it wrote."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from claudomator_py.core.run import Stream
from claudomator_py.core.views import RunView
from claudomator_py.service.desk import Desk
from claudomator_py.web.openapi import problems

MAX_LOG_BYTES = 1024 * 1024
LOG_TYPE = "application/octet-stream"

RunId = Annotated[str, Path(max_length=128)]
_LOG_RESPONSE = {
    "description": "Bytes of the stream from `offset`; none when there is nothing yet",
    "content": {LOG_TYPE: {"schema": {"type": "string", "format": "binary"}}},
    "headers": {
        "Claudomator-Next-Offset": {"description": "Where to go on", "schema": {"type": "integer"}},
        "Claudomator-Ended": {"description": "Nothing follows", "schema": {"enum": ["true", "false"]}},
    },
}


def router(desk: Desk) -> APIRouter:
    """The routes, on this desk."""
    routes = APIRouter(prefix="/v1/runs", tags=["runs"])

    @routes.get("/{run_id}", operation_id="getRun", summary="One run", responses=problems(404, 422))
    def get_run(run_id: RunId) -> RunView:
        return desk.run(run_id)

    @routes.get(
        "/{run_id}/log",
        operation_id="readLog",
        summary="What a run wrote, by byte offset",
        response_class=Response,
        responses={200: _LOG_RESPONSE, **problems(404, 422)},
    )
    def read_log(
        run_id: RunId,
        stream: Stream = "stdout",
        offset: Annotated[int, Query(ge=0, le=2**53)] = 0,
        limit: Annotated[int, Query(ge=1, le=MAX_LOG_BYTES)] = 65_536,
    ) -> Response:
        chunk = desk.log(run_id, stream, offset, limit)
        headers = {
            "Claudomator-Next-Offset": str(chunk.next_offset),
            "Claudomator-Ended": "true" if chunk.ended else "false",
            "Content-Disposition": "attachment",  # what an agent wrote is never shown as a page
        }
        return Response(chunk.data, headers=headers, media_type=LOG_TYPE)

    return routes
