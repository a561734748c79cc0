"""What Claude Code says on its way of what is used: by its messages, and of its account's windows."""

import re

from claudomator_py.agents.jsonlines import Event, amount_of, count_of, event_of, text_of
from claudomator_py.agents.limit_text import epoch_ms
from claudomator_py.agents.plaintext import storable
from claudomator_py.domain.budget import WindowUse
from claudomator_py.domain.outcome import Tokens

INPUT_FIELDS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_SYNTHETIC = "<synthetic>"
"""The model of messages that the program writes itself."""
_MOST_WINDOWS = 20
_FAMILY_WINDOW = re.compile(r"[a-z]+_(?:hour|day|week|month)_([a-z]+)")
"""The name of a window of one family of models, such as ``seven_day_opus``. Where several words follow on the time, as
in ``seven_day_oauth_apps``, they name a use of the whole account."""
_FAMILY_BY_WINDOW = {"seven_day_overage_included": "fable"}
"""Windows of one family whose names do not say so (Claude Code 2.1.283)."""
_MAX_NAME = 100


class Messages:
    """What the messages have used, the end of the last answers not included.

    A message comes in several events, each of which says what it used by then.
    """

    def __init__(self) -> None:
        self._used: dict[str, tuple[int, int]] = {}
        self._input = self._output = 0

    def take(self, event: Event) -> None:
        """Take the next event of a message."""
        message = event_of(event, "message")
        message_id, usage = text_of(message, "id"), event_of(message, "usage")
        if message_id is None or not usage or message.get("model") == _SYNTHETIC:
            return
        before = self._used.get(message_id, (0, 0))
        given = max(before[0], sum(count_of(usage, key) or 0 for key in INPUT_FIELDS))
        made = max(before[1], count_of(usage, "output_tokens") or 0)
        self._used[message_id] = (given, made)
        self._input += given - before[0]
        self._output += made - before[1]

    @property
    def tokens(self) -> Tokens:
        """What all of them used; unknown without any."""
        return Tokens(input=self._input, output=self._output) if self._used else Tokens()

    def copy(self) -> "Messages":
        """Another one that has taken the same."""
        other = Messages()
        other._used, other._input, other._output = self._used.copy(), self._input, self._output
        return other


def windows_of(info: Event) -> dict[str, WindowUse]:
    """What a report of limits says of each window.

    Newer versions tell of all, older ones of one that is nearly used up. That a window is used up may be all they say.
    """
    told: dict[str, Event] = {
        name: window for name, window in event_of(info, "unifiedWindows").items() if isinstance(window, dict)
    }
    named = text_of(info, "rateLimitType")
    if named is not None and named not in told:
        told[named] = info
    found = {}
    for name, window in list(told.items())[:_MOST_WINDOWS]:
        used, resets_at = amount_of(window, "utilization"), epoch_ms(window.get("resetsAt"))
        if used is None and window.get("status") == "rejected":
            used = 1.0
        if used is not None and resets_at is not None:
            found[storable(name)[:_MAX_NAME]] = WindowUse(used=used, resets_at=resets_at, family=family_of(name))
    return found


def family_of(window: str | None) -> str | None:
    """The one family of models that the window is of; None: it is for all."""
    found = _FAMILY_WINDOW.fullmatch(window or "")
    return _FAMILY_BY_WINDOW.get(window or "") or (found[1] if found else None)
