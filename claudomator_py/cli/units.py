"""systemd's unit files: the templates that this program carries, filled in for this installation."""

import os
import re
import shlex
import sys
from enum import StrEnum
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from claudomator_py.values import dataclass, regex

UNIT = "claudomator.service"
SYSTEM_HOME = Path("/var/lib/claudomator")
_PLAIN = regex(r"[A-Za-z0-9_@+=:,./-]+")
_HIDDEN = (Path("/home"), Path("/root"), Path("/run/user"))


class Manager(StrEnum):
    """Whose service manager runs the unit."""

    USER = "user"
    SYSTEM = "system"

    @property
    def edits(self) -> str:
        """The command with which one changes the unit, so that the change outlives its replacement."""
        return f"systemctl{' --user' if self is Manager.USER else ''} edit claudomator"


class DropIn(StrEnum):
    """A change to the unit that an operator may want."""

    CONFINED = "confined"
    DRAIN = "drain"
    STRICT = "strict"


@dataclass(frozen=True, slots=True)
class UnitFile:
    """A file to be written: its place without any prefix, and its content."""

    path: Path
    content: str


def unit(manager: Manager, folder: Path, config: Path) -> UnitFile:
    """Return the unit that starts this installation with that configuration. Raises ValueError for a path with a line
    end."""
    template = _template(f"{manager}/{UNIT}")
    entries = dict.fromkeys(os.environ.get("PATH", os.defpath).split(":"))
    path = ":".join(entry for entry in entries if entry.startswith("/"))
    places = {
        "COMMAND": " ".join(_word(part) for part in command()),
        "CONFIG": _word(str(config)),
        "PATH": _specified(_escaped(path)),
    }
    return UnitFile(folder / UNIT, re.sub("@([A-Z]+)@", lambda found: places[found[1]], template))


def drop_in(name: DropIn, folder: Path) -> UnitFile:
    """Return that drop-in, for the unit in the folder."""
    return UnitFile(folder / f"{UNIT}.d" / f"{name}.conf", _template(f"drop-ins/{name}.conf"))


def is_as_shipped(manager: Manager, text: str) -> bool:
    """Return whether the unit is this version's, whatever stands in its places: command, configuration and PATH."""
    literal = re.split("@[A-Z]+@", _template(f"{manager}/{UNIT}"))
    return re.fullmatch("[^\n]*".join(map(re.escape, literal)), text) is not None


def command() -> tuple[str, ...]:
    """Return how this installation is started, wherever the working directory is."""
    script = Path(sys.executable).parent / "claudomator"
    return (str(script),) if script.is_file() else (sys.executable, "-m", "claudomator_py")


def unreachable_program() -> str | None:
    """Return the program of this installation, if the system unit hides the folder that it is in."""
    program = command()[0]
    return program if any(Path(program).resolve().is_relative_to(folder) for folder in _HIDDEN) else None


def next_commands(manager: Manager, root: Path | None) -> list[str]:
    """Return what to type after the files are written."""
    if root is not None:
        scope = " --global" if manager is Manager.USER else ""
        return [f"systemctl --root={shlex.quote(str(root))}{scope} enable claudomator"]
    if manager is Manager.USER:
        enable = ["systemctl --user daemon-reload", "systemctl --user enable --now claudomator"]
        return [*enable, "loginctl enable-linger   # it then runs without a login"]
    user = f"useradd --system --user-group --home-dir {SYSTEM_HOME} --shell /bin/bash claudomator   # once"
    return [user, "systemctl daemon-reload", "systemctl enable --now claudomator"]


def _template(name: str) -> str:
    return (_folder() / name).read_text(encoding="utf-8")


def _folder() -> Traversable:
    """In a wheel the templates lie in the package; in a checkout beside it."""
    packaged = resources.files("claudomator_py") / "systemd"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "systemd"


def _word(text: str) -> str:
    """The text as one word of ExecStart."""
    if _PLAIN.fullmatch(text):
        return text
    return f'"{_specified(_escaped(text)).replace("$", "$$")}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _specified(text: str) -> str:
    if not text.isprintable():
        raise ValueError(f"{text!r} is not allowed in a unit file")
    return text.replace("%", "%%")
