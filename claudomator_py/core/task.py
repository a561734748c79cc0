"""What an operator wants: the task's specification as it is after parsing. Times are whole milliseconds."""

from enum import IntEnum, StrEnum
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from claudomator_py.core.agent import Tier
from claudomator_py.core.units import DAY_MS, MINUTE_MS, parse_duration

NAME_PATTERN = r"^[a-z0-9](?:[a-z0-9._-]{0,98}[a-z0-9])?$"
DEFAULT_TIMEOUT_MS = 60 * MINUTE_MS
DEFAULT_STALL_MS = 30 * MINUTE_MS


class Priority(IntEnum):
    """Order among the runnable. A waiting task gains one level per 24 hours."""

    LOW = 0
    NORMAL = 1
    HIGH = 2
    URGENT = 3

    @classmethod
    def parse(cls, name: str) -> "Priority":
        """The priority of that name. Raises KeyError."""
        return cls[name.upper()]

    @property
    def label(self) -> str:
        """The name as files and API write it."""
        return self.name.lower()


class OnLimit(StrEnum):
    """What a task does when its agent meets a limit."""

    FAILOVER = "failover"


class OnLost(StrEnum):
    """What a task does when a run was killed together with its supervisor."""

    FAIL = "fail"
    RETRY = "retry"


class PermissionMode(StrEnum):
    """How freely an agent may act."""

    DEFAULT = "default"
    ACCEPT_EDITS = "acceptEdits"
    PLAN = "plan"
    BYPASS = "bypassPermissions"


def _duration(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, str):
        raise ValueError("write a duration as a number and a unit, such as 90s, 45m, 2h or 1d")
    return parse_duration(value)


def _priority(value: object) -> object:
    if isinstance(value, str) and value in {level.label for level in Priority}:
        return Priority.parse(value)
    raise ValueError("write one of low, normal, high, urgent")


DURATION_SCHEMA = {"type": "string", "pattern": r"^(\d+(ms|s|m|h|d))+$", "examples": ["90s", "45m", "2h", "1d"]}
Duration = Annotated[int, BeforeValidator(_duration), WithJsonSchema(DURATION_SCHEMA)]
PriorityName = Annotated[
    Priority,
    BeforeValidator(_priority),
    WithJsonSchema({"type": "string", "enum": [level.label for level in Priority]}),
]


class Strict(BaseModel):
    """Base of the parts of a task: frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=False)


class AgentHint(Strict):
    """Where the operator would like it to run."""

    type: str | None = Field(None, description="An agent's name, else a kind; a hint that balancing may override.")
    tier: Tier | None = Field(None, description="How strong a model; given, nothing is asked.")
    model: str | None = Field(None, description="A model of the agent named by type; never passed to another kind.")
    strict: bool = Field(False, description="Wait for that agent rather than run elsewhere.")


class RetryPolicy(Strict):
    """Attempts in all, the first included, and the first pause between them; it doubles with each."""

    max_attempts: int = Field(3, ge=1, le=100, description="Attempts in all, the first included.")
    backoff: Duration = Field(MINUTE_MS, description="Pause before the second attempt; doubled for each further one.")


class Permissions(Strict):
    """What the agent may do, as far as its CLI can enforce it."""

    mode: PermissionMode = PermissionMode.DEFAULT
    allowed_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()


class TaskSpec(Strict):
    """One task, parsed and valid. ``extra`` holds the ``x-*`` keys, carried along and never interpreted."""

    name: str = Field(pattern=NAME_PATTERN, description="A slug; the file's stem if missing.")
    instructions: str = Field(min_length=1, max_length=1_000_000, description="What to do, in plain words.")
    working_dir: str | None = Field(None, description="Where it runs; missing: a scratch folder of the run.")
    agent: AgentHint = AgentHint()
    expected_output: str | None = Field(None, max_length=20_000, description="What to hand back.")
    priority: PriorityName = Priority.NORMAL
    depends_on: tuple[str, ...] = Field((), max_length=100, description="Names of tasks that must complete first.")
    not_before: AwareDatetime | None = Field(None, description="Earliest start, with an offset.")
    timeout: Duration = Field(DEFAULT_TIMEOUT_MS, gt=0, le=30 * DAY_MS, description="Longest time one run may take.")
    stall_timeout: Duration = Field(DEFAULT_STALL_MS, gt=0, le=30 * DAY_MS, description="Longest time without output and CPU use.")
    retry: RetryPolicy = RetryPolicy()
    on_limit: OnLimit = OnLimit.FAILOVER
    on_lost: OnLost = OnLost.FAIL
    max_turns: int | None = Field(None, ge=1, le=10_000)
    check: tuple[tuple[str, ...], ...] = Field((), max_length=50, description="Commands that all must exit 0.")
    permissions: Permissions = Permissions()
    env: dict[str, str] = Field(default_factory=dict)
    add_dirs: tuple[str, ...] = ()
    tags: tuple[str, ...] = Field((), max_length=50)
    extra: dict[str, object] = Field(default_factory=dict)
