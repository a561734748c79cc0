"""Requests to servers run by others, each within one overall deadline.

A timeout of httpx applies to each read: a server that sends a byte now and then, in its headers or its body, can hold a
request for days. So requests run on an event loop in a thread of its own, where whatever has not finished in time is
cancelled at any point, while the calling thread waits.
"""

import asyncio
import ssl
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import cache
from typing import Any, Final, TypeVar

import httpx

from claudomator_py.certificates import certificate_problem

T = TypeVar("T")
_CLOSING_S: Final = 5.0
"""Time limit for closing a connection, in seconds."""


def client(
    timeout_s: float | None = None,
    *,
    trust_env: bool = False,
    trusted: Callable[[], ssl.SSLContext | bool] = lambda: True,
) -> httpx.Client:
    """Return a client for use from any thread. A request's timeout covers the whole request, including the response
    body; timeout_s is the default. Raises httpx.ReadTimeout whatever took too long. Redirects are not followed.
    trust_env: use the proxies named in the environment. trusted: returns which certificates are trusted, as ``verify``
    of httpx; called again after one was not, because the file with the authorities may have changed."""

    def asked() -> httpx.AsyncClient:
        return httpx.AsyncClient(timeout=timeout_s, follow_redirects=False, trust_env=trust_env, verify=trusted())

    return httpx.Client(transport=_InTime(asked), timeout=timeout_s, follow_redirects=False, trust_env=False)


class _InTime(httpx.BaseTransport):
    def __init__(self, make: Callable[[], httpx.AsyncClient]) -> None:
        self._make = make
        self._asked = make()
        self._is_distrusted = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        until_s = _until(request)
        if self._is_distrusted:
            self.close()
            self._asked, self._is_distrusted = self._make(), False
        try:
            response = _done(self._asked.send(request, stream=True), until_s, request)
        except httpx.ConnectError as error:
            self._is_distrusted = certificate_problem(error) is not None
            raise
        return httpx.Response(response.status_code, headers=response.headers, stream=_Body(response, until_s, request))

    def close(self) -> None:
        _done(self._asked.aclose(), time.monotonic() + _CLOSING_S)


class _Body(httpx.SyncByteStream):
    """The response body, as it arrives."""

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
    """The request's deadline on the monotonic clock."""
    timeouts = [seconds for seconds in request.extensions.get("timeout", {}).values() if seconds is not None]
    return time.monotonic() + max(timeouts) if timeouts else float("inf")


async def _next(pieces: AsyncIterator[bytes]) -> bytes:
    """Return the next chunk; empty at the end."""
    return await anext(pieces, b"")


def _done(work: Coroutine[Any, Any, T], until_s: float, request: httpx.Request | None = None) -> T:
    """Run the coroutine on the loop and return its result. Raises httpx.ReadTimeout at the deadline."""

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
    # A cache alone would let two threads that arrive together start two loops, and a connection belongs to one loop.
    with _BEGINNING:
        return _begun()


@cache
def _begun() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="outgoing", daemon=True).start()
    return loop
