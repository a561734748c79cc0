"""What a host says of a run: while it lives, and how it ended. Values, which may come from another machine."""

from collections.abc import Callable
from dataclasses import field, replace
from enum import StrEnum
from itertools import islice
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from claudomator_py.domain.outcome import AgentText, Denied, Outcome, Tokens
from claudomator_py.domain.pricing import Used
from claudomator_py.domain.run import ExitRecord
from claudomator_py.values import dataclass


@dataclass(frozen=True, slots=True)
class OutputPiece:
    """Some bytes of a stream that stand together. Empty at its end, and where there is none (yet)."""

    start: int
    """Where they stand: past the offset that was asked for, if nothing was kept there."""
    data: bytes
    size: int
    """Where the stream ended when it was read, in bytes from its beginning, holes counted."""

    @property
    def next(self) -> int:
        """Where to read on."""
        return self.start + len(self.data)


Read = Callable[[int, int], OutputPiece]
"""Reads one stream, from an offset at most so many bytes."""


def tail_of(read: Read, limit: int) -> bytes:
    """Return the last ``limit`` bytes of the stream as it is now. A hole in them reads as a line break."""
    size = read(0, 0).size
    position = max(0, size - limit)
    pieces = []
    while position < size and (piece := read(position, size - position)).data:
        pieces.append(b"\n" + piece.data if piece.start > position else piece.data)
        position = piece.next
    return b"".join(pieces)[-limit:]


def with_zeros(read: Read, offset: int, limit: int) -> bytes:
    """Return at most ``limit`` bytes from the offset, with zeros for what was not kept, so that offsets stay what they
    are."""
    piece = read(offset, limit)
    return (bytes(min(limit, piece.start - offset)) + piece.data)[:limit]


class Stage(StrEnum):
    """How far a run has come, by what it has said. Only one that is DONE may be ended without a loss.

    WORKING: its model is at work, or has not begun. WAITING: its last turn has ended, and its program begins another by
    itself, as at a wake-up. BACKGROUND: the same, once the commands that it left in the background have ended. DONE:
    its last turn has ended, and nothing that it began is open.
    """

    WORKING = "working"
    WAITING = "waiting"
    BACKGROUND = "background"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class LiveOutput:
    """What a live run has said, as far as its output has been read; the first five as in ``OutputReader``."""

    stuck_until: int | None = None
    stuck_since: int | None = None
    answered: bool = False
    stage: Stage = Stage.WORKING
    used: Used = field(default_factory=Used)
    stage_since: int = 0
    """When it was found to have come so far, in epoch milliseconds."""
    stdout: int = 0
    """The bytes of standard output up to which it was read."""
    unread: int = 0
    """The bytes between there and the end of the output, whether or not they were kept."""
    is_current: bool = False
    """Whether it has printed nothing since. Looked for only where it is stuck; else False."""

    def is_news_after(self, earlier: "LiveOutput") -> bool:
        """Return whether a tick may have something to do because of it. What was used is asked for at a pace of its
        own."""
        return self._news() != earlier._news()

    def _news(self) -> tuple[int | None, bool, bool, Stage]:
        return self.stuck_until, self.stuck_since is not None, self.answered, self.stage


@dataclass(frozen=True, slots=True)
class Backlog:
    """What a run has printed and nobody has read. ended: it prints no more, and is told about once all is read."""

    unread: int
    ended: bool


MAX_TEXT = 100_000
"""Characters of one text that an agent or a check has written."""
MAX_NAME_LENGTH = 4_000
"""Characters of a name that it gives, such as that of a limit or of a conversation."""
MAX_PARTS = 100
"""Windows of an account, and denied calls, in one report."""
MAX_COUNT = 2**53
"""Of any number: what JSON and every database can hold. Times are in epoch milliseconds."""
_CUT = " [...] "
_NAMES = ("limit", "family", "model", "near_limit")
_TIMES = ("reset_at", "near_limit_until")


def _cut(text: str | None) -> str | None:
    """Its beginning and its end, of which one usually says what matters."""
    if text is None or len(text) <= MAX_TEXT:
        return text
    end = MAX_TEXT // 4
    return f"{text[: MAX_TEXT - end - len(_CUT)]}{_CUT}{text[-end:]}"


def _exact(name: str | None) -> str | None:
    """A name is worth nothing in part."""
    return None if name is None or len(name) > MAX_NAME_LENGTH else name


def _within(number: float | None) -> bool:
    return number is not None and abs(number) <= MAX_COUNT  # and no NaN


def _count(number: int | None) -> int | None:
    return number if number is not None and 0 <= number <= MAX_COUNT else None


def _bounded(outcome: Outcome) -> Outcome:
    """The outcome, with no more of anything than a row can take, whatever a run has left behind."""
    changes: dict[str, object] = {name: _cut(getattr(outcome, name)) for name in ("text", "detail", "question")}
    changes |= {name: None if (said := getattr(outcome, name)) is None else said[:MAX_NAME_LENGTH] for name in _NAMES}
    changes |= {name: said if _within(said := getattr(outcome, name)) else None for name in _TIMES}
    changes["near_limit_used"] = outcome.near_limit_used if _within(outcome.near_limit_used) else None
    changes["cost_usd"] = outcome.cost_usd if _within(outcome.cost_usd) else None
    changes["tokens"] = Tokens(input=_count(outcome.tokens.input), output=_count(outcome.tokens.output))
    changes["conversation_id"] = _exact(outcome.conversation_id)
    windows = (
        (name, use)
        for name, use in outcome.windows.items()
        if max(len(name), len(use.family or "")) <= MAX_NAME_LENGTH and _within(use.used) and _within(use.resets_at)
    )
    changes["windows"] = dict(islice(windows, MAX_PARTS))
    changes["denied"] = tuple(
        Denied(
            tool=call.tool[:MAX_NAME_LENGTH],
            input=call.input[:MAX_NAME_LENGTH],
            rule=_exact(call.rule),
            beyond=None if call.beyond is None else call.beyond[:MAX_NAME_LENGTH],
        )
        for call in outcome.denied[:MAX_PARTS]
    )
    return outcome.model_copy(update=changes)


def _bounded_record(record: ExitRecord | None) -> ExitRecord | None:
    """Raises ValueError for numbers that no supervisor has written."""
    if record is None:
        return None
    numbers = (record.exit_code or 0, record.started_ms, record.ended_ms, record.step)
    if not all(map(_within, numbers)):
        raise ValueError("no supervisor wrote that exit record")
    return replace(record, error=None if record.error is None else record.error[:MAX_NAME_LENGTH])


_BoundedOutcome = Annotated[Outcome, AfterValidator(_bounded)]


class RunReport(BaseModel):
    """All that has to be known of the end. Secrets are taken out, and costs are reckoned.

    Whoever applies it needs neither the run's files nor the reader of its agent. Its size is bounded here, whoever made
    it. Raises ValueError for a report that says neither what the agent's run came to nor that it is gone.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_id: str = Field(max_length=MAX_NAME_LENGTH)
    step: int = Field(default=0, ge=0, le=MAX_COUNT)
    """0: the agent's run; n: the n-th time that its check was begun."""
    exit: Annotated[ExitRecord | None, AfterValidator(_bounded_record)] = None
    """How it ended; None: its supervisor left no record."""
    outcome: _BoundedOutcome | None = None
    """What the agent's run came to, by the exit record; None for a check."""
    undisturbed: _BoundedOutcome | None = None
    """As if nothing had ended the run; None: the same as ``outcome``."""
    answered: bool = False
    """Whether the agent's model said or did anything."""
    check_output: Annotated[AgentText | None, AfterValidator(_cut)] = None
    """The end of what the check wrote, if it failed."""
    gone: bool = False
    """Whether nothing is left of the run from which its end could be told."""

    @model_validator(mode="after")
    def _says_what_became_of_the_run(self) -> "RunReport":
        if self.step == 0 and self.outcome is None and not self.gone:
            raise ValueError("a report of an agent's run needs an outcome, unless the run is gone")
        return self
