"""The header Idempotency-Key (IETF draft-ietf-httpapi-idempotency-key-header): a request sent again is not done again.

The draft's key is a quoted string (RFC 8941); the bare words that many clients send are taken as well. The fingerprint
is of the method, the path with its query, and the body, so a key that comes with another request shows. What was
answered is kept as ``core.idempotency`` says.
"""

import hashlib
import re
from typing import Annotated, Final

from fastapi import Depends, Header, Request

from claudomator_py.core.idempotency import LONGEST_KEY, RequestKey
from claudomator_py.web.problem import Refused

HEADER: Final = "Idempotency-Key"
_KEY = re.compile(
    rf'"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\]){{1,{LONGEST_KEY}}})"|([\w.:~+/=-]{{1,{LONGEST_KEY}}})', re.ASCII
)
_ESCAPED = re.compile(r'\\(["\\])')


async def _request_key(
    request: Request,
    key: Annotated[
        str | None,
        Header(
            alias=HEADER,
            description="The client's own name for this request, such as a UUID. The same request with the same key "
            "is answered as it was the first time, for 24 hours, and not done again.",
            examples=['"8e03978e-40d5-43e8-bc93-6894a57f9324"'],
        ),
    ] = None,
) -> RequestKey | None:
    given = request.headers.getlist(HEADER)
    if key is None or not given:
        return None
    match = _KEY.fullmatch(given[0].strip(" \t"))
    if match is None or len(given) > 1:
        raise Refused(
            400,
            "bad_idempotency_key",
            f"{HEADER} is not one key of 1 to {LONGEST_KEY} characters.",
            f'Send it once, as a quoted string: {HEADER}: "8e03978e-40d5-43e8-bc93-6894a57f9324".',
        )
    named = _ESCAPED.sub(r"\1", match[1]) if match[1] is not None else match[2]
    return RequestKey(named, await _fingerprint(request))


async def _fingerprint(request: Request) -> str:
    digest = hashlib.sha256()
    # Lengths first, so that no part can pass for the end of another.
    for part in (
        request.method.encode("ascii"),
        request.scope["raw_path"],
        request.scope["query_string"],
        await request.body(),
    ):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


IdempotencyKey = Annotated[RequestKey | None, Depends(_request_key)]
