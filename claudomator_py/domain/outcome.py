"""How a run ended: one status, one stable reason code, and what each code means for the task and its agent."""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field, model_validator

from claudomator_py.domain.budget import BudgetOf, SpentBudget, WindowUse
from claudomator_py.domain.changes import MAX_FILES, RunChanges
from claudomator_py.domain.claims import admits_failure, announces_work, asks_a_person, claims_changes
from claudomator_py.domain.errors import ended, sentence
from claudomator_py.domain.personal import without_personal
from claudomator_py.domain.progress import is_partial, left_undone
from claudomator_py.domain.rationale import UNKNOWN, RationaleCode, StoredRationale, rationale
from claudomator_py.domain.wording import WordedCode
from claudomator_py.values import dataclass, regex


class OutcomeStatus(StrEnum):
    """The result of a run."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    LIMITED = "limited"
    NEEDS_INPUT = "needs_input"
    CANCELLED = "cancelled"
    LOST = "lost"


class Reason(StrEnum):
    """Why something did not succeed. The codes are a public contract: API, logs, metrics and retry policy use them."""

    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    NETWORK = "network"
    AUTH = "auth"
    NO_CREDIT = "no_credit"
    INVALID_MODEL = "invalid_model"
    CONTEXT_TOO_LONG = "context_too_long"
    REFUSED = "refused"
    TURN_LIMIT = "turn_limit"
    BUDGET = "budget"
    TIMEOUT = "timeout"
    STALLED = "stalled"
    CHECK_FAILED = "check_failed"
    CHECK_UNAVAILABLE = "check_unavailable"
    PERMISSION_DENIED = "permission_denied"
    BAD_INVOCATION = "bad_invocation"
    INTERRUPTED = "interrupted"
    CANCELLED = "cancelled"
    REJECTED = "rejected"
    HANDOFF_REFUSED = "handoff_refused"
    UNREACHABLE = "unreachable"
    NOT_RUNNING = "not_running"
    DEPENDENCY_FAILED = "dependency_failed"
    EXPIRED = "expired"
    OUTPUT_LIMIT = "output_limit"
    SETUP_FAILED = "setup_failed"
    CLONE_FAILED = "clone_failed"
    PUSH_FAILED = "push_failed"
    DISK_FULL = "disk_full"
    LOST = "lost"
    PREEMPTED = "preempted"
    REQUEUED = "requeued"
    UNFINISHED = "unfinished"
    NO_ANSWER = "no_answer"
    AGENT_ERROR = "agent_error"


class Provenance(StrEnum):
    """How a reset time is known."""

    REPORTED = "reported"
    ESTIMATED = "estimated"
    PROBED = "probed"
    OPERATOR = "operator"


class Doubt(WordedCode):
    """Why the success of a run may not be one. The words follow "its result"."""

    CLAIMS = "claims", "says otherwise"
    LEAVES = "leaves", "says what it leaves undone"
    ADMITS = "admits", "admits a failure"
    ASKS = "asks", "ends with a question"
    ANNOUNCES = "announces", "only announces work"
    EMPTY = "empty", "is empty"
    ALTERED = "altered", "rests on a check that it changed"
    WEAKENS = "weakens", "deletes or skips tests"


class HoldKind(StrEnum):
    """What a reason code puts on hold in addition to its own task."""

    NONE = "none"
    UNTIL_RESET = "until_reset"
    BRIEF = "brief"
    UNTIL_OPERATOR = "until_operator"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonPolicy:
    """What follows from a reason code."""

    meaning: str
    """One sentence for people."""
    counts_attempt: bool = True
    """Uses up one of ``retry.max_attempts``."""
    retries: bool = False
    """Another attempt may follow automatically."""
    escalates: bool = False
    """That attempt runs one tier up, unless the task pins its tier."""
    hold: HoldKind = HoldKind.NONE
    """The hold it puts on the agent."""
    needs_person: bool = False
    """Nothing continues until a person has taken action."""
    falls_back: bool = False
    """The model is at fault, so another attempt on that agent uses its ``fallback_model``, if it has one; see
    ``retries``."""
    outage: bool = False
    """The service is temporarily out of order, regardless of the task."""


def _ends(meaning: str) -> ReasonPolicy:
    return ReasonPolicy(meaning=meaning)


def _retries(meaning: str) -> ReasonPolicy:
    return ReasonPolicy(meaning=meaning, retries=True)


def _asks(meaning: str) -> ReasonPolicy:
    return ReasonPolicy(meaning=meaning, needs_person=True)


def _stops_agent(meaning: str) -> ReasonPolicy:
    hold = HoldKind.UNTIL_OPERATOR
    return ReasonPolicy(meaning=meaning, counts_attempt=False, retries=True, hold=hold, needs_person=True)


REASON_POLICIES: dict[Reason, ReasonPolicy] = {
    Reason.RATE_LIMITED: ReasonPolicy(
        meaning="The account has no quota left until its window resets.",
        counts_attempt=False,
        retries=True,
        hold=HoldKind.UNTIL_RESET,
    ),
    Reason.OVERLOADED: ReasonPolicy(
        meaning="The model's service is at capacity for the moment.",
        counts_attempt=False,
        retries=True,
        outage=True,
        hold=HoldKind.BRIEF,
        falls_back=True,
    ),
    Reason.NETWORK: ReasonPolicy(
        meaning="The model's service could not be reached.",
        counts_attempt=False,
        retries=True,
        outage=True,
        hold=HoldKind.BRIEF,
    ),
    Reason.AUTH: _stops_agent("The agent is not logged in, or its key is not accepted."),
    Reason.NO_CREDIT: _stops_agent("The account's credit is used up."),
    Reason.INVALID_MODEL: ReasonPolicy(
        meaning="The model asked for is not known or not allowed.", needs_person=True, falls_back=True
    ),
    Reason.CONTEXT_TOO_LONG: ReasonPolicy(
        meaning="The conversation no longer fits the model's context.", retries=True, escalates=True
    ),
    Reason.REFUSED: _ends("The model declined to do the task."),
    Reason.TURN_LIMIT: _ends("The run used up its turns before it was done."),
    Reason.BUDGET: _ends("The run used up its budget before it was done."),
    Reason.TIMEOUT: _ends("The run took longer than its timeout."),
    Reason.STALLED: _retries("The run neither wrote nor computed anything for its stall timeout."),
    Reason.CHECK_FAILED: _retries("The agent said it was done, but the task's check did not pass."),
    Reason.CHECK_UNAVAILABLE: _asks("The agent said it was done, but the task's check could not be run."),
    Reason.PERMISSION_DENIED: _asks("The agent was not allowed to use the tools that it needed."),
    Reason.BAD_INVOCATION: _asks("The agent's program did not accept how it was started."),
    Reason.INTERRUPTED: _ends("The agent was ended by a signal that Claudomator did not send."),
    Reason.CANCELLED: _ends("An operator cancelled it."),
    Reason.REJECTED: _ends("A rule or a person rejected it."),
    Reason.HANDOFF_REFUSED: _ends("The handoff to whoever runs the task was not valid."),
    Reason.UNREACHABLE: ReasonPolicy(
        meaning="The remote agent did not answer.", counts_attempt=False, retries=True, outage=True
    ),
    Reason.NOT_RUNNING: _asks("The remote agent is not running and cannot be woken."),
    Reason.DEPENDENCY_FAILED: _ends("A task that it depends on did not complete."),
    Reason.EXPIRED: _ends("Nobody answered or approved it in time."),
    Reason.OUTPUT_LIMIT: _ends("The run wrote more output than allowed."),
    Reason.SETUP_FAILED: _asks("The run could not be set up (its directory, program or environment)."),
    Reason.CLONE_FAILED: _retries("The node could not clone the repository."),
    Reason.PUSH_FAILED: _asks("What the run did on its node could not be brought back to the repository; it is kept."),
    Reason.DISK_FULL: _retries("There was no space left on the disk."),
    Reason.LOST: _ends("It is not known what the run did, or how it ended."),
    Reason.PREEMPTED: ReasonPolicy(
        meaning="The cluster ended the run to give its node to a job of higher priority.",
        counts_attempt=False,
        retries=True,
        outage=True,
    ),
    Reason.REQUEUED: ReasonPolicy(
        meaning="The cluster, or its administrator, ended the run to start its job again.",
        counts_attempt=False,
        retries=True,
        outage=True,
    ),
    Reason.UNFINISHED: _retries("The model was cut off in the middle of its work, though the agent called it done."),
    Reason.NO_ANSWER: _retries("The agent said that it was done, but its model had neither said nor done anything."),
    Reason.AGENT_ERROR: _retries("The agent ended without success."),
}


CHECK_REASONS = frozenset({Reason.CHECK_FAILED, Reason.CHECK_UNAVAILABLE})
"""Their detail is a line on the command, followed by the check's output."""
OUTAGES = frozenset(reason for reason, policy in REASON_POLICIES.items() if policy.outage)


class Tokens(BaseModel, frozen=True):
    """The run's own tokens, not the conversation's total."""

    input: int | None = None
    output: int | None = None


_CONTROL_CHARACTERS = regex(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def _storable(text: str) -> str:
    """Replace what no text column and no JSON document can hold: NUL and unpaired surrogates."""
    return text.replace("\0", "\ufffd").encode(errors="surrogatepass").decode(errors="replace")


AgentText = Annotated[str, AfterValidator(_storable)]


def _one_line(name: str) -> str:
    """Return a file name without line ends and control characters, as it appears in lists and in prompts."""
    return _CONTROL_CHARACTERS.sub(" ", name)


class Denied(BaseModel, frozen=True):
    """A tool call that was denied. input: its purpose in short, or in full for a call beyond the run's reach.

    rule: the narrowest rule expressible in its CLI that allows the call, as written in ``permissions.allowed_tools``;
    None if there is none. beyond: in words, what goes beyond the run's reach; None if it was denied for another reason.
    """

    tool: AgentText
    input: AgentText = ""
    rule: AgentText | None = None
    beyond: AgentText | None = None


def _impersonal(limit: int) -> AfterValidator:
    """Remove personal data, whoever reads the text; the result is never longer than the limit."""
    return AfterValidator(lambda text: without_personal(text)[:limit])


class HandoffRequest(BaseModel, frozen=True, extra="forbid"):
    """To whom a run hands its task, and what it leaves behind, in its agent's words without personal data."""

    to: Annotated[AgentText, Field(min_length=1, max_length=100)] = Field(
        description="Specialist, by the id of its card."
    )
    reason: Annotated[AgentText, Field(max_length=1_000), _impersonal(1_000)] = Field(
        "", description="Why it hands the task on."
    )
    done: Annotated[AgentText, Field(max_length=4_000), _impersonal(4_000)] = Field("", description="What is done.")
    left: Annotated[AgentText, Field(max_length=4_000), _impersonal(4_000)] = Field(
        "", description="What is left to do."
    )
    files: tuple[
        Annotated[AgentText, Field(min_length=1, max_length=300), AfterValidator(_one_line), _impersonal(300)], ...
    ] = Field((), max_length=20, description="Files that it changed.")


class RefusedHandoff(BaseModel, frozen=True):
    """The handoff to that specialist was refused, and why."""

    to: AgentText
    why: StoredRationale
    fallback: bool = False
    """True if a card named the specialist; otherwise the run did, which is no secret to those who see its task."""

    def hiding(self, name: Callable[[str], str]) -> "RefusedHandoff":
        """Return a copy in which each specialist is called what ``name`` returns. A specialist named by the run that
        does not exist or may not be used keeps the run's name: otherwise hidden specialists could be told from
        nonexistent ones."""
        if name(self.to) == self.to or self.fallback or self.why.code not in UNKNOWN:
            return self.model_copy(update={"to": name(self.to), "why": self.why.naming(name)})
        return self.model_copy(update={"why": rationale(RationaleCode.NO_SPECIALIST, specialist=self.to)})

    @property
    def text(self) -> str:
        """In words."""
        return ended(f"It was not handed on to {self.to}: {self.why.text}")


NEARLY_USED_SHARE = 0.95
"""Used share of a window above which an agent may end its turn early, to finish before the window is used up."""


@dataclass(frozen=True, slots=True)
class NearlyUsed:
    """A window of an account that was nearly used up. used: the share. resets_at: epoch milliseconds."""

    window: str | None
    used: float
    resets_at: int


class Fee(BaseModel, frozen=True):
    """What a specialist's card charges for a piece of work, and who is owed it."""

    usd: float
    """US dollars."""
    creator: str
    """Creator of the skill, or otherwise of the card."""


class Outcome(BaseModel, frozen=True, extra="forbid"):
    """What an agent's reader concludes about a finished run."""

    status: OutcomeStatus
    reason: Reason | None = None
    reset_at: int | None = None
    """Epoch milliseconds, only with status ``limited``."""
    provenance: Provenance | None = None
    limit: AgentText | None = None
    """The window or bucket that the agent named, such as ``five_hour``."""
    family: AgentText | None = None
    """The models that the limit applies to, if not all: part of their names; see ``domain.limits.in_family``."""
    model: AgentText | None = None
    """The model that the run used, as named by the agent's program; None if it did not say."""
    near_limit_until: int | None = None
    """When the limit that the account was warned about resets, in epoch milliseconds."""
    near_limit: AgentText | None = None
    """Name of that limit."""
    near_limit_used: float | None = None
    """Used share of that limit, from 0 to 1."""
    conversation_id: AgentText | None = None
    text: AgentText | None = None
    """The final answer."""
    detail: AgentText | None = None
    """The error in the agent's own words."""
    over_budget: SpentBudget | None = None
    """The budget that it used up, with reason ``budget``; a budget of the agent's own is described in ``detail``."""
    tokens: Tokens = Tokens()
    cost_usd: float | None = None
    """The run's own share in US dollars, including the fee."""
    fee: Fee | None = None
    """What the specialist's card charges for the work."""
    windows: dict[str, WindowUse] = Field(default_factory=dict)
    """Used share of each of the account's windows, by name."""
    conversation_lost: bool = False
    """True if the agent does not know the conversation that it should have continued."""
    question: AgentText | None = None
    """The question it asked a person."""
    denied: tuple[Denied, ...] = ()
    """Denied tool calls, without duplicates and without those that no permission would allow."""
    denials: int = 0
    """Total number of denied calls."""
    dropped: int = 0
    """Number of things it had scheduled for later, which were lost with its program."""
    handoff: HandoffRequest | None = None
    """To whom it handed the task, whether or not that was accepted."""
    refused_handoff: RefusedHandoff | None = None
    """Why the handoff was refused."""
    changes: RunChanges | None = None
    """What changed where it worked; None if unknown."""
    continues_changes: bool = False
    """True if it changed nothing, but an earlier run whose work it continued did."""
    is_checked: bool = False
    """True if the task's check passed after it."""
    altered_checks: Annotated[tuple[AgentText, ...], Field(max_length=MAX_FILES)] = ()
    """Files that this check names, and of which the task's runs removed lines."""
    weakened_tests: Annotated[tuple[AgentText, ...], Field(max_length=MAX_FILES)] = ()
    """Tests that the task's runs deleted or had skipped, for no reason that the task gives."""
    in_all: AgentText | None = None
    """What it and earlier runs of the task changed together, in one line; None if no earlier one changed something."""

    @property
    def agent_cost_usd(self) -> float | None:
        """The run's own share in US dollars as reported by its agent, without the fee."""
        if self.fee is None or self.cost_usd is None:
            return self.cost_usd
        return max(0.0, round(self.cost_usd - self.fee.usd, 6))

    @property
    def doubt(self) -> Doubt | None:
        """Why a success may not be one; None if neither its check nor its text gives a reason. What its text names as
        undone always counts, what it admits unless a check passed after changes, and the rest only if it changed
        nothing. The text of a run that continues earlier changes may claim those. A program without a model may well
        print nothing."""
        if self.status is not OutcomeStatus.SUCCEEDED:
            return None
        if self.altered_checks:
            return Doubt.ALTERED
        if self.weakened_tests:
            return Doubt.WEAKENS
        text = self.text or ""
        if left_undone(text) is not None:
            return Doubt.LEAVES
        has_changed = self.continues_changes or (self.changes is not None and self.changes.has_content)
        is_unchanged = self.changes is not None and self.changes.fault is None and not has_changed
        if is_unchanged and claims_changes(text):
            return Doubt.CLAIMS
        if not (self.is_checked and has_changed) and (admits_failure(text) or (not is_unchanged and is_partial(text))):
            return Doubt.ADMITS
        if not is_unchanged or self.changes is None or not self.changes.is_repository:
            return None
        if not text.strip():
            return Doubt.EMPTY if self.tokens.output and not self.is_checked else None
        if asks_a_person(text):
            return Doubt.ASKS
        return Doubt.ANNOUNCES if announces_work(text) else None

    @property
    def is_doubtful(self) -> bool:
        """True if it is a success, but its text or its check gives reason to doubt that."""
        return self.doubt is not None

    @property
    def changes_text(self) -> str | None:
        """What the run changed, in one line, with the doubt; None if unknown and not doubtful."""
        summary = None if self.changes is None else self.changes.summary
        return self._with_doubt("no further changes" if self.continues_changes else summary)

    @property
    def task_changes_text(self) -> str | None:
        """What all runs of the task changed, in one line, with the doubt; None as for ``changes_text``."""
        return self.changes_text if self.in_all is None else self._with_doubt(self.in_all)

    def _with_doubt(self, summary: str | None) -> str | None:
        if (doubt := self.doubt) is None:
            return summary
        what = {
            Doubt.ALTERED: ", ".join(self.altered_checks),
            Doubt.WEAKENS: ", ".join(self.weakened_tests),
            Doubt.LEAVES: left_undone(self.text or ""),
        }.get(doubt)
        return f"{summary or 'no changes recorded'} (its result {doubt.words}{f': {what}' if what else ''})"

    @property
    def changes_sentence(self) -> str | None:
        """What was changed, as a sentence; None as for ``changes_text``."""
        text = self.changes_text
        if text is None or self.changes is None or self.changes.is_empty:
            return None if text is None else sentence(text)
        return f"Changed: {text}."

    @property
    def error(self) -> str | None:
        """What went wrong, in words: why the handoff was refused; otherwise the budget that was used up, followed by
        the error in the agent's own words."""
        if self.refused_handoff is not None:
            return self.refused_handoff.text
        over = self.over_budget.text if self.over_budget is not None else None
        return ". ".join(part for part in (over, self.detail) if part) or None

    @property
    def day_is_spent(self) -> bool:
        """True if a daily budget was used up, which is a limit of that day and not of the task."""
        return self.over_budget is not None and self.over_budget.of is not BudgetOf.TASK

    @property
    def nearly_used(self) -> NearlyUsed | None:
        """The window of its model that was nearly used up at the end; of several, the one that resets first."""
        model = (self.model or "").lower()
        own = {name: use for name, use in self.windows.items() if use.family is None or use.family in model}
        windows = [NearlyUsed(name, use.used, use.resets_at) for name, use in own.items()]
        used, until = self.near_limit_used, self.near_limit_until
        if used is not None and until is not None and self.near_limit not in self.windows:
            windows.append(NearlyUsed(self.near_limit, used, until))
        near = (window for window in windows if window.used >= NEARLY_USED_SHARE)
        return min(near, key=lambda window: window.resets_at, default=None)

    @model_validator(mode="after")
    def _reason_unless_succeeded(self) -> "Outcome":
        if self.status is OutcomeStatus.SUCCEEDED and self.reason is not None:
            raise ValueError("a success has no reason")
        if self.status not in (OutcomeStatus.SUCCEEDED, OutcomeStatus.NEEDS_INPUT) and self.reason is None:
            raise ValueError(f"a run that is {self.status} needs a reason")
        return self
