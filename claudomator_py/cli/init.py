"""``init``: write a first configuration, and a first task or the unit of a service. Existing files are kept.

A host's entry in the configuration is a sample with the cluster's own partitions, features and licences.
"""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from claudomator_py.cli import exists
from claudomator_py.cli.output import fail, note, out
from claudomator_py.cli.units import (
    SYSTEM_HOME,
    DropIn,
    Manager,
    UnitFile,
    drop_in,
    next_commands,
    unit,
    unreachable_program,
    user_config,
)

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


_SAMPLES = Path(__file__).with_name("samples")
_TASKS = "tasks"
_CONFIG = "claudomator.yaml"
PRIVATE_UMASK = 0o077
READABLE_UMASK = 0o022


def init(
    directory: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR]",
            help="Folder to write to, created if missing. [default: the current folder; with --systemd, where the "
            "service looks]",
        ),
    ] = None,
    systemd: Annotated[
        Manager | None,
        typer.Option(help="Write a systemd unit with its configuration: for this user or the system."),
    ] = None,
    drop_ins: Annotated[
        list[DropIn] | None,
        typer.Option("--drop-in", help="With --systemd: add this drop-in to the unit. Repeatable."),
    ] = None,
    root: Annotated[
        Path | None, typer.Option(metavar="DIR", help="With --systemd: write below this folder, as for an image.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="With --systemd: replace a unit that differs.")] = False,
    host: Annotated[
        HostKind | None,
        typer.Option(
            help="Add a commented sample for a cluster, from what its `sinfo` says; shown if the file exists."
        ),
    ] = None,
) -> None:
    """Write a configuration and a first task, or a service.

    Writes claudomator.yaml and tasks/hello.yaml; existing files are not changed. With --systemd, writes the
    configuration of a service, its unit and its drop-ins instead.
    """
    more = "" if host is None else host_sample()
    if host is not None and systemd is not None:
        raise typer.BadParameter("--host cannot be combined with --systemd")
    if systemd is not None:
        _service(systemd, directory, drop_ins or [], root, force=force)
        return
    if drop_ins or root is not None or force:
        raise typer.BadParameter("--drop-in, --root and --force require --systemd")
    with _modes_of(PRIVATE_UMASK):
        is_new = not exists((directory or Path()) / _CONFIG)
        written = _sample(directory or Path(), Path(), more)
    if more and not is_new:
        out(more)
    _warn_of_exposure((directory or Path()) / _TASKS)
    if is_new and exists((directory or Path()) / ".git"):
        note("Tasks cannot work in this repository while the inbox and the state folder are in it; use another folder.")
    if written:
        place = "" if directory in (None, Path()) else f"cd {directory} && "
        note(f"Review them, then start with: {place}claudomator serve")


@contextmanager
def _modes_of(umask: int) -> Iterator[None]:
    """Create files and folders with this umask, not the user's: whoever can write to them controls the daemon."""
    former = os.umask(umask)
    try:
        yield
    finally:
        os.umask(former)


def _warn_of_exposure(tasks: Path) -> None:
    """Warn if the daemon will not read the folder because of how it, or one above it, was created before."""
    from claudomator_py.schema.settings import Inbox
    from claudomator_py.schema.trust import InboxGuard

    try:
        exposed = InboxGuard(Inbox()).folder(str(tasks.absolute()))
    except OSError:
        return
    if exposed is not None:
        note(f"The daemon will not read {tasks}: {exposed}.")


def _installed_comments() -> str:
    """Return comments for the agents on PATH that are used only if they are configured."""
    from claudomator_py.resources.agents.cli import installed_agents

    there = [agent for agent in installed_agents() if agent.entry]
    return "".join(f"#   {agent.entry}    # {agent.title}, found on PATH\n" for agent in there)


def _read(sample: str) -> str:
    return (_SAMPLES / sample).read_text(encoding="utf-8")


def _sample(directory: Path, prefix: Path, more: str = "") -> bool:
    """Return whether anything was written. more: the end of the configuration."""
    written = [
        path
        for path, content in (
            (
                prefix / directory / _CONFIG,
                _read("claudomator.yaml").replace("@FOUND@", _installed_comments()) + (more and f"\n{more}"),
            ),
            (prefix / directory / _TASKS / "hello.yaml", _read("hello.yaml")),
        )
        if _write_new(path, content)
    ]
    for path in written:
        out(str(path))
    return bool(written)


def _service(
    manager: Manager, directory: Path | None, drop_ins: list[DropIn], root: Path | None, *, force: bool
) -> None:
    if DropIn.STRICT in drop_ins and manager is Manager.USER:
        fail("A user's service manager cannot enforce `strict`.", "Use the system unit for it.")
    if DropIn.CONFINED in drop_ins and manager is Manager.SYSTEM:
        fail("The system unit is confined already.", "Use `strict` for more.")
    units = _units_folder(manager, below_root=root is not None)
    config = (directory.absolute() if directory is not None else _config_folder(manager)) / _CONFIG
    try:
        files = [unit(manager, units, config), *(drop_in(name, units) for name in drop_ins)]
    except ValueError as error:
        fail(f"{error}.", "Rename the folder.")
    placed = [UnitFile(_below(root, file.path), file.content) for file in files]
    _refuse_changed(manager, placed, force=force)
    # Not private for the system or an image, whose service manager and service user must read the files.
    with _modes_of(PRIVATE_UMASK if manager is Manager.USER and root is None else READABLE_UMASK):
        if directory is not None:
            _sample(_below(root, directory.absolute()), Path())
        elif _write_new(_below(root, config), _service_config(manager)):
            out(str(_below(root, config)))
        for file in placed:
            _write(file)
            out(str(file.path))
    if directory is not None and root is None and manager is Manager.USER:
        _warn_of_exposure(directory.absolute() / _TASKS)
    if manager is Manager.SYSTEM and (program := unreachable_program()) is not None:
        note(f"{program} is in a folder that the unit hides from the service: install it elsewhere, such as in /opt.")
    note("Next:")
    for command in next_commands(manager, root):
        note(f"  {command}")


def _units_folder(manager: Manager, *, below_root: bool) -> Path:
    """Return the user's own folder, which only the user's service manager reads; in an image, that of all users."""
    if manager is Manager.SYSTEM:
        return Path("/etc/systemd/system")
    return Path("/etc/systemd/user") if below_root else user_config(Path.home()) / "systemd" / "user"


def _config_folder(manager: Manager) -> Path:
    return Path("/etc/claudomator") if manager is Manager.SYSTEM else user_config(Path.home()) / "claudomator"


def _service_config(manager: Manager) -> str:
    inbox, state = "~/claudomator-tasks", "~/.local/state/claudomator"
    if manager is Manager.SYSTEM:
        inbox, state = str(SYSTEM_HOME / "tasks"), str(SYSTEM_HOME / "state")
    return _read("service.yaml").replace("@INBOX@", inbox).replace("@STATE@", state)


def _below(root: Path | None, path: Path) -> Path:
    return path if root is None else root / path.relative_to("/")


def _refuse_changed(manager: Manager, files: list[UnitFile], *, force: bool) -> None:
    for file in files:
        try:
            there = file.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", error)
            fail(f"{file.path} cannot be read: {why}.", "Review or remove it.")
        if there != file.content and not force:
            remedy = f"Change it with `{manager.edits}` instead, or replace it with --force."
            fail(f"{file.path} already exists with different content; nothing was written.", remedy)


def _write(file: UnitFile) -> None:
    try:
        file.path.parent.mkdir(parents=True, exist_ok=True)
        file.path.write_text(file.content, encoding="utf-8")
    except OSError as error:
        fail(f"{file.path} cannot be written: {error.strerror}.", "Run it as a user who may, or choose a --root.")


def _write_new(path: Path, content: str) -> bool:
    """Write a new file, and return whether it was written; an existing one is kept."""
    try:
        if path.parent.name == _TASKS and path.parent.is_dir():
            note(f"{path.parent} already exists; not changed.")
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(content)
    except OSError as error:
        if exists(path):
            note(f"{path} already exists; not changed.")
            return False
        fail(f"{path} cannot be written: {error.strerror}.", "Choose another folder, or fix its permissions.")
    return True
