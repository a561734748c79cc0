"""The one turn of a run: prints what the agent says and does, and collects the facts for its end, usage included."""

import json
import os
import re
import shlex
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from claudomator_py.agents.acp_client import TurnOrder
from claudomator_py.agents.acp_client.journal import IN_A_PATH, Journal, count_at
from claudomator_py.agents.acp_client.tools import ToolCall, ToolCalls, block_text, is_own, rule_for
from claudomator_py.agents.client_output import Output, shown
from claudomator_py.json_fields import Event, amount_of, event_of, objects_of, text_of

_INPUT: Final = ("inputTokens", "input_tokens", "cachedReadTokens", "cachedWriteTokens")
_OUTPUT: Final = ("outputTokens", "output_tokens")
_FILE_TRIES: Final = 10
_FILE_WAIT_S: Final = 0.1
_MAX_FILE: Final = 1 << 20


class UsageTally:
    """The numbers of a run. means: the profile's ``usage``."""

    def __init__(self, means: str) -> None:
        self._means = means
        self._chunks = [0, 0]
        self._has_chunks = False
        self._file: tuple[int, int] | None = None
        self.cost_usd: float | None = None
        self.reported = "absent"
        """What the end of the turn reports: ``absent`` (no numbers), ``nothing`` (zeros), ``counts``."""

    def take_chunk(self, meta: Event) -> None:
        """Take the usage of one call of the model, in a message chunk's metadata."""
        self._take_call(meta, _INPUT[:1], _OUTPUT)

    def _take_call(self, meta: Event, used: tuple[str, ...], made: tuple[str, ...]) -> None:
        if isinstance(usage := meta.get("usage"), Mapping):
            self._has_chunks = True
            self._chunks[0] += _total(usage, used)
            self._chunks[1] += _total(usage, made)

    def take_update(self, update: Mapping[str, Any]) -> None:
        """Take a usage update: the session's total in dollars, and what one call of the model used, if its metadata has
        the words of the model's service. Some say the same again in other words."""
        self._take_call(event_of(update, "_meta"), ("prompt_tokens",), ("completion_tokens",))
        cost = event_of(update, "cost")
        if cost.get("currency", "USD") == "USD" and (amount := amount_of(cost, "amount")) is not None:
            self.cost_usd = amount

    def take_file(self, where: Mapping[str, str], session: str, since: float) -> None:
        """Take the session's usage from the agent's file, if written since that time; wait a second for it."""
        if not IN_A_PATH.fullmatch(session):
            return
        path = os.path.join(os.path.expanduser("~"), where["path"].format(session=session))  # noqa: PTH111, PTH118
        for _ in range(_FILE_TRIES):
            try:
                if os.stat(path).st_mtime >= since:  # noqa: PTH116
                    with open(path, "rb") as file:  # noqa: PTH123
                        usage = json.loads(file.read(_MAX_FILE))
                    used, made = count_at(usage, where["input"]), count_at(usage, where["output"])
                    self._file = (used, made) if used is not None and made is not None else None
                    return
            except (OSError, ValueError):
                pass
            time.sleep(_FILE_WAIT_S)

    def take_journal(self, journal: Journal) -> None:
        """Take the usage in the agent's journal, which proves the turn if its end was written."""
        if self._means == "journal":
            self._file = journal.counts
            self.reported = "counts" if journal.counts is not None and journal.stop is not None else self.reported

    def of_turn(self, result: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the usage of the whole turn; None: not known."""
        counts = self._counts(result)
        if "usage" in result or counts is not None:
            self.reported = "counts" if counts is not None and sum(counts) > 0 else "nothing"
        if self._means == "chunk":
            if not self._has_chunks:
                return None
            self.reported = "counts" if sum(self._chunks) > 0 else "nothing"
            counts = (self._chunks[0], self._chunks[1])
        if self._means in ("file", "journal"):
            counts = self._file
        if counts is None or self._means in ("none", "last_call"):
            return None
        return {"input_tokens": counts[0], "output_tokens": counts[1]}

    def _counts(self, result: Mapping[str, Any]) -> tuple[int, int] | None:
        meta = event_of(result, "_meta")
        usage = result.get("usage") or meta.get("usage")
        if self._means == "gemini" or not isinstance(usage, Mapping):
            usage = event_of(meta, "quota").get("token_count")
        if not isinstance(usage, Mapping):
            return None
        used, made, whole = _total(usage, _INPUT[:2]), _total(usage, _OUTPUT), _total(usage, ("totalTokens",))
        # Some count cached tokens within the input and others beside it: the total shows which.
        return (max(used, whole - made) if whole else _total(usage, _INPUT)), made


def _total(usage: Mapping[str, Any], keys: tuple[str, ...]) -> int:
    counts = (usage.get(key) for key in keys)
    return sum(count for count in counts if isinstance(count, int) and not isinstance(count, bool) and count > 0)


_FOLDERS: Final = ("workdir", "dir_path", "directory", "cwd")
_NAMES: Final = {"edit": "edit", "read": "read", "fetch": "WebFetch", "search": "search"}
"""The tool names that ``acts`` knows, by ACP's kinds of tools."""


class FencedCall(NamedTuple):
    """The fence's judgement of a call. beyond: how it goes too far; empty: it does not."""

    beyond: str = ""
    rule: str | None = None
    """The grant that allows exactly this call."""
    granted: bool = False
    """Whether a person has granted it."""


def judge(order: Mapping[str, Any], call: ToolCall) -> FencedCall:
    """Return the fence's judgement of the call. A call that cannot be judged is beyond any reach."""
    # Imported late, as not every run has such a call.
    from claudomator_py.acts.tool_calls import rule_for
    from claudomator_py.agents.fence_hook import judge as judged

    tool, given = _acting(call)
    if not given:
        return FencedCall("nothing is known of the call")
    try:
        event = {"tool_name": tool, "tool_input": given, "cwd": os.getcwd()}  # noqa: PTH109
        far, granted = judged(order, event)
    except Exception as error:
        return FencedCall(f"the call could not be judged ({type(error).__name__})")
    return FencedCall(granted=granted) if far is None else FencedCall(far.does, rule_for(tool, given, far.digest))


def _acting(call: ToolCall) -> tuple[str, dict[str, Any]]:
    """Return the call in the form that ``acts`` reads: a tool's name and its input."""
    tool = call.name or _NAMES.get(call.kind) or call.tool
    folder = {name: call.given[name] for name in _FOLDERS if isinstance(call.given.get(name), str)}
    if call.kind == "execute" or call.command is not None:
        return tool, {**folder, "command": call.command or call.subject} if call.command or call.subject else {}
    places = call.places or ((call.subject,) if call.subject else ())
    if call.kind in ("delete", "move") and places:
        return tool, {"command": f"rm -r -- {shlex.join(places)}"}
    if call.kind in ("edit", "read") and places:
        patch = "\n".join(f"*** Update File: {place}" for place in places)
        return _NAMES[call.kind], {"path": places[0], **({"input": patch} if call.kind == "edit" else {})}
    return tool, dict(call.given) or ({"title": call.title} if call.title else {})


MAX_TEXT: Final = 200_000
"""Characters kept of an answer's end."""
_STATUS_KEYS: Final = ("httpStatusCode", "statusCode", "http_status")
_MAX_DEPTH: Final = 8


class Turn:
    """What has come since the prompt was sent."""

    def __init__(self, order: TurnOrder, output: Output, clock: Callable[[], float] = time.monotonic) -> None:
        self._order = order
        self._output = output
        self._clock = clock
        self._noise = [re.compile(pattern, re.DOTALL) for pattern in order.noise]
        self._text: list[str] = []
        self._length = 0
        self._message_id: object = None
        self._last_piece = ""
        self.calls = ToolCalls(order.kinds, given_as_text=order.given_as_text)
        self.usage = UsageTally(order.usage)
        self.rejected: list[ToolCall] = []
        self.failed_status = False
        self._background: set[str] = set()
        """Ids of commands that the agent has moved to the background, where they still run."""
        self.retry: dict[str, Any] | None = None
        """The agent's last report of a retry; None: it has made progress since."""
        self.progress_s = clock()
        """When the agent last made progress."""

    @property
    def silent_s(self) -> float | None:
        """Seconds since the agent's last progress; None: a tool is running."""
        return None if self.calls.any_open else self._clock() - self.progress_s

    def take(self, update: Mapping[str, Any]) -> None:
        """Take a session update."""
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                self._take_message(update)
            case "agent_thought_chunk":
                self._progress()
                self._output.piece("thinking", block_text(update.get("content")))
            case "tool_call" | "tool_call_update":
                self._take_call(update)
            case "plan":
                self._progress()
                steps = (text_of(entry, "content") for entry in objects_of(update, "entries"))
                self._output.event("notice", text="\n".join(f"- {step}" for step in steps if step is not None))
            case "usage_update":
                self.usage.take_update(update)
            case "notice":
                text = block_text(update.get("content")) or update.get("message")
                self._output.event("notice", text=shown(str(text or "")))
            case "session_info_update":
                self._take_state(event_of(update, "_meta"))

    def take_notification(self, method: str, params: Mapping[str, Any]) -> None:
        """Take a notification outside the protocol: of those, reports of retries and of background work are read."""
        update = event_of(params, "update")
        name = (text_of(update, "sessionUpdate") or method).lower()
        if "retry" in name:
            self._take_retry(update or params)
        elif "task_backgrounded" in name:
            self._background.add(text_of(update, "task_id") or "")
        elif "task_completed" in name:
            self._background.discard(text_of(event_of(update, "task_snapshot"), "task_id") or "")

    def take_answer(self, text: str) -> None:
        """Take the answer as the agent wrote it down: its chunks include those of attempts that failed."""
        self._text = [text]

    def decide(self, params: Mapping[str, Any]) -> bool:
        """Return whether the call that the agent asks about is allowed, and print the decision."""
        call = self._called(params)
        judged = judge(self._order.fence, call) if self._order.fence and not is_own(call) else FencedCall()
        asks_a_person = call.given.get("questions") is not None and not is_own(call)
        allowed = not judged.beyond and not asks_a_person and (judged.granted or self._order.permissions.allow(call))
        self._progress()
        call.status = "in_progress" if allowed else "rejected"
        if not allowed:
            self.rejected.append(call)
        self._output.event(
            "permission",
            id=call.id,
            tool=call.tool,
            subject=shown(call.subject),
            given=call.given if call.given.get("questions") is not None else None,
            decision="allowed" if allowed else "rejected",
            rule=judged.rule if judged.beyond else rule_for(call),
            beyond=judged.beyond,
        )
        return allowed

    def cannot_allow(self, params: Mapping[str, Any]) -> None:
        """Note that the call is denied because the agent offers to allow it only permanently."""
        call = self.calls.take(params)
        call.status = "rejected"
        self.rejected.append(call)
        self._output.event("permission", id=call.id, tool=call.tool, subject=shown(call.subject), decision="unoffered")

    def facts(self, result: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the facts about the turn. result: that of its request, if it has one."""
        used = self.usage.of_turn(result or {})
        text = "".join(self._text)
        return {
            "text": text[-MAX_TEXT:] or None,
            "last_piece": shown(self._last_piece) or None,
            "tools": self.calls.finished or None,
            "failed_status": self.failed_status or None,
            "usage": used,
            "counts": self.usage.reported if result is not None else None,
            "cost_usd": self.usage.cost_usd,
            "retry": self.retry,
            "background": len(self._background) or None,
        }

    def _progress(self) -> None:
        self.progress_s = self._clock()
        self.retry = None

    def _take_message(self, update: Mapping[str, Any]) -> None:
        self.usage.take_chunk(event_of(update, "_meta"))
        text = block_text(update.get("content"))
        if not text:
            return
        if any(pattern.fullmatch(text) for pattern in self._noise):
            self._output.event("notice", text=shown(text))
            return
        self._progress()
        self._output.piece("message", text)
        new = update.get("messageId")
        if new is not None and self._message_id is not None and new != self._message_id and self._text:
            self._text.append("\n\n")
        self._message_id = new if new is not None else self._message_id
        self._text.append(text)
        self._last_piece = text
        self._length += len(text)
        if self._length > 2 * MAX_TEXT:
            self._text = ["".join(self._text)[-MAX_TEXT:]]
            self._length = MAX_TEXT

    def _take_call(self, update: Mapping[str, Any]) -> None:
        self._progress()
        call = self._called(update)
        if not call.open:
            self._output.event("tool_result", id=call.id, tool=call.tool, status=call.status, text=shown(call.text))

    def _called(self, update: Mapping[str, Any]) -> ToolCall:
        """Return the reported call. A new call drops the text before it, which is not the answer."""
        if not self.calls.knows(update):
            self._drop_text()
        call = self.calls.take(update)
        if not call.printed and (call.given or call.title):
            call.printed = bool(call.given) or not call.open or call.status == "in_progress"
            if call.printed:
                self._output.event("tool", id=call.id, tool=call.tool, kind=call.kind, subject=shown(call.subject))
        return call

    def _drop_text(self) -> None:
        self._text, self._length, self._last_piece, self._message_id = [], 0, "", None

    def _take_state(self, meta: Event) -> None:
        """Take the state of the agent's thread, which some report outside the protocol."""
        for own in (event_of(meta, key) for key in meta):
            if "error" in str(event_of(own, "threadStatus").get("type")).lower():
                self.failed_status = True
            if isinstance(own.get("error"), Mapping):
                self._take_retry(own["error"])

    def _take_retry(self, update: Mapping[str, Any]) -> None:
        """Take the report that a request failed and is sent again. What came of its answer will come again."""
        self._drop_text()
        words = [update.get(key) for key in ("category", "message", "detail", "additionalDetails", "reason")]
        self.asks_again(": ".join(word for word in words if isinstance(word, str)), update)

    def asks_again(self, why: str, report: Mapping[str, Any]) -> None:
        """Note that a request is sent again."""
        self.retry = {"text": shown(why) or "it asks again", "status": _status(report), "data": report}
        self._output.event("retry", text=self.retry["text"])


def failure_of(result: Event, journal: Journal | None = None) -> Event | None:
    """Return the error with which a turn ended; None: none. Some agents put it into the result's metadata, as an object
    or its JSON, and some only write it down."""
    if result.get("stopReason") == "end_turn" and journal is not None and journal.failed is not None:
        error = journal.failed
        return {**error, "data": error} if isinstance(error, Mapping) else {"message": str(error)}
    if result.get("stopReason") in ("end_turn", "cancelled"):
        return None
    for key, value in event_of(result, "_meta").items():
        if value and key.rpartition("/")[2].lower() in ("error", "errormessage"):
            return error if isinstance(error := _decoded(value), Mapping) else {"message": str(value)}
    return None


def stop_of(result: Event, journal: Journal | None) -> object:
    """Return why the turn ended. Some agents say ``end_turn`` whatever happened, and write down what did."""
    stop = result.get("stopReason")
    return journal.stop if stop == "end_turn" and journal is not None and journal.stop is not None else stop


def _decoded(value: Any) -> Any:
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


def _status(value: object, depth: int = 0) -> int | None:
    """Return the HTTP status anywhere in the value."""
    if not isinstance(value, Mapping) or depth > _MAX_DEPTH:
        return None
    for key in _STATUS_KEYS:
        if isinstance(value.get(key), int):
            return int(value[key])
    return next((status for inner in value.values() if (status := _status(inner, depth + 1)) is not None), None)
