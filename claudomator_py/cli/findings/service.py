"""The service: whether a unit of systemd is installed, as shipped, and whether it runs without a login."""

import getpass
import os
from collections.abc import Iterator
from pathlib import Path

from claudomator_py.cli.findings.finding import Finding, ok, warn
from claudomator_py.cli.units import UNIT, Manager, is_as_shipped

LINGER = Path("/var/lib/systemd/linger")


def service_findings(home: Path, root: Path = Path("/"), user: str | None = None) -> Iterator[Finding]:
    """The units found. home: of the user whose service manager may run it. root: of the file system."""
    found = [
        (manager, folder / UNIT)
        for manager, folders in (
            (Manager.USER, (_config(home) / "systemd" / "user", root / "etc/systemd/user")),
            (Manager.SYSTEM, (root / "etc/systemd/system",)),
        )
        for folder in folders
        if (folder / UNIT).is_file()
    ]
    if not found:
        yield ok("service", "no unit is installed; `claudomator init --systemd user` writes one")
    for manager, path in found:
        yield _unit(manager, path)
    if any(manager is Manager.USER for manager, _ in found):
        yield _linger(user or getpass.getuser(), root / LINGER.relative_to("/"))


def _config(home: Path) -> Path:
    given = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    return given if given.is_absolute() else home / ".config"


def _unit(manager: Manager, path: Path) -> Finding:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return warn("service", f"{path} cannot be read: {error}", "Look at it.")
    if is_as_shipped(manager, text):
        return ok("service", str(path))
    remedy = (
        f"Put changes into `systemctl edit claudomator`, then: claudomator init --systemd {manager} --force. "
        "A unit of an older version misses what this one relies on."
    )
    return warn("service", f"{path} is not as this version ships it", remedy)


def _linger(user: str, folder: Path) -> Finding:
    if (folder / user).exists():
        return ok("linger", f"on for {user}: the service runs without a login")
    remedy = f"Run: loginctl enable-linger {user}"
    return warn("linger", f"off for {user}: the service ends when the last session does", remedy)
