"""What a webhook is sent: the notice as JSON, or as the services that people have on their phones take it.

Sources: ntfy, "Publish as JSON" (docs.ntfy.sh/publish); Slack, "Sending messages using incoming webhooks"
(api.slack.com), which Mattermost, Rocket.Chat and Discord (with ``/slack`` after the URL) take as well.
"""

import json
from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit

from claudomator_py.domain.notice import DeliveryFault, Notice, NoticeKind, PayloadFormat

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
# They stand for links and mentions in Slack's markup: an agent's text must not call everybody.
_SLACK = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def payload(notice: Notice, form: PayloadFormat, url: str) -> tuple[str, bytes]:
    """Where to post it, and what. Raises DeliveryFault for a URL that cannot be of that service."""
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
        raise DeliveryFault("its URL names no topic of ntfy, such as https://ntfy.sh/my-topic", lasting=True)
    message = {
        "topic": topic,
        "title": notice.title,
        "message": notice.text or notice.title,
        "priority": _NTFY_URGENT if notice.kind in _URGENT else _NTFY_NORMAL,
        "tags": [_NTFY_TAGS[notice.kind]],
    }
    return urlunsplit((parts.scheme, parts.netloc, f"{root}/", parts.query, "")), json.dumps(message).encode()
