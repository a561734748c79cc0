"""What an operator wants: a task's specification after parsing. Times are whole milliseconds.

Each field accepts what a task file contains and serialises to the same:
``TaskSpec.model_validate(spec.model_dump(mode="json"))`` yields an equal spec.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from enum import IntEnum, StrEnum
from typing import Annotated, Any
from unicodedata import category

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BeforeValidator,
    Field,
    PlainSerializer,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)

from claudomator_py.acts import Reach
from claudomator_py.domain.agent import Tier
from claudomator_py.domain.budget import Budget
from claudomator_py.domain.cron import BadCron, parse_cron
from claudomator_py.domain.errors import Problem, shown, suggestion
from claudomator_py.domain.fields import (
    MAX_NAME_LENGTH,
    Commands,
    Count,
    Directory,
    Distinct,
    Duration,
    Environment,
    Flag,
    Line,
    Name,
    OneOrMore,
    Prose,
    Ref,
    Strict,
    TextUse,
    Tools,
    refusal,
    without_control,
)
from claudomator_py.domain.host import LOCAL, HostNeeds
from claudomator_py.domain.schedule import STAMP_LENGTH, CatchUp, Overlap, fire_name
from claudomator_py.domain.units import DAY_MS, MINUTE_MS
from claudomator_py.domain.worktree import Isolation
from claudomator_py.values import regex

DEFAULT_TIMEOUT_MS = 60 * MINUTE_MS
DEFAULT_STALL_MS = 30 * MINUTE_MS


class Priority(IntEnum):
    """Order among runnable tasks. A waiting task gains one level per 24 hours."""

    LOW = 0
    NORMAL = 1
    HIGH = 2
    URGENT = 3

    @classmethod
    def parse(cls, name: str) -> "Priority":
        """Return the priority with that name. Raises KeyError."""
        return cls[name.upper()]

    @property
    def label(self) -> str:
        """The name used in files and the API."""
        return self.name.lower()


_LABELS = {level.label: level for level in Priority}


class OnLimit(StrEnum):
    """What a task does when its agent meets a limit."""

    FAILOVER = "failover"
    WAIT = "wait"
    FAIL = "fail"


class OnLost(StrEnum):
    """What a task does when a run was killed together with its supervisor."""

    FAIL = "fail"
    RETRY = "retry"


class OnInput(StrEnum):
    """What a task does when its agent asks a question or is denied a tool."""

    WAIT = "wait"
    DENY = "deny"


class PermissionMode(StrEnum):
    """How freely an agent may act."""

    DEFAULT = "default"
    ACCEPT_EDITS = "acceptEdits"
    PLAN = "plan"
    BYPASS = "bypassPermissions"


def _needs(value: object) -> object:
    if isinstance(value, (str, list)):
        remedy = "write such as `needs: {cpus: 4}`, or `depends_on` for tasks that must complete first"
        raise refusal("is about what a node must have", remedy)
    return value


def _priority(value: object) -> object:
    if isinstance(value, Priority):
        return value
    if isinstance(value, str):
        if value in _LABELS:
            return _LABELS[value]
        raise refusal(f"`{shown(value)}` is not a priority", suggestion(value, list(_LABELS)))
    raise refusal("is not a priority", f"write one of {', '.join(_LABELS)}")


def _instant(value: object) -> object:
    remedy = "write it with an offset, such as 2026-12-01T08:00:00+01:00 or 2026-12-01T07:00:00Z"
    try:
        at = datetime.fromisoformat(value.strip()) if isinstance(value, str) else value
    except ValueError:
        raise refusal(f"`{shown(str(value))}` is not a time", remedy) from None
    if not isinstance(at, datetime):
        raise refusal("is not a time", remedy)
    if at.tzinfo is None:
        raise refusal("does not say in which time zone", remedy)
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise refusal("is out of range", remedy) from None


def _is_left_out(field: str, info: ValidationInfo) -> bool:
    """Return whether the document lacks the field. One that was refused is no longer in the data, and not left out."""
    return info.data.get(field, "") is None


def _cron(value: str) -> str:
    try:
        parse_cron(value)
    except BadCron as bad:
        raise refusal(str(bad), bad.remedy) from None
    return " ".join(value.split())


PriorityName = Annotated[
    Priority,
    BeforeValidator(_priority),
    PlainSerializer(lambda level: level.label, return_type=str),
    WithJsonSchema({"type": "string", "enum": [level.label for level in Priority]}),
]
Instant = Annotated[
    AwareDatetime,
    BeforeValidator(_instant),
    PlainSerializer(lambda at: at.isoformat().replace("+00:00", "Z"), return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}[Tt ].*([Zz]|[+-]\d{2}:?\d{2})$"}),
]


def _with_letters(text: str) -> str:
    """Return the text. Raises PydanticCustomError for one of nothing that can be seen, such as zero-width spaces."""
    if all(letter.isspace() or category(letter) == "Cf" for letter in text):
        raise refusal("has no character that can be seen", "write what to do")
    return text


MAX_INSTRUCTIONS_LENGTH = 1_000_000
"""Maximum characters of a task's instructions."""
Instructions = Annotated[
    str,
    TextUse.PROSE,
    Field(min_length=1, max_length=MAX_INSTRUCTIONS_LENGTH, pattern=r"\S"),
    AfterValidator(without_control),
    AfterValidator(_with_letters),
    AfterValidator(str.rstrip),
]
Tags = Annotated[tuple[Line, ...], Field(max_length=50), OneOrMore, Distinct]


class AgentHint(Strict):
    """Where the operator would like the task to run."""

    type: Line | None = Field(None, description="Name of an agent, or else a kind. A hint that balancing may override.")
    tier: Tier | None = Field(None, description="Model strength. If set, the classifier is not asked.")
    model: Line | None = Field(None, description="A model of the agent named by `type`. Never passed to another agent.")
    strict: Flag = Field(False, description="Wait for that agent instead of running elsewhere. Requires `type`.")

    @field_validator("model")
    @classmethod
    def _model_of_an_agent(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and _is_left_out("type", info):
            raise refusal("requires an agent", "add `type`, or write `tier` instead, which any agent has")
        return value

    @field_validator("strict")
    @classmethod
    def _strict_about_an_agent(cls, value: bool, info: ValidationInfo) -> bool:
        if value and _is_left_out("type", info):
            raise refusal("does not say for which agent", "add `type`, or remove `strict`")
        return value


class RetryPolicy(Strict):
    """Maximum number of attempts, including the first, and the pause after the first, which doubles with each
    attempt."""

    max_attempts: Count = Field(3, ge=1, le=100, description="Total number of attempts, including the first.")
    backoff: Duration = Field(
        MINUTE_MS, le=7 * DAY_MS, description="Pause before the second attempt. Doubles with each further attempt."
    )


PLAIN_TOOL = regex(r"[\w*-]+")
"""A bare tool name, without its permitted use."""


class Permissions(Strict):
    """What the agent may do, as far as its CLI can enforce it."""

    mode: PermissionMode = Field(PermissionMode.DEFAULT, description="How freely the agent may act.")
    tools: Tools | None = Field(
        None,
        description="The only tools the agent has, as its CLI names them; an empty list leaves it none. They are not "
        "allowed by being named. Default: all that the CLI has.",
    )
    allowed_tools: Tools = Field((), description="Tools the agent may use without asking, as its CLI names them.")
    disallowed_tools: Tools = Field((), description="Tools the agent may not use, as its CLI names them.")


class TaskSpec(Strict):
    """One task, parsed and valid. ``extra`` holds the ``x-*`` keys, which are kept but never interpreted."""

    name: Name = Field(
        description="Lower-case letters, digits, `-`, `_` and `.`. Default: the file name without its suffix."
    )
    instructions: Instructions = Field(description="What to do, in plain words.")
    working_dir: Directory | None = Field(
        None, description="Where the task runs; starts with / or ~/. Default: a scratch folder for the run."
    )
    host: Name | None = Field(
        None,
        description="Where the task runs: `local` for this machine, or one of the configured `hosts`. Only agents that "
        "may run there take it. Default: one of the agent's hosts.",
    )
    needs: Annotated[HostNeeds | None, BeforeValidator(_needs)] = Field(
        None,
        description="What a node must have for the task's runs, as for `{gpus: 1, cpus: 4, memory: 16GiB}`. Only "
        "clusters of `hosts` can keep it for them, so no run takes place on this machine.",
    )
    agent: AgentHint = Field(AgentHint(), description="Preferred agent and model strength.")
    specialist: Name | None = Field(
        None, description="The specialist who does it, by the id of its card. Default: the task is routed by its text."
    )
    skill: Annotated[Line, Field(max_length=100)] | None = Field(
        None, description="The skill asked of the specialist, by its id. Requires `specialist`."
    )
    requires: Tags = Field((), description="Capabilities that the specialist must have, such as `gpu`.")
    expected_output: Prose | None = Field(None, max_length=20_000, description="What to hand back.")
    priority: PriorityName = Field(
        Priority.NORMAL,
        description="Order among the tasks that could run. A waiting task gains a level every 24 hours.",
    )
    depends_on: Annotated[tuple[Name, ...], Field(max_length=100), OneOrMore, Distinct] = Field(
        (), description="Names of tasks that must complete first."
    )
    continues: Name | None = Field(
        None,
        description="A task that must complete first. This task continues its conversation, in the same directory.",
    )
    schedule: Annotated[Line, AfterValidator(_cron)] | None = Field(
        None,
        description="Cron expression: minute, hour, day of month, month, day of week.",
    )
    timezone: Annotated[Line, Field(max_length=100)] | None = Field(
        None, description="Time zone of `schedule`, such as Europe/Berlin. Default: the zone of the daemon's machine."
    )
    overlap: Overlap = Field(
        Overlap.SKIP, description="What to do when the schedule fires while one of its tasks has not ended."
    )
    catch_up: CatchUp = Field(
        CatchUp.SKIP,
        description="What to do about times that passed while no daemon ran. `all` requires `overlap: queue`.",
    )
    not_before: Instant | None = Field(None, description="Earliest start, as RFC 3339 with an offset.")
    timeout: Duration = Field(DEFAULT_TIMEOUT_MS, gt=0, le=30 * DAY_MS, description="Maximum duration of a run.")
    stall_timeout: Duration = Field(
        DEFAULT_STALL_MS,
        gt=0,
        le=30 * DAY_MS,
        description="Maximum time a run may neither write output nor use the processor.",
    )
    retry: RetryPolicy = Field(RetryPolicy(), description="When and how often to retry a failed run.")
    on_limit: OnLimit = Field(
        OnLimit.FAILOVER,
        description="At a limit, or when a day's budget is spent: move to another agent, wait and continue the same "
        "conversation, or fail.",
    )
    on_lost: OnLost = Field(
        OnLost.FAIL,
        description="What to do when a run was killed together with its supervisor, or by a foreign signal.",
    )
    on_input: OnInput = Field(
        OnInput.WAIT,
        description="When the agent asks a question or is denied a tool: wait for a person, or accept the run as it "
        "is.",
    )
    expires: Duration | None = Field(
        None,
        gt=0,
        le=365 * DAY_MS,
        description="How long it may wait for a person; after that it fails with `expired`. Default: any time.",
    )
    approval: Flag = Field(False, description="Require approval before the first run.")
    isolation: Isolation = Field(
        Isolation.NONE,
        description="`worktree`: run on a separate branch, in a separate work tree of the git repository that contains "
        "`working_dir`.",
    )
    base: Ref | None = Field(
        None,
        description="Where its work tree begins: a branch, tag or task of `depends_on`. Default: where that one ended.",
    )
    commit: Flag = Field(False, description="Commit what a success leaves uncommitted in its work tree.")
    budget: Budget = Field(Budget(), description="Budget of the task across all of its runs, including restarts.")
    max_turns: Count | None = Field(
        None, ge=1, le=10_000, description="Maximum number of turns in a run, for agents whose CLI can enforce it."
    )
    background: Flag | None = Field(
        None,
        description="Whether the agent may leave commands and subagents in the background and set itself wake-ups, if "
        "its CLI can. Default: as the agent is configured, which is no.",
    )
    check: Annotated[Commands, Field(max_length=50)] = Field(
        (),
        description="Commands that must all exit 0 for the task to succeed, one a line. Split into words; no shell is "
        "used.",
    )
    permissions: Permissions = Field(Permissions(), description="What the agent may do.")
    env: Environment = Field(
        {},
        max_length=200,
        description="Environment variables for the agent; put values in quotes. Do not put secrets here: use the "
        "agent's `pass_env`.",
    )
    reach: Reach | None = Field(
        None,
        description="How far its runs may act: `tree`, within the working directory; `network`, also fetch and "
        "install; `publish`, also act on others; `any`, without a fence. Default: as the configuration says, and `any` "
        "with `permissions` of its own.",
    )
    add_dirs: Annotated[tuple[Directory, ...], Field(max_length=50), OneOrMore, Distinct] = Field(
        (), description="Additional folders the agent may use. The rules for `working_dir` apply."
    )
    tags: Tags = Field((), description="Labels to find the task by.")
    extra: dict[str, Any] = Field({}, description="The `x-*` keys: stored, never interpreted.")

    @field_validator("skill")
    @classmethod
    def _skill_of_a_specialist(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and _is_left_out("specialist", info):
            raise refusal("does not say whose", "add `specialist`, or leave out `skill`")
        return value

    @field_validator("needs")
    @classmethod
    def _kept_by_a_cluster(cls, value: HostNeeds | None, info: ValidationInfo) -> HostNeeds | None:
        if value is not None and info.data.get("host") == LOCAL:
            raise refusal("cannot be kept for a run on this machine", "remove it, or name a cluster as `host`")
        return value

    @field_validator("isolation")
    @classmethod
    def _isolated_from_a_folder(cls, value: Isolation, info: ValidationInfo) -> Isolation:
        if value is Isolation.WORKTREE and _is_left_out("working_dir", info):
            raise refusal("does not say of which repository", "add `working_dir`, or leave out `isolation`")
        return value

    @field_validator("base", "commit")
    @classmethod
    def _of_a_work_tree(cls, value: Any, info: ValidationInfo) -> Any:
        if value and info.data.get("isolation", Isolation.WORKTREE) is Isolation.NONE:
            # A task that continues another one works in its tree without naming either.
            lacking = "" if info.data.get("working_dir") else "`working_dir` and "
            remedy = f"add {lacking}`isolation: worktree`, or remove it"
            raise refusal("is about a work tree, and there is none", remedy)
        return value

    @field_validator("depends_on")
    @classmethod
    def _not_after_itself(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if info.data.get("name") in value:
            raise refusal("names the task itself, which would wait forever", "remove its own name")
        return value

    @field_validator("continues")
    @classmethod
    def _not_itself(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and info.data.get("name") == value:
            raise refusal("names the task itself, which would wait forever", "name another task, or remove it")
        return value

    @field_validator("schedule")
    @classmethod
    def _short_enough(cls, value: str | None, info: ValidationInfo) -> str | None:
        longest = MAX_NAME_LENGTH - STAMP_LENGTH
        if value is not None and len(info.data.get("name", "")) > longest:
            raise refusal("makes tasks whose names would be too long", f"shorten `name` to {longest} characters")
        return value

    @field_validator("timezone", "catch_up", "overlap")
    @classmethod
    def _of_a_schedule(cls, value: Any, info: ValidationInfo) -> Any:
        if value not in (None, CatchUp.SKIP, Overlap.SKIP) and _is_left_out("schedule", info):
            raise refusal("is about times, and there is no schedule", "add `schedule`, or remove it")
        if value is CatchUp.ALL and info.data.get("overlap") is Overlap.SKIP:
            raise refusal("would skip all but the first, as that has not ended", "add `overlap: queue`")
        if value is CatchUp.ALL and info.data.get("overlap") is Overlap.REPLACE:
            raise refusal("would replace all but the last, as none of them has begun", "write `overlap: queue`")
        return value

    @property
    def not_before_ms(self) -> int | None:
        """The earliest start, in epoch milliseconds."""
        return None if self.not_before is None else int(self.not_before.timestamp() * 1000)

    @property
    def isolated_dir(self) -> str | None:
        """The working directory, if the task has a work tree of its own of its repository."""
        return self.working_dir if self.isolation is Isolation.WORKTREE else None

    @property
    def prerequisites(self) -> tuple[str, ...]:
        """The names of all tasks that must complete first, including the one it continues."""
        return self.depends_on if self.continues is None else tuple(dict.fromkeys((*self.depends_on, self.continues)))

    def extended(self, words: str) -> "TaskSpec":
        """Return the task with the words appended to its instructions."""
        return self.model_copy(update={"instructions": f"{self.instructions.rstrip()}\n\n{words}"}) if words else self

    def fired(self, at_ms: int) -> "TaskSpec":
        """Return the task for one time of this task's schedule."""
        once = {"schedule": None, "timezone": None, "catch_up": CatchUp.SKIP, "overlap": Overlap.SKIP}
        return self.model_copy(update={"name": fire_name(self.name, at_ms), **once})


def cycle_problem(cycle: Sequence[str], specs: Iterable[TaskSpec]) -> Problem:
    """Return the problem with tasks that depend on each other. cycle: their names, the first one again at the end."""
    return Problem(
        field="depends_on" if any(spec.depends_on for spec in specs) else "continues",
        message=f"these tasks would wait for each other forever: {' -> '.join(cycle)}",
        remedy="remove one of these dependencies",
    )
