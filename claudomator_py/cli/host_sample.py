"""A sample of a host's entry in the configuration, with the cluster's own partitions, features and licences."""

import re
import subprocess
from collections.abc import Iterator
from enum import StrEnum

from claudomator_py.cli.output import fail

_PATIENCE_S = 15.0
_WIDTH = 34

_SAMPLE = """\
# Runs on a cluster, carried by Slurm. What `sinfo` showed here:
{partitions}
# hosts:
#   cluster:
#     kind: slurm
{entries}
#
# Which agents work there; `local` is this machine. Uncomment this once the folder exists, then: claudomator doctor
# agents:
#   claude: {{hosts: [local, cluster], max_concurrent: 8}}
"""


class HostKind(StrEnum):
    """The kinds of hosts with a sample."""

    SLURM = "slurm"


def host_sample() -> str:
    """Return the entry as comments. Asks Slurm; if that fails, prints why and exits."""
    rows = [line.split("|") for line in _ask("sinfo", "--noheader", "--format=%P|%D|%c|%m|%G|%l|%f").splitlines()]
    partitions = "\n".join(f"#   {_partition(*row)}" for row in rows if len(row) == _COLUMNS)
    chosen = next((row[0].rstrip("*") for row in rows if row[0].endswith("*")), rows[0][0] if rows else "agents")
    features = sorted({feature for row in rows for feature in row[-1].split(",") if feature not in ("", "(null)")})
    licences = re.findall(r"LicenseName=(\S+)", _ask("scontrol", "show", "licenses"))
    entries = (
        ("root: /srv/claudomator/runs", "a folder that all nodes and this machine mount at this path"),
        (f"partition: {chosen}", "default: the cluster's own"),
        (f"constraint: {features[0] if features else 'gpu'}", _known("features that a node must have", features)),
        ("account: lab", "who is charged; default: your own"),
        ("qos: night", "quality of service"),
        (f"licenses: {{claude: {licences[0] if licences else 'claude-max'}}}", _known("one for each run", licences)),
        ("time_margin: 10m", "how much longer than the task's timeout its job may live"),
    )
    sample = "\n".join(f"#     {entry:<{_WIDTH}} # {about}" for entry, about in entries)
    return _SAMPLE.format(partitions=partitions, entries=sample)


_COLUMNS = 7


def _partition(name: str, nodes: str, cpus: str, memory: str, resources: str, limit: str, features: str) -> str:
    """Return ``agents* (default): 2 nodes of 4 CPUs and 1024 MiB, gpu:1; limit 1-00:00:00; features docker``."""

    def of() -> Iterator[str]:
        yield f"{name.rstrip('*')}{' (default)' if name.endswith('*') else ''}: {nodes} nodes"
        yield f" of {cpus} CPUs and {memory} MiB"
        if resources != "(null)":
            yield f", {resources}"
        yield f"; limit {limit}"
        if features != "(null)":
            yield f"; features {features}"

    return "".join(of())


def _known(what: str, known: list[str]) -> str:
    return f"{what}: {', '.join(known)}" if known else f"{what}; the cluster has none"


def _ask(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        fail(f"{command[0]} is not on PATH.", "Install Slurm's client (slurm-client), and its slurm.conf.")
    except (OSError, subprocess.TimeoutExpired) as fault:
        fail(f"{command[0]} does not answer: {fault}.", "See `sinfo`, and the log of slurmctld.")
    if done.returncode != 0:
        fail(" ".join(done.stderr.split()), "See `sinfo`, and the log of slurmctld.")
    return done.stdout
