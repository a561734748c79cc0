"""Where the daemon is, and the token for it.

The flag ``--config`` wins, then ``CLAUDOMATOR_URL`` and ``CLAUDOMATOR_TOKEN``, then the configuration that is found.
Who is sent a token follows one rule:

- The token in ``CLAUDOMATOR_TOKEN`` goes to the address in ``CLAUDOMATOR_URL``, and to the Unix socket of a daemon of
  this user. It never goes to an address that a file names.
- The token in a state folder goes to a process of this user, or root's, on this machine, and to nobody else.

So what a folder happens to contain, such as a checked-out repository or an archive, can never say where a token goes.
"""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from claudomator_py.client.errors import DaemonNotRunning, DiscoveryFailed, NotAuthorised, NotStarted
from claudomator_py.client.state_folder import StateFolder
from claudomator_py.schema.configpath import (
    CONFIG_VARIABLE,
    Unclear,
    find_config,
    is_users_own,
    state_dir_told,
    state_folder,
)

if TYPE_CHECKING:
    from claudomator_py.schema.configfile import LoadedConfig

URL_VARIABLE = "CLAUDOMATOR_URL"
TOKEN_VARIABLE = "CLAUDOMATOR_TOKEN"  # noqa: S105 - the name of a variable

_START_IT = f"Start it with `claudomator serve`, or set {URL_VARIABLE} to where it runs."
_ENDPOINT_FILE = "endpoint"
_TOKEN_FILE = "token"  # noqa: S105 - the name of a file


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A daemon's URL, and the token that it takes; None: none was found.

    own: the state folder of this user's daemon; then nobody but a process of this user, or root's, may be sent the
    token. None: whoever answers at the URL. socket: the daemon is asked over the Unix socket in that folder.
    """

    url: str
    token: str | None
    own: Path | None = None
    socket: bool = False


def discover(config: Path | None, state_dir: Path | None, environ: Mapping[str, str], cwd: Path) -> Endpoint:
    """The daemon to talk to; nothing is asked over the network.

    config, state_dir: as given on the command line. Raises DiscoveryFailed, NotStarted, NotAuthorised.
    """
    token = environ.get(TOKEN_VARIABLE) or None
    if config is None and state_dir is None and (url := environ.get(URL_VARIABLE)):
        _check_url(url, f"${URL_VARIABLE}")
        return _with_local_token(url, environ, cwd) if token is None else Endpoint(url, token)
    found = _announced(_state_folder(config, state_dir, environ, cwd))
    if token is None:
        return found
    if not found.socket:
        detail = f"{TOKEN_VARIABLE} is not sent to {found.url}, which is only named by a file."
        raise NotAuthorised(detail, remedy=f"Set {URL_VARIABLE} as well, if you trust that address with the token.")
    return replace(found, token=token)


def configuration(config: Path | None, environ: Mapping[str, str], cwd: Path) -> "LoadedConfig":
    """The configuration that the command line works with. Raises DiscoveryFailed; for one of another user, too."""
    # With the models of all that can be configured, of which who only asks the daemon needs none.
    from claudomator_py.schema.configfile import ConfigError, load_config

    path = _trusted(config, environ, cwd)
    try:
        return load_config(path, environ, cwd)
    except ConfigError as error:
        raise DiscoveryFailed(str(error), remedy="See `claudomator doctor`.") from error


def _state_folder(config: Path | None, flag: Path | None, environ: Mapping[str, str], cwd: Path) -> Path:
    """The state folder of the daemon that is meant. Raises as ``configuration`` does, but for what is wrong with the
    rest of a configuration that says clearly where it is."""
    path = _trusted(config, environ, cwd)
    try:
        told = None if path is None else state_dir_told(path, environ)
    except Unclear:
        from claudomator_py.schema.configfile import resolve_state_dir  # see ``configuration``

        loaded = configuration(config, environ, cwd)
        return resolve_state_dir(flag, loaded.settings, environ, loaded.base_dir)
    return state_folder(flag, told, environ, cwd if path is None else path.parent)


def _trusted(config: Path | None, environ: Mapping[str, str], cwd: Path) -> Path | None:
    """The configuration that is found; None: there is none. Raises DiscoveryFailed for one of another user."""
    path = find_config(config, environ, cwd)
    named = config is not None or bool(environ.get(CONFIG_VARIABLE))
    if path is not None and not named and path.parent == cwd and not is_users_own(path):
        detail = f"{path} may have been written by another user, so it is not trusted."
        raise DiscoveryFailed(detail, remedy=f"Name it with --config if you trust it, or set {URL_VARIABLE}.")
    return path


def _announced(folder: Path) -> Endpoint:
    """What the daemon of that state folder says of itself, if one runs."""
    try:
        with StateFolder(folder) as opened:
            url = opened.read(_ENDPOINT_FILE)
            _check_url(url, str(folder / _ENDPOINT_FILE))
            socket = opened.has_listener()
            # Else it is of an earlier version, or was killed, and then anybody may listen at its URL.
            if not socket and not opened.daemon_runs():
                raise DaemonNotRunning(f"The daemon that listened at {url} was killed.", remedy=_START_IT)
            return Endpoint(url, _token(opened), own=folder, socket=socket)
    except (FileNotFoundError, PermissionError):
        raise NotStarted(f"No daemon runs with the state folder {folder}.", remedy=_START_IT) from None


def _with_local_token(url: str, environ: Mapping[str, str], cwd: Path) -> Endpoint:
    """That URL on this machine, with the token of this user's daemon, if there is one."""
    if not _is_loopback(url):
        remedy = f"Set {TOKEN_VARIABLE} to the token in the file `token` of the daemon's state folder."
        raise NotAuthorised(f"{URL_VARIABLE} is on another machine, and there is no token for it.", remedy=remedy)
    try:
        with StateFolder(_state_folder(None, None, environ, cwd)) as folder:
            return Endpoint(url, _token(folder), own=folder.path)
    except (DiscoveryFailed, NotAuthorised, OSError):
        return Endpoint(url, None)


def _token(folder: StateFolder) -> str | None:
    try:
        return folder.read(_TOKEN_FILE)
    except (FileNotFoundError, PermissionError):
        return None


def _check_url(url: str, source: str) -> None:
    try:
        parts = urlsplit(url)
        speaks_http = url.startswith(("http://", "https://"))
        good = speaks_http and bool(parts.hostname) and parts.port != 0 and not parts.username
    except ValueError:
        good = False
    if not good:
        raise DiscoveryFailed(f"{source} is not the URL of a daemon: {url!r}.", remedy="Write http://127.0.0.1:8484.")


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
