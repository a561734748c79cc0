"""Reads what Codex writes with ``--json``: by meaning, whatever its version."""

import re
from dataclasses import dataclass, field, replace

from claudomator_py.agents.api_errors import Rules, classify, words
from claudomator_py.agents.codex.transcript import REQUEST
from claudomator_py.agents.ending import Result, Verdict, failed
from claudomator_py.agents.event_reader import Ending, EventReader, Seen
from claudomator_py.agents.jsonlines import Event, count_of, event_of, text_of
from claudomator_py.agents.limit_text import epoch_ms
from claudomator_py.domain.outcome import OutcomeStatus, Provenance, Reason, Tokens
from claudomator_py.domain.units import HOUR_MS, MINUTE_MS

_RULES: Rules = (
    (
        words(
            r"unexpected argument|invalid value '|required arguments|usage: codex|not inside a trusted directory"
            r"|no rollout found|thread/(?:resume|start) failed|no prompt provided|error (?:loading|parsing) config"
            r"|model provider `[^`]*` not found|unknown (?:variant|field)"
        ),
        Reason.BAD_INVOCATION,
    ),
    (
        words(
            r"quota exceeded|insufficient_quota|exceeded your current quota|out of credits|spend(?:ing)? (?:cap|limit)"
            r"|credit (?:limit|balance)|to use codex with your chatgpt plan|usage_not_included"
        ),
        Reason.NO_CREDIT,
    ),
    (
        words(r"usage limit|rate limit|hit your [^\n]{0,60}limit|message limit|limit reached"),
        Reason.RATE_LIMITED,
    ),
    (words(r"at capacity|high demand|high load|server_is_overloaded|overloaded"), Reason.OVERLOADED),
    (
        words(
            r"missing environment variable|codex login|log ?in again|sign in again|refresh token|not logged in"
            r"|incorrect api key|credentials were (?:not )?found"
        ),
        Reason.AUTH,
    ),
    (
        words(r"model [^\n]{0,80}(?:does not exist|not supported|is not available)|do not have access to it"),
        Reason.INVALID_MODEL,
    ),
    (words(r"ran out of room|context window|context_length"), Reason.CONTEXT_TOO_LONG),
    (words(r"safety reasons|has been flagged|cyber_policy|content policy"), Reason.REFUSED),
)
_RETRYING = re.compile(r"^Reconnecting\W+(?:\d+/\d+|waiting for network) \((?P<cause>.*)\)$", re.DOTALL)
_COMPLAINT = re.compile(r"^(?:ERROR|Error|error):? (?P<message>.+)")
_LIMITED_MODEL = re.compile(r"usage limit for ([\w.:/-]{1,60}[\w])")
_COMPLAINTS = 5
_BANNER = "OpenAI Codex"
"""Begins what it writes to stderr without --json: the whole conversation, with what tools print."""
_LOGGED = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z +DEBUG (?:\S.*: )?")
_HEADERS = " headers="
_STATUS = re.compile(r"(?<!\S)status=(\d{3})\b")
_WINDOW = re.compile(r'"x-codex-(primary|secondary)-(used-percent|reset-at)": "(\d{1,15}(?:\.\d{1,9})?)"')
_ALL_USED = 100.0
_ROUNDED_MS = MINUTE_MS
"""How far from the exact reset its words can be, besides the offset of the zone in which they are."""
_ZONES_MS = 15 * MINUTE_MS
"""Offsets of zones are multiples of this."""
_FARTHEST_ZONE_MS = 26 * HOUR_MS
"""Between any two zones, or the same time on another day."""
_LOST = words(r"no rollout found")
_CHATTER = ("Reading ", "WARNING: ")
_OUTAGES = (Reason.NETWORK, Reason.OVERLOADED)
NOTHING = Tokens(input=0, output=0)
"""What a new thread has used."""


@dataclass(slots=True)
class _Seen(Seen):
    """anything, conversation_id: as in ``Seen``. prior: what the thread had used before; None: not known.

    trouble: why it is trying again, if that is the last that it said. resets_at: when the windows reset that refused a
    request, in epoch milliseconds. complaints: lines of stderr that call themselves errors; of a conversation in plain
    text (``talks``) only those at its end, as it is mixed with what tools print.
    """

    prior: Tokens | None
    anything: bool = False
    conversation_id: str | None = None
    completed: bool = False
    failure: str | None = None
    error: str | None = None
    trouble: str | None = None
    answer: str | None = None
    usage: Event = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)
    resets_at: int | None = None
    talks: bool = False

    @property
    def terminal(self) -> bool:
        return self.completed or self.failure is not None

    def take(self, event: Event) -> None:
        self.trouble = None
        match event.get("type"):
            case "thread.started":
                self.conversation_id = text_of(event, "thread_id") or self.conversation_id
            case "turn.started":
                self.completed, self.failure = False, None
            case "item.started" | "item.updated":
                self._note_item(event_of(event, "item"))
            case "item.completed":
                self._take_item(event_of(event, "item"))
            case "error":
                message = text_of(event, "message") or ""
                retried = _RETRYING.match(message)
                self.trouble = retried["cause"] if retried else None
                self.error = self.trouble or message or self.error
            case "turn.completed":
                self.completed, self.error = True, None
                self.usage = event_of(event, "usage")
            case "turn.failed":
                said = text_of(event_of(event, "error"), "message")
                self.completed = False
                self.failure = said or self.error or "its turn failed, and it did not say why"

    def take_stderr(self, line: str) -> None:
        if answer := _answered(line):
            status, headers = answer
            self.resets_at = _reset(headers) if status == "429" else self.resets_at
        elif found := _COMPLAINT.match(line):
            self.complaints = [*self.complaints, found["message"]][-_COMPLAINTS:]
        else:
            self.talks = self.talks or line.startswith(_BANNER)
            self.complaints = [] if self.talks else self.complaints

    def _note_item(self, item: Event) -> None:
        self.answered = self.answered or item.get("type") not in (None, "error")

    def _take_item(self, item: Event) -> None:
        self._note_item(item)
        if item.get("type") == "agent_message":
            self.answer, self.error = text_of(item, "text") or self.answer, None

    def stuck(self, started_ms: int | None) -> Verdict | None:
        """Without a network it waits for one for ever."""
        verdict = classify(self.trouble, _RULES, started_ms or 0) if self.trouble is not None else None
        return verdict if verdict is not None and verdict.reason in _OUTAGES else None

    def said(self, ending: Ending) -> Verdict | None:
        if self.failure is not None:
            return self._to_the_second(_judge(self.failure, ending))
        return Verdict(OutcomeStatus.SUCCEEDED) if self.completed else None

    def unsaid(self, ending: Ending) -> Verdict:
        """Once there are events, they say what went wrong. What else comes to stderr may be a tool's."""
        complaint = "\n".join(self.complaints[-1:])
        if self.anything and self.error is None:
            return failed(Reason.AGENT_ERROR, complaint or _silent(ending))
        message = self.error or complaint
        if not message and not self.talks:
            lines = ending.stderr.splitlines()
            message = "\n".join(line for line in lines if not line.startswith(_CHATTER))
        return _judge(message or _silent(ending), ending)

    def _to_the_second(self, verdict: Verdict) -> Verdict:
        """Its words give the minute in which a limit resets, which begins too early. What its log says has to agree."""
        if verdict.status is not OutcomeStatus.LIMITED or self.resets_at is None:
            return verdict
        if verdict.reset_at is not None and not _agree(self.resets_at, verdict.reset_at):
            return verdict
        return replace(verdict, reset_at=self.resets_at, provenance=Provenance.REPORTED)

    def result(self) -> Result:
        succeeded = self.completed and self.failure is None
        return Result(
            conversation_id=self.conversation_id,
            text=self.answer if succeeded else None,
            tokens=self._tokens(),
        )

    def _tokens(self) -> Tokens:
        """What the thread has used, less what it had used before. Cached input is input; reasoning is output."""
        if self.prior is None:
            return Tokens()
        return Tokens(
            input=_less(count_of(self.usage, "input_tokens"), self.prior.input),
            output=_less(count_of(self.usage, "output_tokens"), self.prior.output),
        )


class CodexReader(EventReader):
    """Reads one run. resumed: it goes on in a thread. prior: what that had used before; None: not known.

    zone: that of its clock times.
    """

    def __init__(self, *, resumed: bool = False, prior: Tokens | None = NOTHING, zone: str | None = None) -> None:
        super().__init__(_Seen(prior), zone, lost=_LOST if resumed else None)


def _silent(ending: Ending) -> str:
    return f"it exited with {ending.exit_code}, and did not say why"


def _agree(exact_ms: int, said_ms: int) -> bool:
    """Whether words that are exact to the minute, in a zone that they do not name, can mean that time."""
    apart_ms = abs(exact_ms - said_ms)
    beside_ms = apart_ms % _ZONES_MS
    return apart_ms <= _FARTHEST_ZONE_MS and min(beside_ms, _ZONES_MS - beside_ms) <= _ROUNDED_MS


def _judge(message: str, ending: Ending) -> Verdict:
    verdict = classify(message, _RULES, ending.printed_ms, zone=ending.zone)
    model = _LIMITED_MODEL.search(message)
    limited = verdict.status is OutcomeStatus.LIMITED and model is not None
    return replace(verdict, limit=model[1]) if limited and model is not None else verdict


def _answered(line: str) -> tuple[str, str] | None:
    """Status and headers of an answer of the service, from a line of the log; None: the line tells of none."""
    before, _, answer = line.partition(REQUEST)
    fields, named, headers = answer.partition(_HEADERS)
    if not named or not fields.startswith("method=") or _LOGGED.fullmatch(before) is None:
        return None
    status = _STATUS.search(fields)
    return None if status is None else (status[1], headers)


def _reset(headers: str) -> int | None:
    """When the last of the windows that are used up resets, in epoch milliseconds, by an answer's headers."""
    windows: dict[str, dict[str, float]] = {}
    for window, what, value in _WINDOW.findall(headers):
        windows.setdefault(window, {})[what] = float(value)
    used_up = [told for told in windows.values() if told.get("used-percent", 0) >= _ALL_USED]
    return max((reset for told in used_up if (reset := epoch_ms(told.get("reset-at"))) is not None), default=None)


def _less(total: int | None, prior: int | None) -> int | None:
    if total is None or prior is None:
        return None
    return max(0, total - prior)
