"""/v1/channels/{id}/incoming: messages from outside, which are signed with the channel's secret."""

from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from claudomator_py.api.operation import access_of, guarded
from claudomator_py.api.problem import Refused
from claudomator_py.resources.channels.webhook import IncomingWebhooks, NotSigned

incoming = guarded()
"""What it takes is said by who sends: it is described where channels are, and not in the document of the API."""


@incoming.post("/v1/channels/{channel_id}/incoming")
async def take(request: Request, channel_id: str) -> JSONResponse:
    """Take a message, or whatever else that service sends. 401 without a word of why."""

    def header(name: str) -> str | None:
        given = request.headers.getlist(name)
        return given[0] if len(given) == 1 else None

    body = await request.body()
    try:
        answer: dict[str, Any] = await run_in_threadpool(
            access_of(request)[IncomingWebhooks].take, channel_id, header, body
        )
    except NotSigned:
        raise Refused(
            401, "not_authorised", "The request is not signed.", "Sign it with the channel's secret."
        ) from None
    return JSONResponse(answer)
