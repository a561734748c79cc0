"""The events of one run of a CLI: what each shows in the log, and the run's verdict and result.

Each CLI that prints JSON events to stdout and text to stderr has a subclass of ``RunEvents``. Only error events and
stderr can say that something went wrong; the model's text never does.
"""

import copy
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar, Self

from claudomator_py.agents.ending import Result, RunVerdict, denials, failed
from claudomator_py.agents.fence import FenceVerdict, beyond_reach, denied_call, distinct, fenced_call
from claudomator_py.domain.outcome import Denied, OutcomeStatus, Reason
from claudomator_py.domain.report import Stage
from claudomator_py.domain.run import Part
from claudomator_py.json_fields import Event, count_of, text_of
from claudomator_py.values import dataclass

_MAX_CALLS = 1_000
_SOME_TEXT = ("text", "content", "output", "message")


@dataclass(frozen=True, slots=True)
class OutputEnd:
    """What else is known at the end of the output."""

    exit_code: int | None
    """None if the run has none."""
    printed_ms: int
    """Epoch milliseconds: the time to assume for messages without one."""
    stdout: str
    """The text on stdout that was no event."""
    stderr: str
    """The end of stderr."""


class Copied:
    """What a reader has read so far, or a part of it."""

    def copy(self) -> Self:
        """Return an independent copy. Events are shared, as nobody changes them."""
        other = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, dict | list | set | Copied):
                setattr(other, name, value.copy())
        return other


@dataclass(kw_only=True)
class RunEvents(Copied, ABC):
    """What the events of one run have said so far. Subclasses are dataclasses as well."""

    lost: ClassVar[re.Pattern[str] | None] = None
    """How the CLI says that it does not know the conversation to continue; None: it never does."""

    resumed: bool = False
    """Whether the run continues a conversation."""
    zone: str | None = None
    """The zone of the CLI's own clock times, as for ``find_reset``."""
    anything: bool = False
    answered: bool = False
    """Whether the model has said or done anything."""
    spoke: bool = False
    """Whether the model has said anything in words; thoughts do not count."""
    tried: int = 0
    """How many tools it has called."""
    conversation_id: str | None = None
    tools: dict[str, str] = field(default_factory=dict)
    """The tools of the last calls by call id."""
    denied: list[str] = field(default_factory=list)
    """The tool of each denied call."""
    denied_calls: list[Denied] = field(default_factory=list)
    """Those denied calls that a rule could allow."""
    question: str | None = None
    """The question that the run asked a person."""

    @abstractmethod
    def take(self, event: Event) -> list[Part]:
        """Take the next event and return what the log shows of it. Never raises, whatever it holds."""

    def take_stderr(self, line: str) -> None:
        """Take the next line of stderr, made readable."""

    def is_log(self, line: bytes) -> bool:
        """Return whether the line of stderr is a log line that people need not see."""
        return False

    @property
    @abstractmethod
    def terminal(self) -> bool:
        """Whether the last turn has its terminal event, and no other has begun."""

    @property
    def stage(self) -> Stage:
        """Where the run stands; by default its only turn ends the program."""
        return Stage.DONE if self.terminal else Stage.WORKING

    def to_come(self, at_ms: int, *, stopped: bool) -> Mapping[str, int]:
        """Return the work that the program's end cancelled: number by noun. at_ms: when it ended, in epoch
        milliseconds. stopped: whether it was stopped after its last result."""
        return {}

    def stuck(self, started_ms: int | None) -> RunVerdict | None:
        """Return what the CLI is waiting out without an event; None: nothing known. started_ms: when the run began, if
        known."""
        return None

    @property
    def stuck_since(self) -> int | None:
        """When the wait began, in epoch milliseconds, if known."""
        return None

    @abstractmethod
    def terminal_verdict(self, ending: OutputEnd) -> RunVerdict | None:
        """Return the verdict of the last turn's terminal event; None: there was none."""

    @property
    def worked(self) -> bool:
        """Whether the model has said anything or called a tool."""
        return self.spoke or self.tried > 0

    @property
    def tools_ran(self) -> bool:
        """Whether text outside the events, such as stderr, may be the output of a tool."""
        return self.tried > 0

    def success(self, denied: Sequence[str] = (), undone: int | None = None, result: str = "") -> RunVerdict:
        """Return the verdict of a CLI that reports success: a failure if its model neither said nor did anything.

        denied: the tool of each denied call. undone: how many calls were thus not run; None: all of them. result: what
        the program itself says came of it.
        """
        if self.spoke or self.tried > (len(denied) if undone is None else undone):
            return RunVerdict(OutcomeStatus.SUCCEEDED, detail=denials(denied))
        if denied:
            return failed(Reason.PERMISSION_DENIED, denials(denied))
        empty = "it reported success, but its model neither said nor did anything"
        return failed(Reason.NO_ANSWER, f"{empty}; the program says: {result}" if result else empty)

    def last_error(self, ending: OutputEnd) -> RunVerdict | None:
        """Return the verdict of the last error, if nothing came after it; else None."""
        return None

    def exited_well(self, ending: OutputEnd) -> RunVerdict:
        """Return the verdict of exit code 0 without a terminal event."""
        return failed(Reason.AGENT_ERROR, "it exited with 0, but without saying that it succeeded")

    @abstractmethod
    def exit_verdict(self, ending: OutputEnd) -> RunVerdict:
        """Return the verdict of any other exit code without a terminal event."""

    @abstractmethod
    def result(self) -> Result:
        """Return the run's answer and usage."""

    @property
    def so_far(self) -> Result:
        """The result without answer and usage."""
        return Result(
            conversation_id=self.conversation_id,
            question=self.question,
            denied=distinct(self.denied_calls),
            denials=len(self.denied),
        )

    def called(self, call_id: str | None, tool: str | None) -> None:
        """Note a call and its tool."""
        self.tried += tool is not None
        if call_id is not None and tool is not None:
            self.tools[call_id] = tool
            if len(self.tools) > _MAX_CALLS:
                del self.tools[next(iter(self.tools))]

    def tool_of(self, call_id: str | None) -> str | None:
        """Return the tool of a call, if the call was seen."""
        return self.tools.get(call_id or "")


@dataclass(kw_only=True)
class MessageEvents(RunEvents):
    """The events of one run in the form of Claude Code's: messages made of blocks, and a result for each turn."""

    last: Event | None = None
    """The result of the last turn."""
    message: str | None = None
    """The text block that came last."""
    stop_reason: str | None = None
    """Why the last message ended, if given."""
    beyond: dict[str, FenceVerdict] = field(default_factory=dict)
    """What the fence said when it denied calls, by call id."""

    def take_tool_result(self, block: Event, at_ms: int | None = None) -> Part:
        """Take the result of a call and return what the log shows of it."""
        call_id, text = text_of(block, "tool_use_id"), content_text(block.get("content"))
        if call_id is not None and block.get("is_error") is True and (beyond := beyond_reach(text)) is not None:
            self.beyond[call_id] = beyond
        return Part("tool_result", text, self.tool_of(call_id), at_ms)

    def denial(self, call_id: str, tool: str, given: Event, rule: str | None) -> Denied:
        """Return the denied call. rule: allows it if it was not the fence that denied it."""
        return fenced_call(tool, given, self.beyond.get(call_id)) or denied_call(tool, given, rule)

    def last_words(self, result: Event, error: str | None, at_ms: int | None = None) -> list[Part]:
        """Return what the log shows of a result: the error, or else the text if it is no message's."""
        text = text_of(result, "result")
        if error is not None:
            return [Part("error", error, at_ms=at_ms)]
        if text is None or text == self.message:
            return []
        return [Part("error" if result.get("is_error") else "message", text, at_ms=at_ms)]


def shown(value: Any) -> str:
    """Return a value for people: text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def content_text(content: Any) -> str:
    """Return the text of a content, which is a string or a list of blocks; a block without text gives its type in
    brackets."""
    if not isinstance(content, list):
        return shown(content)
    return "\n".join(_block_text(block) for block in content)


def arguments(value: Any) -> str:
    """Return a call's arguments: a single one as it is, several as JSON."""
    if isinstance(value, dict) and len(value) == 1:
        return shown(next(iter(value.values())))
    return shown(value)


def tokens_text(used: int | None, made: int | None, cost_usd: float | None = None) -> str:
    """Return usage in words, such as ``100 tokens in, 50 out, $0.0100``; empty if nothing is known."""
    parts = [f"{used or 0:,} tokens in, {made or 0:,} out"] if used is not None or made is not None else []
    if cost_usd is not None:
        parts.append(f"${cost_usd:.4f}")
    return ", ".join(parts)


def usage_parts(
    used: int | None, made: int | None, cost_usd: float | None = None, *, at_ms: int | None = None
) -> list[Part]:
    """Return what the log shows of usage: nothing if nothing is known. used, made: tokens."""
    words = tokens_text(used, made, cost_usd)
    return [Part("usage", words, at_ms=at_ms)] if words else []


def begins(event: Event, *keys: str) -> str:
    """Return a notice about the first event, with those of these fields that it has."""
    return f"begins: {', '.join(words for key in keys if (words := shown(event.get(key))))}"


def total(event: Event, *keys: str) -> int | None:
    """Return the sum of the counts under these keys; None if there are none."""
    counts = [count for key in keys if (count := count_of(event, key)) is not None]
    return sum(counts) if counts else None


def _block_text(block: Any) -> str:
    if not isinstance(block, dict):
        return shown(block)
    texts = (block[key] for key in _SOME_TEXT if isinstance(block.get(key), str))
    return next(texts, f"[{shown(block.get('type')) or 'block'}]")


@dataclass(kw_only=True)
class ClientEvents(RunEvents):
    """The events of one of our own programs, which ends with an event of type ``end``."""

    program: ClassVar[str] = "its client"
    """Its name for people."""

    end: Event | None = None

    @property
    def terminal(self) -> bool:
        return self.end is not None

    def terminal_verdict(self, ending: OutputEnd) -> RunVerdict | None:
        return None if self.end is None else self.end_verdict(self.end, ending)

    @abstractmethod
    def end_verdict(self, end: Event, ending: OutputEnd) -> RunVerdict:
        """Return the verdict of the program's last event."""

    def exit_verdict(self, ending: OutputEnd) -> RunVerdict:
        """Return the verdict of a program that ended without that event: a fault of ours, or of the machine."""
        silent = f"{self.program} exited with {ending.exit_code} without a terminal event"
        return failed(Reason.AGENT_ERROR, ending.stderr or silent)
