"""What a host reports about a run, while it lives and after it ended. Plain values, which may come from another
machine.

Where the agent does not report the cost of a run, it follows from tokens at configured prices; some cannot be known.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from itertools import islice
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, Field, model_validator

from claudomator_py.domain.agent import AgentSpec, Price
from claudomator_py.domain.budget import Budget, WindowUse
from claudomator_py.domain.errors import Problem
from claudomator_py.domain.kind import UsageReporting
from claudomator_py.domain.outcome import AgentText, Denied, Outcome, Tokens
from claudomator_py.domain.run import ExitRecord
from claudomator_py.domain.task import TaskSpec
from claudomator_py.values import dataclass

_PER = 1_000_000


@dataclass(frozen=True, slots=True)
class Used:
    """What a run has used so far, as far as reported. windows: used share of each of its account's windows."""

    tokens: Tokens = Tokens()
    cost_usd: float | None = None
    windows: Mapping[str, WindowUse] = field(default_factory=dict)

    @classmethod
    def by(cls, outcome: Outcome) -> "Used":
        """Return the total usage of a run."""
        return cls(outcome.tokens, outcome.cost_usd, outcome.windows)

    def priced(self, prices: Mapping[str, Price], model: str | None) -> "Used":
        """Return the usage with its cost added; see ``priced``."""
        price = prices.get(model) if model is not None else None
        if self.cost_usd or price is None:
            return self
        cost = cost_usd(self.tokens, price)
        return self if cost is None else replace(self, cost_usd=cost)


def cost_usd(tokens: Tokens, price: Price) -> float | None:
    """Return the US dollars for that many tokens; None if their number is unknown."""
    if tokens.input is None or tokens.output is None:
        return None
    return (tokens.input * price.input + tokens.output * price.output) / _PER


def priced(outcome: Outcome, prices: Mapping[str, Price], model: str | None) -> Outcome:
    """Return the outcome with its cost. A cost reported by the agent is kept, except 0, which agents report for models
    whose price they do not know."""
    cost = Used.by(outcome).priced(prices, model).cost_usd
    return outcome if cost == outcome.cost_usd else outcome.model_copy(update={"cost_usd": cost})


def unmeasured(task: TaskSpec, agent: AgentSpec) -> list[str]:
    """Return which parts of the task's budget could not be measured on that agent, as sentences with the remedy."""
    if task.budget.usd is None and task.budget.tokens is None:
        return []
    hint = task.agent
    if hint.model is not None and agent.goes_by(hint.type):
        models: Sequence[str] = (hint.model,)
    elif hint.tier is not None:
        models = [choice.model for tier, choice in agent.models.items() if tier is hint.tier]
    else:
        models = [choice.model for choice in agent.models.values()]
    return [f"{agent.name} cannot keep to {odd.render()}" for odd in unknown_to(task.budget, agent, models)]


def unknown_to(budget: Budget, agent: AgentSpec, models: Sequence[str] | None = None) -> list[Problem]:
    """Return which parts of the budget cannot be kept, or cannot be known, when the agent runs these models, by default
    all of its own. field: the key, such as ``budget.usd``; remedy: None if its program never reports usage."""
    costs = []
    silent = agent.info.reports is UsageReporting.NOTHING
    countless = silent or agent.info.reports is UsageReporting.DOLLARS_ALONE
    if budget.tokens is not None and countless:
        costs.append(Problem(field="budget.tokens", message="its program does not say how many it uses"))
    if budget.usd is not None and agent.fee_usd is not None:
        if agent.fee_usd > budget.usd:
            costs.append(Problem(field="budget.usd", message=f"a task costs {agent.fee_usd:g} USD there"))
    elif budget.usd is not None and silent:
        costs.append(Problem(field="budget.usd", message="its program does not say what it costs"))
    elif budget.usd is not None and agent.info.reports not in (UsageReporting.DOLLARS, UsageReporting.DOLLARS_ALONE):
        named = [choice.model for choice in agent.models.values()] if models is None else models
        without = sorted({model for model in named if model not in agent.prices})
        if without or not named:
            price = f"it has no price for {', '.join(without)}" if without else "its models have no names"
            message = f"its program does not say what it costs, and {price}"
            costs.append(Problem(field="budget.usd", message=message, remedy="add `prices` to the agent"))
    return costs


@dataclass(frozen=True, slots=True)
class OutputPiece:
    """Consecutive bytes of a stream. Empty at its end, and if there is no stream (yet)."""

    start: int
    """Offset of the data, which is past the requested offset if nothing was kept there."""
    data: bytes
    size: int
    """End of the stream when it was read, in bytes from its start, including holes."""

    @property
    def next(self) -> int:
        """Offset at which to continue reading."""
        return self.start + len(self.data)


Read = Callable[[int, int], OutputPiece]
"""Reads at most a given number of bytes of a stream, from an offset."""


def tail_of(read: Read, limit: int) -> bytes:
    """Return the last ``limit`` bytes of the stream at present. A hole in them reads as a line break."""
    size = read(0, 0).size
    position = max(0, size - limit)
    pieces = []
    while position < size and (piece := read(position, size - position)).data:
        pieces.append(b"\n" + piece.data if piece.start > position else piece.data)
        position = piece.next
    return b"".join(pieces)[-limit:]


def with_zeros(read: Read, offset: int, limit: int) -> bytes:
    """Return at most ``limit`` bytes from the offset, with zeros for missing bytes, so that offsets are preserved."""
    piece = read(offset, limit)
    return (bytes(min(limit, piece.start - offset)) + piece.data)[:limit]


class Stage(StrEnum):
    """How far a run has got, judging by its output. Only a run that is DONE may be ended without loss.

    WORKING: the model is at work, or has not begun. WAITING: the last turn has ended, and the program will start
    another by itself, as at a wake-up. BACKGROUND: the same, once its background commands have ended. DONE: the last
    turn has ended, and nothing that it started is still open.
    """

    WORKING = "working"
    WAITING = "waiting"
    BACKGROUND = "background"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class LiveOutput:
    """A live run's output as far as it has been read; the first five fields are as in ``OutputReader``."""

    stuck_until: int | None = None
    stuck_since: int | None = None
    answered: bool = False
    stage: Stage = Stage.WORKING
    used: Used = field(default_factory=Used)
    stage_since: int = 0
    """When the stage was found to be reached, in epoch milliseconds."""
    stdout: int = 0
    """Bytes of standard output read so far."""
    unread: int = 0
    """Bytes from there to the end of the output, whether or not they were kept."""
    is_current: bool = False
    """True if nothing has been printed since. Checked only while the run is stuck; otherwise False."""

    def is_news_after(self, earlier: "LiveOutput") -> bool:
        """Return whether the difference may give a tick something to do. Usage is polled at a pace of its own."""
        return self._news() != earlier._news()

    def _news(self) -> tuple[int | None, bool, bool, Stage]:
        return self.stuck_until, self.stuck_since is not None, self.answered, self.stage


@dataclass(frozen=True, slots=True)
class Backlog:
    """Output of a run that has not been read yet. ended: no more will be printed, and the run is reported once all is
    read."""

    unread: int
    ended: bool


MAX_TEXT = 100_000
"""Maximum characters of a text written by an agent or a check."""
MAX_NAME_LENGTH = 4_000
"""Maximum characters of a name that it reports, such as that of a limit or a conversation."""
MAX_PARTS = 100
"""Maximum number of an account's windows, and of denied calls, in a report."""
MAX_COUNT = 2**53
"""Maximum of any number, which JSON and every database can hold. Times are in epoch milliseconds."""
_CUT = " [...] "


def _cut(text: str | None) -> str | None:
    """The start and the end of the text; one of them usually contains what matters."""
    if text is None or len(text) <= MAX_TEXT:
        return text
    end = MAX_TEXT // 4
    return f"{text[: MAX_TEXT - end - len(_CUT)]}{_CUT}{text[-end:]}"


def _exact(name: str | None) -> str | None:
    """The name, or None if it is too long: part of a name is useless."""
    return None if name is None or len(name) > MAX_NAME_LENGTH else name


def _within(number: float | None) -> bool:
    return number is not None and abs(number) <= MAX_COUNT  # and not NaN


def _number(number: float) -> float | None:
    return number if _within(number) else None


def _count(number: int | None) -> int | None:
    return number if number is not None and 0 <= number <= MAX_COUNT else None


_BOUNDS: Final[Mapping[str, Callable[[Any], object]]] = {
    **dict.fromkeys(("text", "detail", "question"), _cut),
    **dict.fromkeys(("limit", "family", "model", "near_limit"), lambda name: name[:MAX_NAME_LENGTH]),
    **dict.fromkeys(("reset_at", "near_limit_until", "near_limit_used", "cost_usd"), _number),
    "conversation_id": _exact,
}
"""What is made of what an outcome says there, if it says anything."""


def _bounded(outcome: Outcome) -> Outcome:
    """The outcome with everything limited to what a row can hold, whatever a run has left behind."""
    fields, changes = outcome.__dict__, dict[str, object]()
    for name, bounded in _BOUNDS.items():
        if fields[name] is not None:
            changes[name] = bounded(fields[name])
    if outcome.tokens.input is not None or outcome.tokens.output is not None:
        changes["tokens"] = Tokens(input=_count(outcome.tokens.input), output=_count(outcome.tokens.output))
    if outcome.windows:
        windows = (
            (name, use)
            for name, use in outcome.windows.items()
            if max(len(name), len(use.family or "")) <= MAX_NAME_LENGTH and _within(use.used) and _within(use.resets_at)
        )
        changes["windows"] = dict(islice(windows, MAX_PARTS))
    if outcome.denied:
        changes["denied"] = tuple(
            Denied(
                tool=call.tool[:MAX_NAME_LENGTH],
                input=call.input[:MAX_NAME_LENGTH],
                rule=_exact(call.rule),
                beyond=None if call.beyond is None else call.beyond[:MAX_NAME_LENGTH],
            )
            for call in outcome.denied[:MAX_PARTS]
        )
    return outcome.model_copy(update=changes) if changes else outcome


def _bounded_record(record: ExitRecord | None) -> ExitRecord | None:
    """Raises ValueError for numbers that no supervisor can have written."""
    if record is None:
        return None
    numbers = (record.exit_code or 0, record.started_ms, record.ended_ms, record.step)
    if not all(map(_within, numbers)):
        raise ValueError("no supervisor wrote that exit record")
    return record if record.error is None else replace(record, error=record.error[:MAX_NAME_LENGTH])


_BoundedOutcome = Annotated[Outcome, AfterValidator(_bounded)]


class RunReport(BaseModel, frozen=True, extra="forbid"):
    """Everything that needs to be known about the end of a run. Secrets are removed and costs are computed.

    Applying it requires neither the run's files nor its agent's reader. Its size is bounded here, whoever created it.
    Raises ValueError for a report with neither an outcome of the agent's run nor the statement that the run is gone.
    """

    run_id: str = Field(max_length=MAX_NAME_LENGTH)
    step: int = Field(default=0, ge=0, le=MAX_COUNT)
    """0: the agent's run; n: the n-th start of its check."""
    exit: Annotated[ExitRecord | None, AfterValidator(_bounded_record)] = None
    """How the process ended; None if its supervisor left no record."""
    outcome: _BoundedOutcome | None = None
    """Outcome of the agent's run according to the exit record; None for a check."""
    undisturbed: _BoundedOutcome | None = None
    """The outcome as if nothing had ended the run; None if it equals ``outcome``."""
    answered: bool = False
    """True if the agent's model produced any output."""
    check_output: Annotated[AgentText | None, AfterValidator(_cut)] = None
    """Tail of the check's output, if the check failed."""
    gone: bool = False
    """True if nothing is left of the run from which its end could be determined."""

    def with_outcomes(self, change: Callable[[Outcome], Outcome]) -> "RunReport":
        """Return the report with each of its outcomes changed."""
        outcomes = {"outcome": self.outcome, "undisturbed": self.undisturbed}
        return self.model_copy(update={name: outcome and change(outcome) for name, outcome in outcomes.items()})

    @model_validator(mode="after")
    def _require_outcome(self) -> "RunReport":
        if self.step == 0 and self.outcome is None and not self.gone:
            raise ValueError("a report of an agent's run needs an outcome, unless the run is gone")
        return self
