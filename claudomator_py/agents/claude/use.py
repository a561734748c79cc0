"""Count what Claude Code uses, by its messages and results, and read its account's windows."""

import re
from urllib.parse import urlsplit

from claudomator_py.acts.shell import is_simple
from claudomator_py.agents.limit_text import epoch_ms
from claudomator_py.agents.plaintext import storable
from claudomator_py.agents.run_events import Copied
from claudomator_py.domain.budget import WindowUse
from claudomator_py.domain.outcome import Tokens
from claudomator_py.json_fields import Event, amount_of, count_of, event_of, text_of
from claudomator_py.values import dataclass, regex

# One rule covers all tools that change files, and one all that read them.
_FILES = {
    **dict.fromkeys(("Edit", "MultiEdit", "NotebookEdit", "Write"), "Edit"),
    **dict.fromkeys(("Glob", "Grep", "Read"), "Read"),
}
# A star matches anything in a rule; in a path these characters are patterns as well.
_PATTERN = regex(r"[*?\[\]!()\\]")


def rule_for(tool: str, given: Event) -> str | None:
    """Return the narrowest permission rule for the call; None if it would allow more than the call."""
    if tool == "Bash":
        command = text_of(given, "command")
        narrow = command is not None and "*" not in command and is_simple(command)
        return f"Bash({command})" if narrow else None
    if tool in _FILES:
        path = text_of(given, "file_path") or text_of(given, "notebook_path") or text_of(given, "path") or ""
        # In a rule, an absolute path has a second slash in front.
        return f"{_FILES[tool]}(/{path})" if path.startswith("/") and not _PATTERN.search(path) else None
    if tool == "WebFetch":
        try:
            host = urlsplit(text_of(given, "url") or "").hostname
        except ValueError:
            host = None
        return f"WebFetch(domain:{host})" if host else None
    return tool if re.fullmatch(r"[A-Za-z_][\w-]*", tool) else None


INPUT_FIELDS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_MODEL_INPUT_FIELDS = ("inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens")
SYNTHETIC = "<synthetic>"
"""The model of messages that the program writes itself, such as the answer to ``/cost``."""
_MAX_WINDOWS = 20
_FAMILY_WINDOW = regex(
    r"(?:[a-z]+[_-](?:hour|day|week|month)|hourly|daily|weekly|monthly)[_-](?:claude[_-])?([a-z]+(?:[_-]\d+)*)",
    re.IGNORECASE,
)
"""The name of a window for one model family, such as ``seven_day_opus``. If several words follow the time, as in
``seven_day_oauth_apps``, they name a use of the whole account."""
_FAMILY_BY_WINDOW = {"seven_day_overage_included": "fable"}
"""Windows of one family whose names do not show it (Claude Code 2.1.283)."""
_MAX_NAME = 100


@dataclass(frozen=True, slots=True)
class TokensAndCost:
    """Tokens and dollars. cost_usd None: unknown."""

    input: int = 0
    output: int = 0
    cost_usd: float | None = 0.0

    def __add__(self, other: "TokensAndCost") -> "TokensAndCost":
        known = self.cost_usd is not None and other.cost_usd is not None
        cost = (self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None
        return TokensAndCost(self.input + other.input, self.output + other.output, cost)


class ClaudeUsage(Copied):
    """What a run has used: by its results, plus the messages since the last of them."""

    def __init__(self) -> None:
        self._last: Event | None = None
        self._since_last: TokensAndCost | None = TokensAndCost()
        """The sum of what newer versions report since the previous result; None: an older version."""
        self._turns = TokensAndCost()
        """The sum of what the results report for their own turns."""
        self._messages = Messages()

    def take_message(self, event: Event) -> None:
        """Take the next event of a message."""
        self._messages.take(event)

    def take_result(self, event: Event) -> None:
        """Take the result of a turn, which includes what its messages used."""
        self._last, self._messages = event, Messages()
        usage = event_of(event, "usage")
        given = sum(count_of(usage, key) or 0 for key in INPUT_FIELDS)
        self._turns += TokensAndCost(given, count_of(usage, "output_tokens") or 0)
        since = event.get("model_usage_since_last_result")
        if isinstance(since, dict) and self._since_last is not None:
            self._since_last += _by_model(since)
        else:
            self._since_last = None

    def used(self, *, resumed: bool, prior_cost_usd: float | None) -> tuple[Tokens, float | None]:
        """Return the run's own tokens and dollars so far; see ``LaunchRequest``. The dollars of a turn without a result
        are unknown."""
        since = self._messages.tokens
        if self._last is None:
            return since, None
        share = self._by_results(self._last, resumed=resumed, prior_cost_usd=prior_cost_usd)
        tokens = Tokens(input=share.input + (since.input or 0), output=share.output + (since.output or 0))
        is_known = share.cost_usd or since == Tokens()
        return tokens, share.cost_usd if is_known else None

    def _by_results(self, last: Event, *, resumed: bool, prior_cost_usd: float | None) -> TokensAndCost:
        """Return what the results report. Newer versions report the use since the last result. Older ones report
        dollars and tokens per model for the whole conversation, and tokens per turn: in a resumed conversation the
        tokens are the turns', and the dollars are those on top of the prior cost, or unknown."""
        if self._since_last is not None:
            return self._since_last
        total_usd = amount_of(last, "total_cost_usd")
        if resumed:
            own = None
            if total_usd is not None and prior_cost_usd is not None:
                own = max(0.0, total_usd - prior_cost_usd)
            return TokensAndCost(self._turns.input, self._turns.output, own)
        per_model = _by_model(event_of(last, "modelUsage"))
        tokens = per_model if per_model.input + per_model.output > 0 else self._turns
        return TokensAndCost(tokens.input, tokens.output, total_usd)


def _by_model(models: Event) -> TokensAndCost:
    share = TokensAndCost()
    for model in models.values():
        if isinstance(model, dict):
            tokens = sum(count_of(model, key) or 0 for key in _MODEL_INPUT_FIELDS)
            share += TokensAndCost(tokens, count_of(model, "outputTokens") or 0, amount_of(model, "costUSD"))
    return share


class Messages(Copied):
    """What messages have used, without the final tokens of the last answers. A message comes in several events, each
    with what it had used by then."""

    def __init__(self) -> None:
        self._used: dict[str, tuple[int, int]] = {}
        self._input = self._output = 0

    def take(self, event: Event) -> None:
        """Take the next event of a message."""
        message = event_of(event, "message")
        message_id, usage = text_of(message, "id"), event_of(message, "usage")
        if message_id is None or not usage or message.get("model") == SYNTHETIC:
            return
        before = self._used.get(message_id, (0, 0))
        given = max(before[0], sum(count_of(usage, key) or 0 for key in INPUT_FIELDS))
        made = max(before[1], count_of(usage, "output_tokens") or 0)
        self._used[message_id] = (given, made)
        self._input += given - before[0]
        self._output += made - before[1]

    @property
    def tokens(self) -> Tokens:
        """The sum over all messages; unknown without any."""
        return Tokens(input=self._input, output=self._output) if self._used else Tokens()


def windows_of(info: Event) -> dict[str, WindowUse]:
    """Return the use of each window in a limit report. Newer versions report all windows, older ones one that is nearly
    used up. A used-up window may come without numbers."""
    windows: dict[str, Event] = {
        name: window for name, window in event_of(info, "unifiedWindows").items() if isinstance(window, dict)
    }
    named = text_of(info, "rateLimitType")
    if named is not None and named not in windows:
        windows[named] = info
    value = {}
    for name, window in list(windows.items())[:_MAX_WINDOWS]:
        used, resets_at = amount_of(window, "utilization"), epoch_ms(window.get("resetsAt"))
        if used is None and window.get("status") == "rejected":
            used = 1.0
        if used is not None and resets_at is not None:
            value[storable(name)[:_MAX_NAME]] = WindowUse(used=used, resets_at=resets_at, family=family_of(name))
    return value


def family_of(window: str | None) -> str | None:
    """Return the model family that the window is for; None: all models."""
    match = _FAMILY_WINDOW.fullmatch(window or "")
    return _FAMILY_BY_WINDOW.get(window or "") or (match[1].lower().replace("_", "-") if match else None)
