"""systemd unit files: the templates of this program, filled in for this installation."""

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
    """The service manager that runs the unit."""

    USER = "user"
    SYSTEM = "system"

    @property
    def edits(self) -> str:
        """The command to change the unit so that the change survives the unit's replacement."""
        return f"systemctl{' --user' if self is Manager.USER else ''} edit claudomator"


class DropIn(StrEnum):
    """An optional change to the unit."""

    CONFINED = "confined"
    DRAIN = "drain"
    STRICT = "strict"


@dataclass(frozen=True, slots=True)
class UnitFile:
    """A file to be written. path: without --root."""

    path: Path
    content: str


def unit(manager: Manager, folder: Path, config: Path) -> UnitFile:
    """Return the unit that starts this installation with that configuration. Raises ValueError for unprintable
    characters in a path."""
    template = _template(f"{manager}/{UNIT}")
    entries = dict.fromkeys(os.environ.get("PATH", os.defpath).split(":"))
    path = ":".join(entry for entry in entries if entry.startswith("/"))
    places = {
        "COMMAND": " ".join(_word(part) for part in command()),
        "CONFIG": _word(str(config)),
        "PATH": _specified(_escaped(path)),
    }
    return UnitFile(folder / UNIT, re.sub("@([A-Z]+)@", lambda match: places[match[1]], template))


def drop_in(name: DropIn, folder: Path) -> UnitFile:
    """Return the drop-in, for the unit in the folder."""
    return UnitFile(folder / f"{UNIT}.d" / f"{name}.conf", _template(f"drop-ins/{name}.conf"))


def is_as_shipped(manager: Manager, text: str) -> bool:
    """Return whether the unit is this version's, whatever its command, configuration and PATH."""
    literal = re.split("@[A-Z]+@", _template(f"{manager}/{UNIT}"))
    return re.fullmatch("[^\n]*".join(map(re.escape, literal)), text) is not None


def command() -> tuple[str, ...]:
    """Return the command that starts this installation from any working directory."""
    script = Path(sys.executable).parent / "claudomator"
    return (str(script),) if script.is_file() else (sys.executable, "-m", "claudomator_py")


def unreachable_program() -> str | None:
    """Return this installation's program if it is in a folder that the system unit hides; else None."""
    program = command()[0]
    return program if any(Path(program).resolve().is_relative_to(folder) for folder in _HIDDEN) else None


def user_config(home: Path) -> Path:
    """Return the folder of a user's configurations, by the XDG convention. home: the user's."""
    given = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    return given if given.is_absolute() else home / ".config"


def next_commands(manager: Manager, root: Path | None) -> list[str]:
    """Return the commands to run after the files are written."""
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
    """Return the folder of the templates: in the package, or beside it in a checkout."""
    packaged = resources.files("claudomator_py") / "systemd"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "systemd"


def _word(text: str) -> str:
    """Return the text as one word of ExecStart."""
    if _PLAIN.fullmatch(text):
        return text
    return f'"{_specified(_escaped(text)).replace("$", "$$")}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _specified(text: str) -> str:
    if not text.isprintable():
        raise ValueError(f"{text!r} is not allowed in a unit file")
    return text.replace("%", "%%")
