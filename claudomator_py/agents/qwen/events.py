"""Read what Qwen Code writes with ``--output-format stream-json``, of any version.

Its events have the form of Claude Code's and say less. A failed request is reported within a message, as the model's
text or after it, and the result is a success. Such a message differs from an answer that quotes one in that no tokens
were counted for it.
"""

import re
from dataclasses import field, replace
from typing import ClassVar

from claudomator_py.agents.ending import (
    SAYS_NO_LOGIN,
    Result,
    RunVerdict,
    caseless,
    classify,
    error_rules,
    error_table,
    failed,
    limited,
)
from claudomator_py.agents.fence import questions
from claudomator_py.agents.plaintext import is_blank
from claudomator_py.agents.run_events import MessageEvents, OutputEnd, arguments, begins, shown, usage_parts
from claudomator_py.domain.outcome import OutcomeStatus, Reason, Tokens
from claudomator_py.domain.run import Part
from claudomator_py.json_fields import Event, count_of, event_of, list_of, objects_of, text_of
from claudomator_py.values import dataclass, regex

_FAILED_REQUEST = regex(
    r"\[API Error: (?:(?P<status>[45]\d\d) )?(?P<message>.*)\](?:\nPossible quota limitations[^\n]*)?\s*\Z"
    r"|\A(?P<login>Qwen OAuth (?:quota exceeded|free tier).*)",
    re.DOTALL,
)
_RETRYING = regex(r"Retrying in \d+s \(attempt \d+/\d+\): (.+)")
_FAILED_MARK = "[API Error: "
_CHATTER = ("Warning: ", "An unexpected critical error occurred:")
_EMPTY = regex(r"\[API Error: Model stream ended with[^\n\]]*\]\s*")
"""The whole message when the service answered with nothing, for which tokens are counted as well."""
_BY_EXIT_CODE = error_table("qwen", "exit_codes")
_LOGIN = caseless(rf"{SAYS_NO_LOGIN}|free tier has been discontinued")
_RULES = error_rules("qwen")
NOTHING = Tokens(input=0, output=0)
"""What a new conversation has used."""
_ASK = "ask_user_question"
_FINISHED = ("end_turn", "stop_sequence", "stop")
_MAX_CONTINUED = 3
"""How often it has its model continue an answer that met the limit on output, after trying it anew with a higher one;
then it takes what there is for the answer."""
_OF_A_TURN = frozenset({"assistant", "user", "stream_event"})


@dataclass(kw_only=True)
class QwenEvents(MessageEvents):
    """The events of one run."""

    lost: ClassVar = caseless(r"no saved session found")

    ended: bool = False
    """Whether the last result ended the last turn, with nothing since."""
    failure: re.Match[str] | None = None
    """A failed request as reported in the last message; None once the model has answered."""
    prior: Tokens | None = NOTHING
    """What the thread had used before; None: unknown."""
    waits: bool = False
    """Whether it has announced a retry, with nothing from the model since."""
    continued: int | None = None
    """How often the model was asked to continue the answer that it began anew; None: it began none anew."""
    retrying: str | None = None
    """The error that caused the last retry."""
    complaint: str | None = None
    """The first line of stderr that says something. For a usage error it has the cause; the usage follows."""
    input: int = 0
    output: int = 0
    asked: dict[str, str] = field(default_factory=dict)
    """The questions that the model tried to ask, by call id."""
    asks_model: bool = False
    """Whether a tool's result waits for the model's next message."""

    @property
    def terminal(self) -> bool:
        return self.ended

    def take(self, event: Event) -> list[Part]:
        self.conversation_id = text_of(event, "session_id") or self.conversation_id
        if self._begins_turn(event):
            self.ended = False
        match event.get("type"):
            case "system" if event.get("subtype") == "init":
                self.continued = None
                return [Part("notice", begins(event, "model", "qwen_code_version", "permission_mode"))]
            case "system" if event.get("subtype") == "retry":
                return self._take_retry(event_of(event, "data"))
            case "assistant":
                message = event_of(event, "message")
                if text_of(event, "parent_tool_use_id") is None and list_of(message, "content"):
                    # A message that calls tools gives that as its stop reason.
                    self.stop_reason, self.asks_model = text_of(message, "stop_reason"), False
                return self._take_message(message)
            case "user":
                content = objects_of(event_of(event, "message"), "content")
                results = [block for block in content if block.get("type") == "tool_result"]
                if results and text_of(event, "parent_tool_use_id") is None:
                    self.stop_reason, self.asks_model, self.continued = None, True, None
                for call_id in [text_of(block, "tool_use_id") for block in results]:
                    self.question = self.asked.pop(call_id or "", self.question)  # unattended, so nobody answered
                return [self.take_tool_result(block) for block in results]
            case "result":
                return self._take_result(event)
        return []

    def _begins_turn(self, event: Event) -> bool:
        if event.get("type") == "system":
            return event.get("subtype") == "init"
        return text_of(event, "type") in _OF_A_TURN and text_of(event, "parent_tool_use_id") is None

    def take_stderr(self, line: str) -> None:
        if not line.startswith(_CHATTER):
            self.complaint = self.complaint or line or None
        if (match := _RETRYING.match(line)) is not None:
            self.retrying = match[1]

    def _take_retry(self, data: Event) -> list[Part]:
        self.waits = True
        if data.get("preserveText") is True:
            self.continued = None if self.continued is None else self.continued + 1
            return [Part("notice", "has its model continue the answer")]
        self.continued = 0
        if "attempt" not in data:
            return [Part("notice", "has its model begin the answer again")]
        attempt, most = (shown(data.get(key)) or "?" for key in ("attempt", "maxRetries"))
        pause_s = (count_of(data, "delayMs") or 0) // 1_000
        return [Part("notice", f"asks its service again in {pause_s} s ({attempt} of {most})")]

    def stuck(self, started_ms: int | None) -> RunVerdict | None:
        """Return the limit that it waits out, a minute at a time; None: it does not. An event says that it waits, and a
        line of stderr for what."""
        if not self.waits or self.retrying is None:
            return None
        judged = classify(self.retrying, _RULES, started_ms or 0)
        # The words may have a span of time, but not when it began.
        return limited(self.retrying, None) if judged.reason is Reason.RATE_LIMITED else None

    def _take_message(self, message: Event) -> list[Part]:
        self.waits = False
        usage = event_of(message, "usage")
        used, made = count_of(usage, "input_tokens") or 0, count_of(usage, "output_tokens") or 0
        self.input, self.output = self.input + used, self.output + made
        blocks = objects_of(message, "content")
        join = "".join(text_of(block, "text") or "" for block in blocks if block.get("type") == "text")
        is_answer = used + made > 0 and _EMPTY.fullmatch(join) is None
        self.failure = None if is_answer else _FAILED_REQUEST.search(join, max(0, join.rfind(_FAILED_MARK)))
        self.answered = self.answered or (self.failure is None and bool(blocks))
        ends = (self._take_block(block) for block in blocks)
        return [part for part in ends if part is not None]

    def _take_block(self, block: Event) -> Part | None:
        match block.get("type"):
            case "text":
                self.message = text_of(block, "text") or ""
                self.spoke = self.spoke or (self.failure is None and not is_blank(self.message))
                return Part("message" if self.failure is None else "error", self.message)
            case "thinking":
                return Part("thinking", text_of(block, "thinking") or "")
            case "tool_use":
                tool, call_id = text_of(block, "name"), text_of(block, "id")
                self.called(call_id, tool)
                if tool == _ASK and (asked := questions(event_of(block, "input"))) is not None:
                    self.asked[call_id or ""] = asked
                return Part("tool_call", arguments(block.get("input")), tool)
        return None

    def _take_result(self, event: Event) -> list[Part]:
        self.last, self.ended = event, True
        counted = not self.answered and (count_of(event_of(event, "usage"), "output_tokens") or 0) > 0
        self.spoke = self.spoke or not is_blank(text_of(event, "result") or "") or counted
        for denial in objects_of(event, "permission_denials"):
            tool, given = text_of(denial, "tool_name") or "a tool", event_of(denial, "tool_input")
            self.denied.append(tool)
            self.denied_calls.append(self.denial(text_of(denial, "tool_use_id") or "", tool, given, tool))
        parts = self.last_words(event, text_of(event_of(event, "error"), "message"))
        usage = event_of(event, "usage")
        return parts + usage_parts(count_of(usage, "input_tokens"), count_of(usage, "output_tokens"))

    @property
    def _succeeded(self) -> bool:
        last = self.last or {}
        is_good = last.get("is_error") is False and not (text_of(last, "subtype") or "").startswith("error")
        return self.ended and is_good and self.failure is None

    @property
    def _cut_off(self) -> RunVerdict | None:
        """The verdict of a "success" whose model was cut off; None: it was not. The program may silently stop a model
        that loops; an unknown stop reason is a cut."""
        stop_reason = text_of(self.last or {}, "stop_reason") or self.stop_reason
        if stop_reason not in (None, *_FINISHED):
            return failed(Reason.UNFINISHED, f"its model was cut off: {stop_reason}")
        if (self.continued or 0) >= _MAX_CONTINUED:
            return failed(
                Reason.UNFINISHED, f"its answer was cut off, and so were all {self.continued} continuations of it"
            )
        if self.asks_model and not (text_of(self.last or {}, "result") or "").strip():
            return failed(Reason.UNFINISHED, "its program stopped it after a tool's result, and did not say why")
        return None

    def terminal_verdict(self, ending: OutputEnd) -> RunVerdict | None:
        if self.last is None or not self.ended:
            return None
        if self._succeeded:
            verdict = self.success(self.denied, undone=0 if self.question is not None else None)
            return self._cut_off or verdict if verdict.status is OutcomeStatus.SUCCEEDED else verdict
        if self.failure is not None:
            return _judge(self.failure, ending)
        silent = f"it ended with {shown(self.last.get('subtype')) or 'an error'}"
        error = text_of(event_of(self.last, "error"), "message") or text_of(self.last, "result") or silent
        if text_of(self.last, "subtype") == "error_max_turns":
            return failed(Reason.TURN_LIMIT, error)
        return _by_exit_code(ending, error) or classify(error, _RULES, ending.printed_ms)

    def last_error(self, ending: OutputEnd) -> RunVerdict | None:
        return None if self.failure is None else _judge(self.failure, ending)

    def exit_verdict(self, ending: OutputEnd) -> RunVerdict:
        """Return the verdict of the exit code and stderr. Once tools ran, stderr may be their output."""
        message = self.complaint or f"it exited with {ending.exit_code}"
        if known := _by_exit_code(ending, message):
            return known
        if self.failure is not None:
            return _judge(self.failure, ending)
        return failed(Reason.AGENT_ERROR, message) if self.tools_ran else classify(message, _RULES, ending.printed_ms)

    def result(self) -> Result:
        text = text_of(self.last or {}, "result") if self._succeeded and self._cut_off is None else None
        return replace(self.so_far, text=text, tokens=self._tokens())

    def _tokens(self) -> Tokens:
        """Return the run's tokens. The last result counts the whole conversation, side requests included."""
        usage = event_of(self.last or {}, "usage")
        used, made = count_of(usage, "input_tokens") or 0, count_of(usage, "output_tokens") or 0
        prior = self.prior or Tokens()
        if used + made > 0 and prior.input is not None and prior.output is not None:
            return Tokens(input=max(self.input, used - prior.input), output=max(self.output, made - prior.output))
        return Tokens(input=self.input, output=self.output) if self.input + self.output > 0 else Tokens()


def _by_exit_code(ending: OutputEnd, message: str) -> RunVerdict | None:
    """Return the verdict of the exit code; None: none. A missing login has the code of any error in its settings."""
    known = _BY_EXIT_CODE.get(ending.exit_code or 0)
    if known is Reason.BAD_INVOCATION and _LOGIN.search(message):
        known = Reason.AUTH
    return None if known is None else failed(known, message)


def _judge(failure: re.Match[str], ending: OutputEnd) -> RunVerdict:
    status = failure["status"]
    message = failure["login"] or failure["message"] or failure[0]
    return classify(message, _RULES, ending.printed_ms, status=int(status) if status is not None else None)
