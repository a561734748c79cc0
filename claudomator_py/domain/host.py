"""A host: a place where runs execute. This machine is one, and needs no configuration."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from claudomator_py.domain.fields import Duration, Line, Name, Size, Strict, refusal
from claudomator_py.domain.shape import View
from claudomator_py.domain.units import DAY_MS, MINUTE_MS

LOCAL = "local"
"""Name of this machine among the hosts."""


SLURM_COMMANDS = ("sbatch", "squeue", "scancel", "sinfo")
"""Commands with which the daemon talks to Slurm."""


class HostType(StrEnum):
    """The engine that executes a host's runs."""

    SLURM = "slurm"


def _absolute(value: str) -> str:
    if not value.startswith("/"):
        raise refusal(f"`{value}` is not an absolute path", "name the folder as every node mounts it")
    return value


def _address(value: str) -> str:
    if value.startswith("-") or "::" in value:
        raise refusal(f"`{value}` is not an address of git's", "write it as for `git clone`: ssh://host/path")
    return value


class HostSpec(Strict):
    """A further place where runs may execute."""

    kind: HostType = Field(description="The engine that carries its runs: `slurm`.")
    root: Annotated[Line, AfterValidator(_absolute)] = Field(
        description="Folder of the run directories, on a file system that this machine and all nodes mount at this "
        "path. Locks, exclusive creation and renaming must hold across them."
    )
    partition: Line | None = Field(None, description="Slurm partition. Default: that of the cluster.")
    constraint: Line | None = Field(None, description="Features that a node must have, as for `sbatch --constraint`.")
    account: Line | None = Field(None, description="Slurm account that is charged. Default: the user's own.")
    qos: Line | None = Field(None, description="Quality of service, as for `sbatch --qos`.")
    python: Annotated[Line, AfterValidator(_absolute)] | None = Field(
        None, description="Python 3.11 or newer on the nodes. Default: the path of the daemon's own."
    )
    licenses: Mapping[Name, Line] = Field(
        {},
        max_length=100,
        description="By agent: the Slurm licence of which each of its runs takes one, such as `{claude: claude-max}`. "
        "Slurm then keeps the number, for all who use the cluster.",
    )
    clone: Mapping[Annotated[Line, AfterValidator(_absolute)], Annotated[Line, AfterValidator(_address)]] = Field(
        {},
        max_length=100,
        description="By folder: the git address at which nodes reach the repository that it is, or those that lie in "
        "it, where they do not see the folder itself, such as `{/home/ada/src: ssh://desk/home/ada/src}`. A task with "
        "`isolation: worktree` there has its job clone it, and push what it did back.",
    )
    scratch: Annotated[Line, AfterValidator(_absolute)] = Field(
        "/tmp",  # noqa: S108 - a folder of our own is created in it
        description="Folder on each node for such clones. They are removed with their job.",
    )
    shared_home: bool = Field(
        True,
        description="Whether the home directory, where agents keep conversations, is this machine's on all nodes. "
        "Otherwise no run there continues one: it begins afresh, with a note of what was done.",
    )
    time_margin: Duration = Field(
        10 * MINUTE_MS,
        le=DAY_MS,
        description="How much longer than a task's `timeout` Slurm lets its job live, so that the run's own limit "
        "comes first.",
    )


class HostNeeds(Strict):
    """What a node must have for a run, and reserves for it."""

    gpus: int | None = Field(None, ge=1, le=1_000, description="Number of GPUs.")
    cpus: int | None = Field(None, ge=1, le=10_000, description="Number of processors.")
    memory: Size | None = Field(None, ge=1 << 20, description="Memory, in whole MiB.")


class NodeView(View):
    """A node of a cluster that currently takes no runs."""

    name: str
    state: str
    """The engine's own word; ``avoided``: a job ended there before its run began, so no run is sent there for some
    minutes."""
    reason: str | None = None
    """The reason, if the engine gives one."""


class HostView(View):
    """A place where runs execute, in its current state."""

    name: str
    kind: str
    """``local``, or the engine that executes its runs."""
    live: int
    """Number of runs on it."""
    slots: int = 0
    """Number of runs that its agents may have on it at once: the sum of their `max_concurrent`."""
    agents: Mapping[str, int] = {}
    """Number of these by agent."""
    waits: Mapping[str, int] = {}
    """How many of these its engine has not placed yet, by reason."""
    nodes: Mapping[str, int] = {}
    """Number of its nodes, by state in the engine's own words."""
    cpus: int | None = None
    """Number of processors in its nodes; None if they are not known."""
    cpus_used: int | None = None
    """How many of them are allocated, to whatever jobs."""
    unusable: tuple[NodeView, ...] = ()
    """Nodes that take no runs."""
    version: str | None = None
    """Version of its engine."""
    clock_skew: float | None = None
    """Seconds by which the clock of a node differs at least from this machine's, as the times of the latest runs show;
    positive if it is ahead. None if nothing is known."""
    problem: str | None = None
    """Why its engine cannot be queried, or what it refused last."""
    drained: str | None = None
    """Why it takes no new runs, empty if no reason was given; None if it takes runs."""


def choose_host(allowed: Sequence[str], active: Mapping[str, int], waiting: Mapping[str, int]) -> str:
    """Return the host for a run: of the allowed ones that place their runs, the least active, then by name.

    active, waiting: how many runs each host has, and how many of these its engine has not placed yet. A host that
    refuses runs counts as having some waiting.
    """
    return min(allowed, key=lambda name: (waiting.get(name, 0) > 0, active.get(name, 0), name))
