"""What blocks a task: a code with parameters, passed from where it arises to where it is shown, and each code's words.

Rows, the API and metrics hold the value. The words stand beside the codes and are assembled only for display; see
``domain.blocked_words``.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any, Self

from pydantic import Field

from claudomator_py.domain.budget import Figures
from claudomator_py.domain.lifecycle import WaitReason
from claudomator_py.domain.outcome import Provenance, Reason
from claudomator_py.domain.wording import (
    Coded,
    CodedValue,
    ConversationRef,
    Instant,
    TaskRef,
    placeholders,
    refuse_unknown,
)

_MADE_OF: Mapping[str, tuple[str, ...]] = {
    "limit": ("reason", "window", "source", "family", "provenance", "doubted"),
    "unit": ("figures",),
}
"""Placeholders that are composed of other parameters."""
_BESIDE = ("agent", "bucket")
"""Parameters that every code may have, in addition to those its words name."""


class Why(StrEnum):
    """``reason`` of a task that is WAITING or QUEUED: the kind of obstacle in one word. Never rename values."""

    READY = "ready"
    """Nothing blocks the task: it is about to start."""
    DRAINED = "drained"
    DISK = "disk"
    BUDGET = "budget"
    SLOTS = "slots"
    WORKDIR = "workdir"
    KEPT = "kept"
    CONVERSATION = "conversation"
    ROUTING = "routing"
    CLASSIFYING = "classifying"
    AGENT = "agent"
    LIMITED = "limited"
    DEPENDENCY = "dependency"
    TIME = "time"
    BACKOFF = "backoff"
    FAULT = "fault"
    HOST = "host"
    """For a RUNNING task: the run was submitted to a host's engine, which has not placed it yet."""


class BlockCode(StrEnum):
    """What blocks a task, with its words. Codes are stored and part of the API: never rename them.

    A code with a ``why`` describes a task. The others describe an agent: their words follow its name and ``is``. In the
    words, ``{name}`` is a parameter, and ``[a|b]`` is the first alternative whose parameters are known. Codes with
    parameters are followed by an example.
    """

    why: Why | None
    words: str

    def __new__(cls, value: str, why: Why | None, words: str) -> Self:
        """Create a member from its value, the kind of obstacle and its words."""
        code = str.__new__(cls, value)
        code._value_ = value
        code.why = why
        code.words = words
        return code

    # --- of a task: nothing starts ------------------------------------------------------------------------------------
    DRAINED = "drained", Why.DRAINED, "no new runs until `claudomator undrain`"
    DISK_LOW = "disk_low", Why.DISK, "free disk space is below limits.min_free; make room"
    DAY_BUDGET = (
        "day_budget",
        Why.BUDGET,
        "the daily budget of all agents is used up[ ({figures})]; nothing starts until {until}",
    )
    """``the daily budget of all agents is used up (20.10 of 20.00 USD); nothing starts until 2026-11-22 15:00 UTC``"""
    SLOTS = "slots", Why.SLOTS, "all slots are in use ({active} of {slots})"
    """``all slots are in use (4 of 4)``"""
    REMOTE_SLOTS = (
        "remote_slots",
        Why.SLOTS,
        "all slots for runs on remote agents are in use ({active} of {slots}, concurrency.remote)",
    )
    """``all slots for runs on remote agents are in use (16 of 16, concurrency.remote)``"""
    ORGANISATION_SLOTS = (
        "organisation_slots",
        Why.SLOTS,
        (
            "[organisation {organisation}|{creator}|its organisation] uses all the slots that it may have"
            "[ ({active} of {slots}, {setting})]"
        ),
    )
    """``organisation acme uses all the slots that it may have (2 of 2, concurrency.per_organisation)``"""
    KEPT_SLOTS = (
        "kept_slots",
        Why.SLOTS,
        (
            "all slots that organisations share are in use[ ({active} of {slots})][; the last one of {setting} is "
            "the operator's]"
        ),
    )
    """``all slots that organisations share are in use (3 of 3); the last one of concurrency.total is the
    operator's``"""
    RULE_FULL = "rule_full", Why.SLOTS, "rule {rule} of the policy allows no more running tasks ({active} of {slots})"
    """``rule nights of the policy allows no more running tasks (1 of 1)``"""

    # --- of a task: its place -----------------------------------------------------------------------------------------
    WORKDIR = "workdir", Why.WORKDIR, "{directory} is in use by [{tasks}|another run]"
    """``/srv/app is in use by build``"""
    KEPT = "kept", Why.KEPT, "{directory} is reserved for [{tasks}|another task], until input arrives or {until}"
    """``/srv/app is reserved for asks, until input arrives or 2026-11-22 15:00 UTC``"""
    CONVERSATION = "conversation", Why.CONVERSATION, "waiting for its turn[ after {tasks}] in the same thread"
    """``waiting for its turn after build in the same thread``"""

    # --- of a task: where, and on which model -------------------------------------------------------------------------
    ROUTING = "routing", Why.ROUTING, "being routed to a specialist"
    CLASSIFYING = "classifying", Why.CLASSIFYING, "waiting for the tier classifier[, until {until} at most]"
    """``waiting for the tier classifier, until 2026-11-22 15:00 UTC at most``"""
    REQUIRED_AGENT = "required_agent", Why.AGENT, "the task requires agent {agent}, which is not configured"
    """``the task requires agent cluade, which is not configured``"""
    CONVERSATION_AGENT = (
        "conversation_agent",
        Why.AGENT,
        (
            "resumes the conversation of {conversation}, which is no longer configured; configure it again, "
            "or cancel the task and restart it without resume"
        ),
    )
    """``resumes the conversation of run 41c98f14 on claude, which is no longer configured; ...``"""
    NO_AGENT = (
        "no_agent",
        Why.AGENT,
        "no agent takes tasks that name none; install one, set auto_select for one, or name one with agent.type",
    )
    AGENTS_UNABLE = "agents_unable", Why.AGENT, "[resumes the conversation of {conversation}: ]{agents}"
    """``gemini is unable to run: gemini is not on PATH``"""
    AGENTS_FULL = "agents_full", Why.SLOTS, "[resumes the conversation of {conversation}: ]{agents}"
    """``claude is full (2 of 2 slots); codex is full (1 of 1 slots)``"""
    PREFERRED_FULL = "preferred_full", Why.SLOTS, "{agents}; the task prefers to wait, until {until} at most"
    """``claude is full (2 of 2 slots); the task prefers to wait, until 2026-11-22 15:00 UTC at most``"""
    AGENTS_LIMITED = "agents_limited", Why.LIMITED, "[resumes the conversation of {conversation}: ]{agents}"
    """``claude is limited (5h window, reported) until 2026-11-22 15:00 UTC``"""
    AGENTS_SPENT = "agents_spent", Why.BUDGET, "[resumes the conversation of {conversation}: ]{agents}"
    """``claude is out of its daily budget (5.10 of 5.00 USD) until 2026-11-22 15:00 UTC``"""

    # --- of a task that is not ready ----------------------------------------------------------------------------------
    DEPENDENCY = "dependency", Why.DEPENDENCY, "waits for [{tasks}|its dependencies]"
    """``waits for build (RUNNING), test (not seen yet)``"""
    TIME = "time", Why.TIME, "not before [{until}|a time that is not known]"
    """``not before 2026-11-22 15:00 UTC``"""
    BACKOFF = "backoff", Why.BACKOFF, "tries again at [{until}|a time that is not known]"
    """``tries again at 2026-11-22 15:00 UTC``"""
    CONFIRMATION = (
        "confirmation",
        Why.BACKOFF,
        (
            "it may have stopped early, as a limit was near; continues at [{until}|a time that is not known] to "
            "finish, or to confirm that it is done"
        ),
    )
    """``it may have stopped early, as a limit was near; continues at 2026-11-22 15:00 UTC to finish, ...``"""
    TASK_BUDGET = (
        "task_budget",
        Why.BUDGET,
        (
            "it has used {figures}; [raise budget.{unit} in {file}, or ]allow it more with "
            "`claudomator restart {task} --budget-{unit} ...`[, and `--resume` to continue the conversation of "
            "{conversation}]"
        ),
    )
    """``it has used 2.10 of 2.00 USD; raise budget.usd in /in/big.yaml, or allow it more with
    `claudomator restart big --budget-usd ...```"""
    FAULT = (
        "fault",
        Why.FAULT,
        "{doing} {task} failed[ {times} times in a row]: {text}[; {remedy}][; tries again at {until}]",
    )
    """``starting build failed 3 times in a row: /srv/app: Permission denied; give the daemon's user access to it;
    tries again at 2026-11-22 15:00 UTC``"""

    # --- of an agent: it cannot take the task -------------------------------------------------------------------------
    NOT_CONFIGURED = "not_configured", None, "not configured"
    NOT_SELECTABLE = "not_selectable", None, "available only when named explicitly"
    NOT_MEANT = "not_meant", None, "not what the task asks for"
    NOT_ALLOWED = "not_allowed", None, "not among the agents allowed for the task"
    NO_CONVERSATION = "no_conversation", None, "without the conversation"
    PROBLEM = "problem", None, "unable to run: {text}"
    """``gemini is unable to run: gemini is not on PATH``"""
    UNFIT = "unfit", None, "unfit for the task: {text}"
    """``codex is unfit for the task: codex cannot keep to permissions.mode``"""
    FULL = "full", None, "full ({active} of {slots} slots)"
    """``claude is full (2 of 2 slots)``"""
    NO_SLOT = "no_slot", None, "free, but without a slot for the task ({active} of {slots} in use)"
    """``claude is free, but without a slot for the task (4 of 4 in use)``"""
    LIMITED = "limited", None, "limited[ ({limit})] until {until}"
    """``claude is limited (5h window, reported) until 2026-11-22 15:00 UTC``"""
    HELD = "held", None, "held[ ({limit})] until [{until}|`claudomator release {agent}`|it is released]"
    """``claude is held (by the operator: kept for the day) until `claudomator release claude```"""
    PROBED = (
        "probed",
        None,
        "being tried after its limit[ ({limit})]: [{room} more may start now|more may start once it answers]",
    )
    """``claude is being tried after its limit (5h window, reported): 2 more may start now``"""
    BUDGET = "budget", None, "out of its daily budget[ ({figures})] until {until}"
    """``claude is out of its daily budget (5.10 of 5.00 USD) until 2026-11-22 15:00 UTC``"""
    WINDOW_BUDGET = (
        "window_budget",
        None,
        "out of its share of the {window} ({used} used, {share} allowed[, the rest kept for {reserved}]) until {until}",
    )
    """``claude is out of its share of the 5h window (81% used, 80% allowed) until 2026-11-22 15:00 UTC``"""

    # --- of an agent: another one was the better choice ---------------------------------------------------------------
    NEAR_LIMIT = "near_limit", None, "near its limit"
    BUSIER = "busier", None, "busier ({active} of {slots} slots)"
    """``codex is busier (2 of 3 slots)``"""
    TIE_NEAR_LIMIT = "tie_near_limit", None, "as busy as {chosen}, and near its limit"
    """``codex is as busy as claude, and near its limit``"""
    TIE = "tie", None, "as busy as {chosen}, which comes first alphabetically"
    """``codex is as busy as claude, which comes first alphabetically``"""

    # --- what has no code ---------------------------------------------------------------------------------------------
    TEXT = "text", None, "{text}[ until {until}]"
    """Words stored by an earlier version, which had no codes."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters that its words may name, in order."""
        names = (name for placeholder in placeholders(self.words) for name in _MADE_OF.get(placeholder, (placeholder,)))
        return tuple(dict.fromkeys(names))


WAITS: Mapping[str, BlockCode] = {
    WaitReason.DEPENDENCY: BlockCode.DEPENDENCY,
    WaitReason.TIME: BlockCode.TIME,
    WaitReason.BACKOFF: BlockCode.BACKOFF,
    WaitReason.BUDGET: BlockCode.TASK_BUDGET,
}
"""The code by the reason why a task is WAITING."""

_UNTIL_A_PERSON_ACTS = frozenset(
    {
        BlockCode.DRAINED,
        BlockCode.DISK_LOW,
        BlockCode.REQUIRED_AGENT,
        BlockCode.CONVERSATION_AGENT,
        BlockCode.NO_AGENT,
        BlockCode.TASK_BUDGET,
        BlockCode.FAULT,
        BlockCode.NOT_CONFIGURED,
        BlockCode.NOT_ALLOWED,
        BlockCode.PROBLEM,
        BlockCode.UNFIT,
        BlockCode.HELD,
    }
)
"""Codes that, without ``until``, last until a person does something about them."""


class BlockParams(Coded):
    """The parameters of a code; the code determines which are set. JSON omits the others."""

    agent: str | None = Field(None, description="The agent in question.")
    agents: tuple["Blocked", ...] = Field((), description="What keeps the task from each agent that it could run on.")
    chosen: str | None = Field(None, description="The agent that was chosen instead.")
    tasks: tuple[TaskRef, ...] = Field((), description="The tasks that it waits for.")
    task: str | None = Field(None, description="The name of the task itself, if it is part of a remedy.")
    conversation: ConversationRef | None = Field(None, description="The conversation that it has to resume.")
    directory: str | None = Field(None, description="The working directory of the task.")
    file: str | None = Field(None, description="The task's file.")
    active: int | None = Field(None, description="Live runs.")
    rule: str | None = Field(None, description="The rule of the policy.")
    organisation: str | None = Field(None, description="The organisation that the task belongs to.")
    creator: str | None = Field(None, description="The creator of a task that belongs to no organisation.")
    setting: str | None = Field(None, description="The key of the configuration that sets the limit.")
    slots: int | None = Field(None, description="The maximum number of concurrent runs.")
    room: int | None = Field(None, description="Runs that may start now in spite of it.")
    until: Instant | None = Field(None, description="When this may change by itself.")
    bucket: str | None = Field(None, description="What a hold applies to, such as ``claude/default:opus``.")
    family: str | None = Field(None, description="The family of models, or single model, that the hold is on.")
    window: str | None = Field(None, description="The window that is used up, as the agent names it.")
    reason: Reason | None = Field(None, description="Why it is held; absent for an operator's hold.")
    provenance: Provenance | None = Field(None, description="How the end of the hold is known.")
    source: str | None = Field(None, description="The origin of a hold, in the words of the agent or the operator.")
    doubted: Instant | None = Field(
        None, description="A reset that the agent reported and that is too far away to be believed."
    )
    figures: Figures | None = Field(None, description="What was spent, and the limit.")
    used: float | None = Field(None, description="Share of a window that is used up; 1 is all of it.")
    share: float | None = Field(None, description="Share of a window that may be used.")
    reserved: str | None = Field(None, description="Hours for which the rest of a window is reserved.")
    doing: str | None = Field(None, description="What the daemon tried to do for the task.")
    times: int | None = Field(None, description="How often that failed in a row; absent for the first time.")
    text: str | None = Field(None, description="The words of another program or of an earlier version.")
    remedy: str | None = Field(None, description="What to do about it.")


class Blocked(CodedValue):
    """One thing that blocks a task."""

    code: BlockCode
    params: BlockParams = Field(default_factory=lambda: BlockParams())

    @property
    def why(self) -> Why:
        """The kind of obstacle; ``AGENT`` for codes that describe an agent."""
        return self.code.why or Why.AGENT

    @property
    def until(self) -> int | None:
        """When this may change by itself, in epoch milliseconds; for limited agents, when the first one resets."""
        if self.params.until is not None or self.code not in (BlockCode.AGENTS_LIMITED, BlockCode.AGENTS_SPENT):
            return self.params.until
        return min((agent.params.until for agent in self.params.agents if agent.params.until is not None), default=None)

    @property
    def needs_person(self) -> bool:
        """True if it lasts until a person does something about it. Of several agents, all have to be like that. A task
        that it waits for is not taken into account, although that one may need a person."""
        if self.until is not None:
            return False
        if self.params.agents:
            return all(agent.needs_person for agent in self.params.agents)
        return self.code in _UNTIL_A_PERSON_ACTS


BlockParams.model_rebuild()


def blocked(code: BlockCode, **params: Any) -> Blocked:
    """Return the value. Raises TypeError for a parameter that the code does not have."""
    refuse_unknown(code, params, _allowed(code))
    return Blocked(code=code, params=BlockParams(**params))


@cache
def _allowed(code: BlockCode) -> frozenset[str]:
    return frozenset((*code.parameters, *_BESIDE))


def on_hold(
    agent: str,
    *,
    bucket: str,
    reason: Reason | None,
    until: int | None,
    provenance: Provenance,
    source: str,
    family: str | None = None,
    window: str | None,
    room: int | None = None,
    doubted: int | None = None,
) -> Blocked:
    """Return what a hold says about an agent. room: the hold's time is over and this many runs may start to test it;
    None while it is in force."""
    if room is not None:
        code, ends = BlockCode.PROBED, {"room": room if room > 0 else None}
    else:
        code, ends = BlockCode.HELD if until is None or reason is None else BlockCode.LIMITED, {"until": until}
    return blocked(
        code,
        **ends,
        agent=agent,
        bucket=bucket,
        reason=reason,
        provenance=provenance,
        source=source or None,
        family=family,
        window=window,
        doubted=doubted,
    )
