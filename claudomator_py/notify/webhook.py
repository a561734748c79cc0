"""Notices by HTTP POST, signed if there is a secret.

Signature: Standard Webhooks (github.com/standard-webhooks/standard-webhooks, spec 1.0): the headers ``webhook-id``,
``webhook-timestamp`` (epoch seconds) and ``webhook-signature``, which is ``v1,`` and the base64 of HMAC-SHA256 over
``id.timestamp.body``. After the prefix ``whsec_`` a secret is base64; without it the key is the secret's bytes.
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit, urlunsplit

import httpx

from claudomator_py.certificates import certificate_problem
from claudomator_py.domain.notice import DeliveryFault, Notice, NoticeKind, PayloadFormat
from claudomator_py.outgoing import client

_NTFY_URGENT = 4
_NTFY_NORMAL = 3
_NTFY_TAGS: Mapping[NoticeKind, str] = {
    NoticeKind.NEEDS_INPUT: "raising_hand",
    NoticeKind.FAILED: "x",
    NoticeKind.COMPLETED: "white_check_mark",
    NoticeKind.CANCELLED: "no_entry_sign",
    NoticeKind.AGENT_HELD: "warning",
    NoticeKind.LIMITED: "hourglass",
    NoticeKind.BUDGET_SPENT: "moneybag",
    NoticeKind.TEST: "bell",
}
_URGENT = frozenset({NoticeKind.NEEDS_INPUT, NoticeKind.FAILED, NoticeKind.AGENT_HELD})
# In Slack's markup these form links and mentions: an agent's text must not notify everybody.
_SLACK = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def payload(notice: Notice, form: PayloadFormat, url: str) -> tuple[str, bytes]:
    """Return the URL and the body to post. Raises DeliveryFault if the URL is not one of the format's service."""
    match form:
        case PayloadFormat.JSON:
            return url, notice.model_dump_json().encode()
        case PayloadFormat.SLACK:
            text = f"*{notice.title.translate(_SLACK)}*\n{notice.text.translate(_SLACK)}".rstrip()
            return url, json.dumps({"text": text}).encode()
        case PayloadFormat.NTFY:
            return _ntfy(notice, url)


def _ntfy(notice: Notice, url: str) -> tuple[str, bytes]:
    parts = urlsplit(url)
    root, _, topic = parts.path.rstrip("/").rpartition("/")
    if not topic:
        raise DeliveryFault("its URL has no ntfy topic, such as https://ntfy.sh/my-topic", lasting=True)
    message = {
        "topic": topic,
        "title": notice.title,
        "message": notice.text or notice.title,
        "priority": _NTFY_URGENT if notice.kind in _URGENT else _NTFY_NORMAL,
        "tags": [_NTFY_TAGS[notice.kind]],
    }
    return urlunsplit((parts.scheme, parts.netloc, f"{root}/", parts.query, "")), json.dumps(message).encode()


_PREFIX = "whsec_"
# Client errors that may pass; any other 4xx means that the request itself is wrong.
_PASSING = frozenset({408, 425, 429})
_MAX_WAIT_S = 3_600.0


class Webhook:
    """Posts notices to one URL. timeout_s: total for a delivery. clock: epoch seconds."""

    def __init__(
        self, url: str, form: PayloadFormat, secret: str | None, timeout_s: float, clock: Callable[[], float]
    ) -> None:
        self._url = url
        self._form = form
        self._secret = secret
        self._clock = clock
        # No redirects: they would send the notice where nobody configured it to go.
        self._http = client(timeout_s, trust_env=True)

    def send(self, notice: Notice) -> None:
        """Post the notice. Raises DeliveryFault unless the response is 2xx."""
        url, body = payload(notice, self._form, self._url)
        try:
            with self._http.stream("POST", url, content=body, headers=self._headers(notice.id, body)) as response:
                status, retry_after = response.status_code, response.headers.get("retry-after", "")
        except (httpx.InvalidURL, httpx.UnsupportedProtocol):
            raise DeliveryFault("its URL cannot be used", lasting=True) from None
        except httpx.TimeoutException:
            raise DeliveryFault("no answer in time") from None
        except httpx.HTTPError as error:
            problem = certificate_problem(error)
            words = type(error).__name__ if problem is None else f"its certificate {problem}"
            raise DeliveryFault(f"it could not be reached ({words})") from None
        if not httpx.codes.is_success(status):
            lasting = status < httpx.codes.INTERNAL_SERVER_ERROR and status not in _PASSING
            raise DeliveryFault(f"HTTP {status}", lasting=lasting, after_s=_seconds(retry_after))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _headers(self, notice_id: str, body: bytes) -> dict[str, str]:
        headers = {"content-type": "application/json", "user-agent": "claudomator", "webhook-id": notice_id}
        if self._secret is not None:
            timestamp = str(int(self._clock()))
            headers["webhook-timestamp"] = timestamp
            headers["webhook-signature"] = signature(self._secret, notice_id, timestamp, body)
        return headers


class Unconfigured:
    """Stands in for a webhook whose variable is not set."""

    def __init__(self, variable: str) -> None:
        self._variable = variable

    def send(self, notice: Notice) -> None:
        """Raise DeliveryFault. It is not lasting: a daemon started with the variable can deliver the notice."""
        raise DeliveryFault(f"the daemon's variable {self._variable} is not set")

    def close(self) -> None:
        """Do nothing: there are no resources."""


def signature(secret: str, notice_id: str, timestamp: str, body: bytes) -> str:
    """Return the value of ``webhook-signature``. Raises DeliveryFault if a ``whsec_`` secret is not base64."""
    key = secret.encode()
    try:
        if secret.startswith(_PREFIX):
            key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        raise DeliveryFault("its secret begins with whsec_, but the rest is not base64", lasting=True) from None
    digest = hmac.digest(key, f"{notice_id}.{timestamp}.".encode() + body, hashlib.sha256)
    return f"v1,{base64.b64encode(digest).decode()}"


def _seconds(retry_after: str) -> float:
    """Return the header's seconds, at most an hour; 0 if it is not a number."""
    return min(float(retry_after), _MAX_WAIT_S) if retry_after.isascii() and retry_after.isdigit() else 0.0
