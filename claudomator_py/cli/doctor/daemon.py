"""The daemon and its service: whether it answers and is ready, its clock, and its systemd unit."""

import getpass
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from claudomator_py.cli.connect import connect
from claudomator_py.cli.doctor import Finding, ok, problem, warn
from claudomator_py.cli.times import localized, now_ms
from claudomator_py.cli.units import UNIT, Manager, is_as_shipped, user_config
from claudomator_py.client import ClientError, NotStarted
from claudomator_py.domain.health import CheckView
from claudomator_py.resources.agents import AgentView
from claudomator_py.schema.agent_settings import FOUND_KINDS, default_agent, no_agent_message
from claudomator_py.values import regex

MAX_APART_S = 10.0


def daemon_findings(config: Path | None, state_dir: Path | None) -> tuple[list[Finding], list[AgentView] | None]:
    """Return findings about the daemon, and the agents as it sees them, with its own PATH; None: it did not answer."""
    try:
        with connect(config, state_dir) as client:
            readiness = client.readiness()
            agents = client.agents()
            theirs_s = client.server_time()
    except NotStarted as error:
        return [warn("daemon", error.detail, error.remedy)], None
    except ClientError as error:
        return [problem("daemon", error.detail, error.remedy)], None
    verdict = ok("daemon", f"{client.base_url} is ready")
    if not readiness.ready:
        detail = f"{client.base_url} is not ready"
        verdict = problem("daemon", detail, "Fix the failing daemon checks below.")
    return [verdict, *map(_inside, readiness.checks), same_time(theirs_s, time.time())], agents


def same_time(theirs_s: float | None, ours_s: float) -> Finding:
    """Compare the clocks. theirs_s: the daemon's Unix time; None: not reported."""
    name = "daemon's clock"
    if theirs_s is None:
        return ok(name, "not reported")
    apart_s = theirs_s - ours_s
    if abs(apart_s) <= MAX_APART_S:
        return ok(name, "agrees with this machine's")
    how = "ahead of" if apart_s > 0 else "behind"
    detail = f"is {abs(apart_s):.0f} s {how} this machine's"
    return warn(name, detail, "Synchronise both clocks with a time server; displayed ages and times are wrong.")


def _inside(check: CheckView) -> Finding:
    name = f"daemon: {check.name}"
    detail = localized(check.detail, now_ms())
    if check.ok:
        return ok(name, detail)
    judge = problem if check.blocking else warn
    return judge(name, detail, check.remedy or "Check the daemon's log.")


# Both of systemd's ways to quote an assignment.
_PATH = regex(r"""^Environment=["']?PATH=(.*?)["']?\s*$""", re.MULTILINE)
LINGER = Path("/var/lib/systemd/linger")


def service_findings(
    home: Path, root: Path = Path("/"), user: str | None = None, *, agents_configured: bool = False
) -> Iterator[Finding]:
    """Yield findings about the installed units. home: of the user whose service manager may run it. root: of the file
    system.

    agents_configured: whether agents are configured, so that none is searched on a unit's PATH.
    """
    checks = [
        (manager, folder / UNIT)
        for manager, folders in (
            (Manager.USER, (user_config(home) / "systemd" / "user", root / "etc/systemd/user")),
            (Manager.SYSTEM, (root / "etc/systemd/system",)),
        )
        for folder in folders
        if (folder / UNIT).is_file()
    ]
    if not checks:
        yield ok("service", "no unit is installed; `claudomator init --systemd user` writes one")
    for manager, path in checks:
        yield _unit(manager, path)
        if not agents_configured:
            yield from _agents_of(manager, path)
    if any(manager is Manager.USER for manager, _ in checks):
        yield _linger(user or getpass.getuser(), root / LINGER.relative_to("/"))


def _unit(manager: Manager, path: Path) -> Finding:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return warn("service", f"{path} cannot be read: {error}", "Fix its permissions or its encoding.")
    if is_as_shipped(manager, text):
        return ok("service", str(path))
    remedy = (
        f"Put changes into `{manager.edits}`, then: claudomator init --systemd {manager} --force. "
        "A unit of an older version lacks what this version relies on."
    )
    return warn("service", f"{path} differs from the one this version ships", remedy)


def _agents_of(manager: Manager, unit: Path) -> Iterator[Finding]:
    """Yield a warning if the service finds no agent: its PATH is the unit's, not a shell's."""
    path = None
    for file in (unit, *sorted(unit.with_name(f"{unit.name}.d").glob("*.conf"))):
        try:
            paths = _PATH.findall(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            continue
        path = paths[-1] if paths else path
    if path is not None and not any(shutil.which(default_agent(kind).command[0], path=path) for kind in FOUND_KINDS):
        remedy = (
            f"Set PATH with `{manager.edits}`, or name the agents' programs under agents; "
            "until then, tasks that name no agent wait."
        )
        yield warn("service PATH", no_agent_message(path), remedy)


def _linger(user: str, folder: Path) -> Finding:
    if (folder / user).exists():
        return ok("linger", f"on for {user}: the service runs without a login")
    remedy = f"Run: loginctl enable-linger {user}"
    return warn("linger", f"off for {user}: the service ends when the last session does", remedy)
