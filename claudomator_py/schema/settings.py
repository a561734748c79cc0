"""The keys of the configuration, all of which are optional; ``configfile`` reads them."""

import re
from enum import StrEnum
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from claudomator_py.acts import Reach
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.budget import DayBudget
from claudomator_py.domain.errors import shown
from claudomator_py.domain.fields import (
    Count,
    Distinct,
    Duration,
    EnvName,
    Hosts,
    Line,
    LineList,
    Name,
    OneOrMore,
    Size,
    Strict,
    Words,
    refusal,
)
from claudomator_py.domain.host import HostSpec
from claudomator_py.domain.notice import NotifyTarget
from claudomator_py.domain.reserve import Reserve
from claudomator_py.domain.retention import Retention
from claudomator_py.domain.units import DAY_MS, MINUTE_MS, SECOND_MS
from claudomator_py.policy.rule import Rules
from claudomator_py.schema.agent_settings import SUPPORTED_KINDS
from claudomator_py.schema.concurrency import Concurrency
from claudomator_py.schema.routing_settings import LearningSettings, RoutingSettings
from claudomator_py.texts import json_hash


class LogFormat(StrEnum):
    """Text for people, or one JSON object per line."""

    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    """Minimum level to log."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class AfterAccept(StrEnum):
    """What happens to a task file once its tasks are stored."""

    KEEP = "keep"
    MOVE = "move"


class TypeHint(StrEnum):
    """How balancing treats a task's ``agent.type``."""

    PREFER = "prefer"
    IGNORE = "ignore"


class WhenAllLimited(StrEnum):
    """What happens while every agent that a task could run on is limited."""

    WAIT = "wait"
    TRY = "try"


class NearLimit(StrEnum):
    """How balancing treats an agent that is near a limit."""

    TIE_BREAK = "tie_break"
    AVOID = "avoid"
    IGNORE = "ignore"


class OnStop(StrEnum):
    """What happens to live runs when the daemon is asked to stop."""

    LEAVE = "leave"
    DRAIN = "drain"


def _database(value: str) -> str:
    if value == "sqlite" or value.startswith(("postgresql://", "postgresql+psycopg://")):
        return value
    # The value is not shown: a URL may contain a password.
    raise refusal("is not a known database", "write sqlite, or postgresql://user@host/name")


def _listen(value: object) -> object:
    host, colon, port = str(value).rpartition(":")
    if isinstance(value, str) and colon and host and re.fullmatch("[0-9]{1,5}", port) and int(port) < 65_536:
        return value
    raise refusal(f"`{shown(str(value))}` is not an address", "write host:port, such as 127.0.0.1:8484 or [::1]:8484")


_TRACES = "/v1/traces"
"""Path below the base URL, as in OTLP."""


def _collector(value: str) -> str:
    url = urlsplit(value)
    if url.scheme not in ("http", "https") or not url.hostname or any(c.isspace() for c in value):
        # The value is not shown: it may contain a password.
        raise refusal("is not the URL of a collector", "write http://host:4318")
    if url.username is not None or url.query or url.fragment:
        raise refusal("has more than an address", "name a variable in headers_env for what the collector wants to know")
    return value


def _account(value: str) -> str:
    kind, _, account = value.partition("/")
    if kind in SUPPORTED_KINDS and account:
        return value
    raise refusal(f"`{shown(value)}` names no account", "write kind/account, such as gemini/default")


def _unix_names(value: object) -> object:
    """Return the names of users or groups, which may be given as numbers."""
    listed = value if isinstance(value, list | tuple) else [value]
    return [str(name) if isinstance(name, int) and not isinstance(name, bool) else name for name in listed]


UnixNames = Annotated[
    tuple[Line, ...],
    Field(max_length=100),
    OneOrMore,
    Distinct,
    BeforeValidator(_unix_names),
]


class Inbox(Strict):
    """The watched folders."""

    paths: Annotated[LineList, Field(min_length=1)] = Field(
        ("tasks",), description="Folders to watch. Created if missing."
    )
    after_accept: AfterAccept = Field(
        AfterAccept.KEEP,
        description="What to do with a file once its tasks are stored: keep it, or move it into `.accepted/`.",
    )
    trusted_users: UnixNames = Field(
        (),
        description="Users, by name or number, whose files are accepted in addition to those of the daemon's own user "
        "and of root; an inbox that anyone else can write to is not read.",
    )
    trusted_groups: UnixNames = Field(
        (), description="Groups, by name or number, that may write to an inbox; the files of their members are taken."
    )


class Http(Strict):
    """Where the API listens."""

    listen: Annotated[Line, BeforeValidator(_listen)] = Field(
        "127.0.0.1:8484", description="Host and port. Port 0 picks a free one."
    )
    allowed_hosts: Hosts = Field(
        (),
        description="Additional host names to accept, such as that of a reverse proxy. A name with a port is accepted "
        "with that port only.",
    )

    @property
    def host(self) -> str:
        """The host, without the brackets of an IPv6 address."""
        return self.listen.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The port; 0 for any free one."""
        return int(self.listen.rpartition(":")[2])


class ClassifierKind(StrEnum):
    """How a cheap model is asked for a tier."""

    NONE = "none"
    GEMINI_API = "gemini-api"
    OPENAI = "openai"
    GEMINI_CLI = "gemini-cli"


_CLASSIFIER_MODELS = {
    ClassifierKind.GEMINI_API: "gemini-3.5-flash-lite",
    ClassifierKind.GEMINI_CLI: "gemini-3.5-flash-lite",
    ClassifierKind.OPENAI: "gpt-6-luna",
}
_CLASSIFIER_KEYS = {ClassifierKind.GEMINI_API: "GEMINI_API_KEY", ClassifierKind.OPENAI: "OPENAI_API_KEY"}


class Classifier(Strict):
    """The classifier that is asked for a task's tier while the task waits."""

    kind: ClassifierKind = Field(
        ClassifierKind.NONE, description="How to reach the classifier, a cheap model; `none`: do not classify."
    )
    model: Line | None = Field(None, description="The model to ask. Default: depends on the kind.")
    base_url: Line | None = Field(None, description="Base URL of the service. Default: its public address.")
    api_key_env: EnvName | None = Field(
        None, description="Environment variable that holds the key. Default: GEMINI_API_KEY or OPENAI_API_KEY, by kind."
    )
    command: Words = Field(("gemini",), description="The program to run, for kind `gemini-cli` only.")
    timeout: Duration = Field(
        5 * SECOND_MS, ge=100, le=5 * MINUTE_MS, description="Maximum time a task waits for the answer."
    )
    account: Annotated[Line, AfterValidator(_account)] | None = Field(
        None,
        description="The agent account that the classifier shares, as holds name it, such as `gemini/default`: a limit "
        "of one is then a limit of the other. Default: a separate account.",
    )

    @property
    def model_name(self) -> str:
        """The model to ask; empty for kind ``none``."""
        return self.model or _CLASSIFIER_MODELS.get(self.kind, "")

    @property
    def shared_account(self) -> tuple[str, str] | None:
        """Kind and account of the agents with which it shares limits; None if it shares them with none."""
        kind, slash, account = (self.account or "").partition("/")
        return (kind, account) if slash else None

    @property
    def key_variable(self) -> str | None:
        """The variable with the key; None if no key is used."""
        return self.api_key_env or _CLASSIFIER_KEYS.get(self.kind)


class Balancing(Strict):
    """How an agent is chosen."""

    type_hint: TypeHint = Field(TypeHint.PREFER, description="How balancing treats a task's `agent.type`.")
    when_all_limited: WhenAllLimited = Field(
        WhenAllLimited.WAIT,
        description="When every agent that could take a task is limited: wait for the earliest reset, or try anyway.",
    )
    near_limit: NearLimit = Field(
        NearLimit.TIE_BREAK,
        description="How to treat an agent whose account has warned of a limit: it loses ties, is avoided while "
        "another is free, or is treated like any other.",
    )
    prefer_wait: Duration = Field(
        2 * MINUTE_MS,
        le=DAY_MS,
        description="How long a task waits for a free slot on the agent that its `agent.type` prefers, before another "
        "takes it; 0s: not at all.",
    )
    reserve: Annotated[tuple[Reserve, ...], Field(max_length=100), OneOrMore] = Field(
        (),
        description="Shares of accounts' windows that are kept for a person at certain hours: tasks wait, or go to "
        "another agent, and say so.",
    )


class Limits(Strict):
    """Limits on every run."""

    output_cap: Size = Field(
        256 * 2**20, ge=2**20, le=2**40, description="Output to keep per stream of a run. The middle is dropped first."
    )
    grace: Duration = Field(
        10 * SECOND_MS, le=DAY_MS, description="Time between SIGTERM and SIGKILL when ending a run."
    )
    linger: Duration = Field(
        20 * SECOND_MS,
        le=DAY_MS,
        description="How long an agent's program may stay after its last word before it is ended. The run's outcome "
        "is what it said.",
    )
    background_idle: Duration = Field(
        2 * MINUTE_MS,
        le=DAY_MS,
        description="How long what an agent left in the background, such as a server, may neither write nor compute "
        "anything before it is ended, and the run with it, once the agent's turn is over.",
    )
    min_free: Size = Field(
        512 * 2**20,
        le=2**50,
        description="Start no runs while the disk of the state folder has less free space than this.",
    )
    subtasks: Count = Field(5, ge=0, le=1_000, description="Maximum number of tasks that a run may create.")


class TelemetrySettings(Strict):
    """Where spans are sent."""

    endpoint: Annotated[Line, AfterValidator(_collector)] | None = Field(
        None,
        description="Base URL of a collector that takes OTLP over HTTP, such as http://127.0.0.1:4318; needs the extra "
        "`otel`. Default: no spans are made.",
    )
    headers_env: EnvName | None = Field(
        None,
        description="Environment variable of the daemon that holds headers for the collector, such as "
        "`authorization=Bearer%20KEY`; separated by commas, values URL-encoded.",
    )
    service_name: Line = Field("claudomator", description="The `service.name` of the spans.")

    @property
    def traces_url(self) -> str | None:
        """URL to which spans are posted; None if they are not exported."""
        return None if self.endpoint is None else f"{self.endpoint.rstrip('/').removesuffix(_TRACES)}{_TRACES}"


def _time_of_day(value: object) -> object:
    if isinstance(value, str) and re.fullmatch("([01]?[0-9]|2[0-3]):[0-5][0-9]", value):
        return value.zfill(5)
    raise refusal(f"`{shown(str(value))}` is not a time of day", 'write it with quotation marks, such as "07:00"')


class DailyReport(Strict):
    """A daily report to the notification targets whose `events` include `report`."""

    at: Annotated[Line, BeforeValidator(_time_of_day)] | None = Field(
        None, description='Time of day, such as "07:00". Default: no report is sent.'
    )
    timezone: Annotated[Line, Field(max_length=100)] | None = Field(
        None, description="Time zone of `at`, such as Europe/Berlin. Default: that of `budget`, or of this machine."
    )


class Log(Strict):
    """The daemon's log, on its standard error."""

    format: LogFormat = Field(LogFormat.TEXT, description="Text for people, or one JSON object per line.")
    level: LogLevel = Field(LogLevel.INFO, description="Minimum level to log.")


class SettingsKeys(Strict):
    """The keys that a file may have in addition to ``agents``."""

    inbox: Inbox = Inbox()
    state_dir: Line | None = Field(
        None,
        description="Folder of the database, the runs and the token. Default: $STATE_DIRECTORY, or else the XDG "
        "state home.",
    )
    database: Annotated[Line, AfterValidator(_database)] = Field(
        "sqlite", description="`sqlite` for a file in the state folder, or `postgresql://user@host/name`."
    )
    workdir_roots: LineList = Field(
        (), description="Folders that must contain `working_dir` and `add_dirs` of every task. Default: no restriction."
    )
    http: Http = Http()
    hosts: dict[Name, HostSpec] = Field(
        {},
        max_length=100,
        description="Further places where runs may take place, by name. This machine is always there, as `local`.",
    )
    reach: Reach = Field(
        Reach.NETWORK,
        description="How far runs of routed tasks may act that name neither `reach` nor `permissions`: `tree`, within "
        "the working directory; `network`, also fetch and install; `publish`, also act on others; `any`, without a "
        "fence. Agents that cannot be kept to it run without a fence, and `why` says so.",
    )
    concurrency: Concurrency = Concurrency()
    balancing: Balancing = Balancing()
    classifier: Classifier = Classifier()
    routing: RoutingSettings = RoutingSettings()
    learning: LearningSettings = LearningSettings()
    policy: Rules = Field((), description="Rules on what tasks may do, asked in order before any model sees a task.")
    shadow: Line | None = Field(
        None,
        description="Another configuration file, which decides about the same tasks without acting: its agents, limits "
        "on concurrency, routing and policy are compared with these. Relative to the folder of this file.",
    )
    limits: Limits = Limits()
    budget: DayBudget = DayBudget()
    retention: Retention = Retention()
    telemetry: TelemetrySettings = TelemetrySettings()
    log: Log = Log()
    on_stop: OnStop = Field(
        OnStop.LEAVE,
        description="On SIGTERM: `leave` runs to their supervisors and exit, or `drain`: wait for them to finish.",
    )
    report: DailyReport = DailyReport()
    notify: dict[Name, NotifyTarget] = Field({}, max_length=100, description="Notification targets, by name.")


class Settings(SettingsKeys):
    """The configuration. agents_configured: True if it has the key ``agents``; otherwise the agents found on PATH are
    used. reach_configured: True if it sets ``reach``; otherwise that is the default."""

    agents: dict[str, AgentSpec] = Field(default_factory=dict)
    agents_configured: bool = False
    reach_configured: bool = False


def settings_hash(settings: Settings) -> str:
    """Return the SHA-256 of the settings in hexadecimal."""
    return json_hash(settings.model_dump(mode="json"))
