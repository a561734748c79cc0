"""One JSON request to a model within a deadline: fast transient faults are tried again inside it, others are not."""

import time
from collections.abc import Callable, Mapping

import httpx
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, stop_before_delay, wait_random_exponential

from claudomator_py.scheduler.classification import Cause, ModelFault
from claudomator_py.values import regex

ATTEMPTS = 3
FIRST_PAUSE_S = 0.05
MAX_PAUSE_S = 0.5
SHORTEST_CALL_S = 0.05
MAX_ANSWER_BYTES = 1024 * 1024
_DELAY = regex("[0-9]{1,9}")
_TRANSIENT = frozenset({500, 502, 503, 504})


class _Transient(Exception):
    def __init__(self, fault: ModelFault) -> None:
        super().__init__(str(fault))
        self.fault = fault


def post_json(
    client: httpx.Client,
    url: str,
    body: Mapping[str, object],
    headers: Mapping[str, str],
    timeout_s: float,
    *,
    most_bytes: int = MAX_ANSWER_BYTES,
) -> object:
    """Return the parsed JSON answer. client: as ``outgoing`` makes them, so that a timeout is for all of a request.
    timeout_s: seconds for all attempts together. Raises ModelFault."""
    deadline = time.monotonic() + timeout_s
    retrying = Retrying(
        stop=stop_after_attempt(ATTEMPTS) | stop_before_delay(timeout_s),
        wait=wait_random_exponential(FIRST_PAUSE_S, max=MAX_PAUSE_S),
        retry=retry_if_exception_type(_Transient),
        reraise=True,
    )
    try:
        return retrying(_once, client, url, body, headers, lambda: deadline - time.monotonic(), most_bytes)
    except _Transient as transient:
        raise transient.fault from None


def _once(
    client: httpx.Client,
    url: str,
    body: Mapping[str, object],
    headers: Mapping[str, str],
    left: Callable[[], float],
    most_bytes: int,
) -> object:
    try:
        with client.stream(
            "POST", url, json=body, headers=dict(headers), timeout=max(left(), SHORTEST_CALL_S)
        ) as response:
            data = _read(response, left, most_bytes)
    except httpx.TimeoutException:
        raise ModelFault(Cause.TIMEOUT, "it did not answer in time") from None
    except httpx.HTTPError as error:
        raise _Transient(ModelFault(Cause.UNREACHABLE, type(error).__name__)) from None
    except UnicodeError:
        raise ModelFault(Cause.NOT_CONFIGURED, "its key has a character that no key has") from None
    except httpx.InvalidURL:
        raise ModelFault(Cause.NOT_CONFIGURED, "its base_url is not a URL") from None
    _check_status(response)
    try:
        return httpx.Response(200, content=data).json()
    except (ValueError, RecursionError):
        raise ModelFault(Cause.GARBAGE, "its answer is not JSON") from None


def _read(response: httpx.Response, left: Callable[[], float], most_bytes: int) -> bytes:
    """The body."""
    data = bytearray()
    for piece in response.iter_bytes():
        data += piece
        if left() <= 0:
            raise ModelFault(Cause.TIMEOUT, "it did not finish its answer in time")
        if len(data) > most_bytes:
            raise ModelFault(Cause.GARBAGE, "its answer is too long")
    return bytes(data)


def _check_status(response: httpx.Response) -> None:
    status = response.status_code
    if status == httpx.codes.OK:
        return
    detail = f"it answered with HTTP {status}"
    if status == httpx.codes.TOO_MANY_REQUESTS:
        raise ModelFault(Cause.LIMITED, detail, retry_after_s=_seconds(response.headers.get("retry-after", "")))
    if status in _TRANSIENT:
        raise _Transient(ModelFault(Cause.SERVER_ERROR, detail))
    raise ModelFault(Cause.REFUSED if status < 500 else Cause.SERVER_ERROR, detail)


def _seconds(text: str) -> float | None:
    """The delay of a Retry-After; None for its other form, a date, and for anything else."""
    return float(text) if _DELAY.fullmatch(text) else None
