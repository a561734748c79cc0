"""Where the configuration is, who owns it, and which state folder it leads to: what a command that talks to the daemon
needs.

The rest of the configuration, which says how a daemon works, is handled by ``schema.configfile``.
"""

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

from claudomator_py.values import dataclass

FILE_NAME = "claudomator.yaml"
CONFIG_VARIABLE = "CLAUDOMATOR_CONFIG"
_SYSTEM = Path("/etc/claudomator") / FILE_NAME

_MAX_PATH_LENGTH: Final = 4_096

KEYS: Final = frozenset({
    "agents", "balancing", "budget", "classifier", "concurrency", "database", "hosts", "http", "inbox", "learning",
    "limits", "log", "notify", "on_stop", "policy", "report", "retention", "reach", "routing", "shadow", "state_dir",
    "telemetry", "workdir_roots",
})  # fmt: skip
"""The keys that a configuration may have."""


def find_config(explicit: Path | None, environ: Mapping[str, str], cwd: Path) -> Path | None:
    """Return the absolute path of the configuration file to use; None if there is none.

    In this order: the one named, ``$CLAUDOMATOR_CONFIG``, the working directory, the user's own, the system's. A named
    file is returned whether or not it exists, so that loading it reports what is wrong.
    """
    if explicit is not None:
        return cwd / expand_home(explicit, environ)
    if named := environ.get(CONFIG_VARIABLE):
        return cwd / expand_home(Path(named), environ)
    own = _xdg(environ, "XDG_CONFIG_HOME", ".config") / "claudomator" / FILE_NAME
    return next((path for path in (cwd / FILE_NAME, own, _SYSTEM) if os.path.isfile(path)), None)  # noqa: PTH113 - Path raises behind a closed folder


def config_bytes(path: Path) -> bytes:
    """Return the contents of the file, truncated if it is too large for a configuration. Raises OSError."""
    from claudomator_py.schema.yamltext import MAX_BYTES  # many homes have no file

    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of these bytes of a configuration in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


class Unclear(Exception):
    """Only the complete configuration can tell which state folder it leads to, or what is wrong with it."""


def configured_state_dir(path: Path, environ: Mapping[str, str]) -> Path | None:
    """Return the configuration's ``state_dir`` as an absolute path; None if it has none. Reads nothing else. Raises
    Unclear if that cannot be read, or is absent while there is an unknown key that may be meant to be this one."""
    from claudomator_py.schema.yamlfaults import BadText  # many homes have no file
    from claudomator_py.schema.yamltext import decode, read_documents

    try:
        documents = read_documents(decode(config_bytes(path)))
    except (OSError, BadText) as error:
        raise Unclear from error
    value = documents[0].value if len(documents) == 1 else None
    if not isinstance(value, dict):
        raise Unclear
    if "state_dir" not in value:
        if not value.keys() <= KEYS:
            raise Unclear
        return None
    state_dir = value["state_dir"]
    if not isinstance(state_dir, str) or not 0 < len(state_dir) <= _MAX_PATH_LENGTH or not state_dir.isprintable():
        raise Unclear
    return Path(os.path.normpath(path.parent / expand_home(Path(state_dir), environ)))


def state_folder(flag: Path | None, configured: Path | None, environ: Mapping[str, str], base_dir: Path) -> Path:
    """Return the state folder as an absolute path: from the flag (relative to the working directory), the
    configuration, ``$STATE_DIRECTORY`` or XDG."""
    if flag is not None:
        return Path.cwd() / expand_home(flag, environ)
    if configured is not None:
        return base_dir / expand_home(configured, environ)
    # For a unit with several state directories systemd lists them all, separated by colons.
    if given := environ.get("STATE_DIRECTORY", "").split(":")[0]:
        return base_dir / given
    return _xdg(environ, "XDG_STATE_HOME", ".local/state") / "claudomator"


@dataclass(frozen=True, slots=True)
class DaemonRecord:
    """A daemon's record in ``records_folder``, through which a command finds the daemon without its configuration.

    It names a state folder and nothing that a command would trust: address and token are read from that folder once a
    daemon is known to run there.
    """

    state_dir: Path
    config: Path | None
    """The configuration file with which the daemon was started; None if there was none."""
    digest: str | None
    """Digest, by ``digest_of``, of the file's bytes when they were last found to be valid."""

    def to_text(self) -> str:
        """Return the record as JSON."""
        config = None if self.config is None else str(self.config)
        return json.dumps({"state_dir": str(self.state_dir), "config": config, "digest": self.digest})

    @classmethod
    def from_text(cls, text: str) -> Self | None:
        """Return the record that ``to_text`` wrote; None for any other text."""
        try:
            data = json.loads(text)
            state_dir, config, digest = data["state_dir"], data["config"], data["digest"]
        except (ValueError, KeyError, TypeError):
            return None
        if not isinstance(state_dir, str) or not all(
            entry is None or isinstance(entry, str) for entry in (config, digest)
        ):
            return None
        return cls(Path(state_dir), None if config is None else Path(config), digest)


def records_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder in which each of this user's daemons has a record while it runs."""
    return _xdg(environ, "XDG_STATE_HOME", ".local/state") / "claudomator-daemons"


def is_users_own(path: Path, uid: int | None = None) -> bool:
    """Return whether only this user (or root) can have written the file: otherwise no URL or token may be taken from
    it."""
    owner = os.geteuid() if uid is None else uid
    try:
        statuses = (path.lstat(), path.stat())
    except OSError:
        return False
    own = all(status.st_uid in (owner, 0) for status in statuses)
    return own and stat.S_ISREG(statuses[1].st_mode) and not statuses[1].st_mode & stat.S_IWOTH


def expand_home(path: Path, environ: Mapping[str, str]) -> Path:
    """Return the path with a leading ``~`` replaced by the user's home."""
    return _home(environ).joinpath(*path.parts[1:]) if path.parts[:1] == ("~",) else path


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ["HOME"]) if environ.get("HOME") else Path.home()


def _xdg(environ: Mapping[str, str], variable: str, default: str) -> Path:
    """The folder that the variable names; relative paths must be ignored according to the XDG specification."""
    given = Path(environ.get(variable, ""))
    return given if given.is_absolute() else _home(environ) / default
