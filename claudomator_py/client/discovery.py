"""Where the daemon is, and the token for it.

The flag ``--config`` wins, then ``CLAUDOMATOR_URL`` and ``CLAUDOMATOR_TOKEN``, then the configuration that is found. A
running daemon writes its URL and the operator's token into its state folder, for its own user alone; so what a folder
happens to contain, such as a checked-out repository, can never say where a token goes.
"""

import ipaddress
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from claudomator_py.client.errors import DiscoveryFailed, NotAuthorised, NotStarted
from claudomator_py.core.settings import Settings
from claudomator_py.documents.configfile import (
    ConfigError,
    LoadedConfig,
    find_config,
    is_users_own,
    load_config,
    resolve_state_dir,
)

URL_VARIABLE = "CLAUDOMATOR_URL"
TOKEN_VARIABLE = "CLAUDOMATOR_TOKEN"  # noqa: S105 - the name of a variable
CONFIG_VARIABLE = "CLAUDOMATOR_CONFIG"

_ENDPOINT_FILE = "endpoint"
_TOKEN_FILE = "token"  # noqa: S105 - the name of a file
_LONGEST = 2_048
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - mapped away from


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A daemon's URL, and the token that it takes; None: none was found."""

    url: str
    token: str | None


def discover(config: Path | None, state_dir: Path | None, environ: Mapping[str, str], cwd: Path) -> Endpoint:
    """The daemon to talk to; nothing is asked over the network.

    config, state_dir: as given on the command line. Raises DiscoveryFailed, NotStarted, NotAuthorised.
    """
    token = environ.get(TOKEN_VARIABLE) or None
    if config is None and state_dir is None and (url := environ.get(URL_VARIABLE)):
        _check_url(url, f"${URL_VARIABLE}")
        return Endpoint(url, token or _local_token(url, environ, cwd))
    loaded = configuration(config, environ, cwd)
    folder = resolve_state_dir(state_dir, loaded.settings, environ, loaded.base_dir)
    found = _announced(folder, loaded.settings)
    if found.token is None and token is not None and not _is_loopback(found.url):
        remedy = f"Set {URL_VARIABLE} as well, if you trust {found.url} with it."
        raise NotAuthorised(f"{TOKEN_VARIABLE} is not sent to a host that only a configuration names.", remedy=remedy)
    return Endpoint(found.url, token or found.token)


def configuration(config: Path | None, environ: Mapping[str, str], cwd: Path) -> LoadedConfig:
    """The configuration that the command line works with. Raises DiscoveryFailed; for one of another user, too."""
    path = find_config(config, environ, cwd)
    named = config is not None or bool(environ.get(CONFIG_VARIABLE))
    if path is not None and not named and path.parent == cwd and not is_users_own(path):
        detail = f"{path} can have been written by another user, so it is not believed."
        raise DiscoveryFailed(detail, remedy=f"Name it with --config if you trust it, or set {URL_VARIABLE}.")
    try:
        return load_config(path, environ, cwd)
    except ConfigError as error:
        raise DiscoveryFailed(str(error), remedy="See `claudomator doctor`.") from error


def _announced(folder: Path, settings: Settings) -> Endpoint:
    """What the daemon of that state folder says of itself."""
    try:
        url = _read_private(folder / _ENDPOINT_FILE)
    except FileNotFoundError:
        detail = f"No daemon runs with the state folder {folder}."
        remedy = f"Start it with `claudomator serve`, or set {URL_VARIABLE} to where it runs."
        raise NotStarted(detail, remedy=remedy) from None
    except PermissionError:
        # The daemon runs as another user; it is where the configuration says, and the token comes from elsewhere.
        return Endpoint(_url_of(settings), None)
    _check_url(url, str(folder / _ENDPOINT_FILE))
    try:
        return Endpoint(url, _read_private(folder / _TOKEN_FILE))
    except (FileNotFoundError, PermissionError):
        return Endpoint(url, None)


def _local_token(url: str, environ: Mapping[str, str], cwd: Path) -> str | None:
    """The token of this user's daemon, for a URL on this machine."""
    if not _is_loopback(url):
        remedy = f"Set {TOKEN_VARIABLE} to the token in the file `token` of the daemon's state folder."
        raise NotAuthorised(f"{URL_VARIABLE} names another machine, and there is no token for it.", remedy=remedy)
    try:
        loaded = configuration(None, environ, cwd)
        folder = resolve_state_dir(None, loaded.settings, environ, loaded.base_dir)
        return _read_private(folder / _TOKEN_FILE)
    except (DiscoveryFailed, OSError):
        return None


def _read_private(path: Path) -> str:
    """The line in a file that only this user, or root, can have written or read. Raises OSError, DiscoveryFailed."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        raise
    except OSError as error:
        raise _not_private(path, error.strerror or str(error)) from error
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise _not_private(path, "it is not a regular file")
        if found.st_uid not in (os.geteuid(), 0):
            raise _not_private(path, "it belongs to another user")
        if stat.S_IMODE(found.st_mode) & 0o077:
            raise _not_private(path, "other users can read or write it")
        return os.read(descriptor, _LONGEST).decode("utf-8", "replace").strip()
    finally:
        os.close(descriptor)


def _not_private(path: Path, why: str) -> DiscoveryFailed:
    return DiscoveryFailed(f"{path} is not believed: {why}.", remedy="Remove it and start the daemon again.")


def _check_url(url: str, source: str) -> None:
    try:
        parts = urlsplit(url)
        speaks_http = url.startswith(("http://", "https://"))
        good = speaks_http and bool(parts.hostname) and parts.port != 0 and not parts.username
    except ValueError:
        good = False
    if not good:
        raise DiscoveryFailed(f"{source} is no URL of a daemon: {url!r}.", remedy="Write http://127.0.0.1:8484.")


def _url_of(settings: Settings) -> str:
    host = _ANY_ADDRESS.get(settings.http.host, settings.http.host)
    return f"http://[{host}]:{settings.http.port}" if ":" in host else f"http://{host}:{settings.http.port}"


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
