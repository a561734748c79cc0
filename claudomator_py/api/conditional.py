"""Conditional requests (RFC 9110, section 13): the version of a task or a specialist is its entity tag.

The tag is strong: edits compare versions, so If-Match compares strongly and a weak tag never matches. If-None-Match
compares weakly, and 304 says that the task was not changed; why and until when a task waits, which the planner computes
anew, is no part of its version. A precondition is checked after the request itself (400, 404, 415, 422) and before the
action: 412 takes precedence over the 409 of a state that forbids the action.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Annotated, Final

from fastapi import Depends, Header, Request

from claudomator_py.api.problem import Refused
from claudomator_py.domain.principal import MAX_KEY_LENGTH, RequestKey
from claudomator_py.values import dataclass, regex

HEADER: Final = "Idempotency-Key"
_KEY = regex(
    rf'"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\]){{1,{MAX_KEY_LENGTH}}})"|([\w.:~+/=-]{{1,{MAX_KEY_LENGTH}}})', re.ASCII
)
_ESCAPED = regex(r'\\(["\\])')


async def request_key(
    request: Request,
    key: Annotated[
        str | None,
        Header(
            alias=HEADER,
            description="A name that the client chooses for this request, such as a UUID. For 24 hours, the same "
            "request with the same key gets the same response and is not executed again.",
            examples=['"8e03978e-40d5-43e8-bc93-6894a57f9324"'],
        ),
    ] = None,
) -> RequestKey | None:
    """Return the client's key for this request, None without one. A dependency. Raises Refused."""
    given = request.headers.getlist(HEADER)
    if key is None or not given:
        return None
    match = _KEY.fullmatch(given[0].strip(" \t"))
    if match is None or len(given) > 1:
        raise Refused(
            400,
            "bad_idempotency_key",
            f"{HEADER} is not a single key of 1 to {MAX_KEY_LENGTH} characters.",
            f'Send it once, as a quoted string: {HEADER}: "8e03978e-40d5-43e8-bc93-6894a57f9324".',
        )
    named = _ESCAPED.sub(r"\1", match[1]) if match[1] is not None else match[2]
    return RequestKey(named, await _fingerprint(request))


async def _fingerprint(request: Request) -> str:
    digest = hashlib.sha256()
    # Lengths first, so that no part can be mistaken for the end of another.
    for part in (
        request.method.encode("ascii"),
        request.scope["raw_path"],
        request.scope["query_string"],
        await request.body(),
    ):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


IdempotencyKey = Annotated[RequestKey | None, Depends(request_key)]


_TAG = regex(r'(W/)?"([\x21\x23-\x7e\x80-\xff]*)"')
_SEPARATOR = regex(r"[ \t]*(?:,[ \t]*)+")
_VERSION = regex(r"[1-9][0-9]{0,17}")
_ANY: Final = "*"

ETAG_HEADER = {
    "ETag": {
        "description": "The version, for If-Match or If-None-Match",
        "schema": {"type": "string", "pattern": '^"[0-9]+"$'},
        "required": True,
    }
}
NOT_MODIFIED = {"description": "Still the current version", "headers": ETAG_HEADER}


def etag(version: int) -> str:
    """Return the entity tag of a version."""
    return f'"{version}"'


@dataclass(frozen=True, slots=True)
class Tag:
    """One entity tag."""

    opaque: str
    weak: bool


class Tags:
    """The tags in a header: some, or ``*`` for any."""

    def __init__(self, tags: Sequence[Tag] | None) -> None:
        """tags: None for ``*``."""
        self._tags = tags

    @property
    def versions(self) -> frozenset[int] | None:
        """For If-Match: the versions that may be changed; None: any."""
        if self._tags is None:
            return None
        return frozenset(int(tag.opaque) for tag in self._tags if not tag.weak and _VERSION.fullmatch(tag.opaque))

    def matches(self, version: int) -> bool:
        """Return, for If-None-Match, whether the client has this version."""
        return self._tags is None or any(tag.opaque == str(version) for tag in self._tags)


def _parsed(request: Request, header: str) -> Tags | None:
    """Return the header's tags, None without it. Several header lines are one list. Raises Refused if malformed."""
    lines = request.headers.getlist(header)
    if not lines:
        return None
    text = ",".join(lines).strip(" \t")
    if text == _ANY:
        return Tags(None)
    tags: list[Tag] = []
    position = 0
    while position < len(text):
        if separator := _SEPARATOR.match(text, position):
            position = separator.end()
            continue
        match = _TAG.match(text, position)
        if match is None or (tags and text[position - 1] not in ", \t"):
            break
        tags.append(Tag(match[2], weak=match[1] is not None))
        position = match.end()
    if position < len(text) or not tags:
        raise Refused(
            400,
            "bad_precondition",
            f"{header} is neither * nor a list of entity tags.",
            'Send the ETag as received, in quotes, such as "3".',
        )
    return Tags(tags)


def versions_to_match(
    request: Request,
    value: Annotated[
        str | None,
        Header(alias="If-Match", description="The ETag last seen. The change is made only to that version."),
    ] = None,
) -> frozenset[int] | None:
    """Return the versions that a change is limited to, None for any. A dependency. Raises Refused."""
    tags = None if value is None else _parsed(request, "If-Match")
    return None if tags is None else tags.versions


def _if_none_match(
    request: Request,
    value: Annotated[
        str | None, Header(alias="If-None-Match", description="An ETag. 304 if it is still the current version.")
    ] = None,
) -> Tags | None:
    return None if value is None else _parsed(request, "If-None-Match")


IfMatch = Annotated[frozenset[int] | None, Depends(versions_to_match)]
IfNoneMatch = Annotated[Tags | None, Depends(_if_none_match)]
