"""Requests to servers that others run, each within a deadline in all.

A timeout of httpx is for each read: a server that sends a byte now and then, in its headers or in its answer, holds a
request for days. So requests are made on a loop of their own, which is on a thread of its own, where what has not ended
in time is cancelled wherever it is; whoever asks waits for that.
"""

import asyncio
import ssl
import threading
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from functools import cache
from typing import Any, Final, TypeVar

import httpx

T = TypeVar("T")
_CLOSING_S: Final = 5.0
"""How long it may take to let go of a connection."""


def client(
    timeout_s: float | None = None, *, trust_env: bool = False, verify: ssl.SSLContext | bool = True
) -> httpx.Client:
    """Return a client to use from any thread. Whatever timeout a request has is for all of it, its answer included;
    timeout_s: of those that have none of their own. Raises httpx.ReadTimeout, whatever it was that took too long. It is
    led nowhere else by the answer. trust_env: whether proxies are used that the environment names."""
    asked = httpx.AsyncClient(timeout=timeout_s, follow_redirects=False, trust_env=trust_env, verify=verify)
    return httpx.Client(transport=_InTime(asked), timeout=timeout_s, follow_redirects=False, trust_env=False)


class _InTime(httpx.BaseTransport):
    def __init__(self, asked: httpx.AsyncClient) -> None:
        self._asked = asked

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        until_s = _until(request)
        response = _done(self._asked.send(request, stream=True), until_s, request)
        return httpx.Response(response.status_code, headers=response.headers, stream=_Body(response, until_s, request))

    def close(self) -> None:
        _done(self._asked.aclose(), time.monotonic() + _CLOSING_S)


class _Body(httpx.SyncByteStream):
    """What is answered, as it comes."""

    def __init__(self, response: httpx.Response, until_s: float, request: httpx.Request) -> None:
        self._response = response
        self._until_s = until_s
        self._request = request

    def __iter__(self) -> Iterator[bytes]:
        pieces = self._response.aiter_raw()
        while piece := _done(_next(pieces), self._until_s, self._request):
            yield piece

    def close(self) -> None:
        _done(self._response.aclose(), time.monotonic() + _CLOSING_S)


def _until(request: httpx.Request) -> float:
    """When it has to have ended, on the monotonic clock."""
    timeouts = [seconds for seconds in request.extensions.get("timeout", {}).values() if seconds is not None]
    return time.monotonic() + max(timeouts) if timeouts else float("inf")


async def _next(pieces: AsyncIterator[bytes]) -> bytes:
    """Return the next piece; an empty one: there is none."""
    return await anext(pieces, b"")


def _done(work: Coroutine[Any, Any, T], until_s: float, request: httpx.Request | None = None) -> T:
    """What comes of it. Raises httpx.ReadTimeout."""

    async def in_time() -> T:
        left_s = until_s - time.monotonic()
        async with asyncio.timeout(None if left_s == float("inf") else left_s):
            return await work

    try:
        return asyncio.run_coroutine_threadsafe(in_time(), _loop()).result()
    except TimeoutError:
        raise httpx.ReadTimeout("it did not end in time", request=request) from None


_BEGINNING = threading.Lock()


def _loop() -> asyncio.AbstractEventLoop:
    # A cache lets two threads that come together begin two loops, and a connection belongs to one.
    with _BEGINNING:
        return _begun()


@cache
def _begun() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="outgoing", daemon=True).start()
    return loop
