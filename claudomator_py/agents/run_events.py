"""The events of one run of a CLI: what each of them says, for people, and what they come to together.

A CLI that prints JSON events to stdout and words to stderr has a ``RunEvents`` of its own. Only what bears an error,
and stderr, can say that something went wrong; what a model wrote never does.
"""

import copy
import dataclasses
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar, Self

from claudomator_py.agents.ending import Result, RunVerdict, denials, failed
from claudomator_py.agents.jsonlines import Event, count_of
from claudomator_py.domain.outcome import OutcomeStatus, Reason
from claudomator_py.domain.report import Stage
from claudomator_py.domain.run import Part
from claudomator_py.values import dataclass

_MAX_CALLS = 1_000
_SOME_TEXT = ("text", "content", "output", "message")


@dataclass(frozen=True, slots=True)
class OutputEnd:
    """What is known at the end, besides the events."""

    exit_code: int | None
    """None where there is none."""
    printed_ms: int
    """Epoch milliseconds: the present for what does not say when it was printed."""
    stdout: str
    """What was no event."""
    stderr: str
    """Its end."""


@dataclass(kw_only=True)
class RunEvents(ABC):
    """What the events of one run said so far. Those of each CLI are a dataclass as well."""

    lost: ClassVar[re.Pattern[str] | None] = None
    """How the CLI says that it does not know the conversation that a run was to continue; None: it never does."""

    resumed: bool = False
    """Whether the run continues in a conversation."""
    zone: str | None = None
    """As for ``find_reset``: that of the CLI's own clock times."""
    anything: bool = False
    answered: bool = False
    """Whether the model has said or done anything."""
    spoke: bool = False
    """Whether it has put something into words: thoughts alone are none."""
    tried: int = 0
    """How many tools it has called."""
    conversation_id: str | None = None
    tools: dict[str, str] = field(default_factory=dict)
    """The tools of the last calls, by the ids of the calls."""

    def copy(self) -> Self:
        """Return another one that has taken the same. Events are shared: nobody changes them."""
        other = copy.copy(self)
        for one in dataclasses.fields(other):
            value = getattr(other, one.name)
            if isinstance(value, dict | list | set):
                setattr(other, one.name, value.copy())
        return other

    @abstractmethod
    def take(self, event: Event) -> list[Part]:
        """Take the next event: what it says, for people. Never raises, whatever it holds."""

    def take_stderr(self, line: str) -> None:  # noqa: B027 - most say all in events
        """Take the next line of stderr, as people read it."""

    def is_log(self, line: bytes) -> bool:
        """Return whether that line of stderr is a log that nobody is to read."""
        return False

    @property
    @abstractmethod
    def terminal(self) -> bool:
        """Whether a complete terminal event has ended the last turn: what begins another one takes that back."""

    @property
    def stage(self) -> Stage:
        """How far the run has come. That of a CLI whose program ends with its only turn."""
        return Stage.DONE if self.terminal else Stage.WORKING

    def to_come(self, at_ms: int, *, stopped: bool) -> Mapping[str, int]:
        """Return what was still to come of the run as its program ended: what it is, one of it, and how much.

        at_ms: when that was, in epoch milliseconds. stopped: whether the program was stopped after its last word.
        """
        return {}

    def stuck(self, started_ms: int | None) -> RunVerdict | None:
        """Return what the CLI waits out without an event, as far as it says. started_ms: when the run began, if
        known."""
        return None

    @property
    def stuck_since(self) -> int | None:
        """When it said so, in epoch milliseconds, where that is known."""
        return None

    @abstractmethod
    def said(self, ending: OutputEnd) -> RunVerdict | None:
        """Return what the terminal event of the last turn means; None: there was none."""

    @property
    def worked(self) -> bool:
        """Whether it has put something into words, or called a tool."""
        return self.spoke or self.tried > 0

    def success(self, denied: Sequence[str] = (), undone: int | None = None) -> RunVerdict:
        """Return what a CLI means that says it has succeeded: nothing, where its model has neither said nor done
        anything.

        denied: the tools whose calls were denied, one for each. undone: how many calls that leaves undone; None: as
        many.
        """
        if self.spoke or self.tried > (len(denied) if undone is None else undone):
            return RunVerdict(OutcomeStatus.SUCCEEDED, detail=denials(denied))
        if denied:
            return failed(Reason.PERMISSION_DENIED, denials(denied))
        return failed(Reason.NO_ANSWER, "it said that it succeeded, but its model has neither said nor done anything")

    def last_error(self, ending: OutputEnd) -> RunVerdict | None:
        """Return what the last error means that it told of, if nothing came after that. None: there is none."""
        return None

    def exited_well(self, ending: OutputEnd) -> RunVerdict:
        """Return what a run without a terminal event came to that exited with 0."""
        return failed(Reason.AGENT_ERROR, "it exited with 0, but without saying that it succeeded")

    @abstractmethod
    def unsaid(self, ending: OutputEnd) -> RunVerdict:
        """Return what a run without a terminal event came to that exited with anything else."""

    @abstractmethod
    def result(self) -> Result:
        """Return what the run said and used."""

    def called(self, call_id: str | None, tool: str | None) -> None:
        """Remember which tool that call is of."""
        self.tried += tool is not None
        if call_id is not None and tool is not None:
            self.tools[call_id] = tool
            if len(self.tools) > _MAX_CALLS:
                del self.tools[next(iter(self.tools))]

    def tool_of(self, call_id: str | None) -> str | None:
        """Return the tool of that call, if it was seen."""
        return self.tools.get(call_id or "")


def shown(value: Any) -> str:
    """Return a value as people read it: text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def content_text(content: Any) -> str:
    """Return the text of a content that is a text or a list of blocks; of a block without text, its type in
    brackets."""
    if not isinstance(content, list):
        return shown(content)
    return "\n".join(_block_text(block) for block in content)


def arguments(value: Any) -> str:
    """Return what a tool is called with: its only argument as it is, several as JSON."""
    if isinstance(value, dict) and len(value) == 1:
        return shown(next(iter(value.values())))
    return shown(value)


def tokens_text(used: int | None, made: int | None, cost_usd: float | None = None) -> str:
    """Return what was used, in words."""
    parts = [f"{used or 0} tokens in, {made or 0} out"] if used is not None or made is not None else []
    if cost_usd is not None:
        parts.append(f"${cost_usd:.4f}")
    return ", ".join(parts)


def total(event: Event, *keys: str) -> int | None:
    """Return the sum of these counts; None if there is none of them."""
    counts = [count for key in keys if (count := count_of(event, key)) is not None]
    return sum(counts) if counts else None


def _block_text(block: Any) -> str:
    if not isinstance(block, dict):
        return shown(block)
    texts = (block[key] for key in _SOME_TEXT if isinstance(block.get(key), str))
    return next(texts, f"[{shown(block.get('type')) or 'block'}]")


@dataclass(kw_only=True)
class ClientEvents(RunEvents):
    """Those of a program of ours, which ends with an event that says how."""

    program: ClassVar[str] = "its client"
    """As people know it."""

    end: Event | None = None

    @property
    def terminal(self) -> bool:
        return self.end is not None

    def unsaid(self, ending: OutputEnd) -> RunVerdict:
        """Return the verdict on a program that ended without a word: a fault of ours, or of the machine."""
        silent = f"{self.program} exited with {ending.exit_code} without a terminal event"
        return failed(Reason.AGENT_ERROR, ending.stderr or silent)
