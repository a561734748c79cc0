"""Find the daemon, and the token for it.

Options come first, then ``CLAUDOMATOR_URL`` and ``CLAUDOMATOR_TOKEN``, then the configuration that is found, then this
user's only running daemon. If the configuration is broken, gone or elsewhere, the daemon's record leads to it
(``schema.configpath.DaemonRecord``): a faulty file never keeps a command from a running daemon. One rule says who gets
a token:

- The token in ``CLAUDOMATOR_TOKEN`` goes to the address in ``CLAUDOMATOR_URL``, and to the Unix socket of a daemon of
  this user. It never goes to an address that a file names.
- The token in a state folder goes to a process of this user, or root's, on this machine, and to nobody else.

So the contents of a folder, such as a checked-out repository or an archive, never decide where a token goes.
"""

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from claudomator_py.client import START_IT, ClientError, DaemonNotRunning, DiscoveryFailed, NotAuthorised, NotStarted
from claudomator_py.client.state_folder import StateFolder
from claudomator_py.schema.configpath import (
    CONFIG_VARIABLE,
    FILE_NAME,
    DaemonRecord,
    Unclear,
    config_bytes,
    configured_state_dir,
    digest_of,
    find_config,
    is_users_own,
    records_folder,
    state_folder,
)
from claudomator_py.values import dataclass

if TYPE_CHECKING:
    from claudomator_py.schema.configfile import LoadedConfig

URL_VARIABLE = "CLAUDOMATOR_URL"
TOKEN_VARIABLE = "CLAUDOMATOR_TOKEN"  # noqa: S105 - the name of a variable

_ENDPOINT_FILE = "endpoint"
_TOKEN_FILE = "token"  # noqa: S105 - the name of a file


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A daemon's URL and its token; None: none was found.

    own: the state folder of this user's daemon, whose token goes only to a process of this user, or root's; None: to
    whoever answers at the URL. socket: connect through the Unix socket in that folder.
    """

    url: str
    token: str | None
    own: Path | None = None
    socket: bool = False


def discover(config: Path | None, state_dir: Path | None, environ: Mapping[str, str], cwd: Path) -> Endpoint:
    """Return the daemon to talk to, without any network access.

    config, state_dir: as given on the command line. Raises DiscoveryFailed, NotStarted, NotAuthorised.
    """
    token = environ.get(TOKEN_VARIABLE) or None
    if config is None and state_dir is None and (url := environ.get(URL_VARIABLE)):
        _check_url(url, f"${URL_VARIABLE}")
        return _with_local_token(url, environ, cwd) if token is None else Endpoint(url, token)
    record = _meant(config, state_dir, environ, cwd)
    if token is None:
        return record
    if not record.socket:
        detail = f"{TOKEN_VARIABLE} is not sent to {record.url}, as only a file names that address."
        raise NotAuthorised(detail, remedy=f"Set {URL_VARIABLE} as well, if you trust that address with the token.")
    return replace(record, token=token)


def configuration(config: Path | None, environ: Mapping[str, str], cwd: Path) -> "LoadedConfig":
    """Return the command line's configuration; if none is named or found, that of this user's only running daemon.

    Raises DiscoveryFailed, also for another user's configuration.
    """
    # Late, as it imports the models of everything that can be configured, which most commands do not need.
    from claudomator_py.schema.configfile import ConfigError, load_config

    path = _trusted(config, environ, cwd)
    if path is None:
        running = [record for record in _records(environ) if _runs(record.state_dir)]
        path = running[0].config if len(running) == 1 else None
    try:
        return load_config(path, environ, cwd)
    except ConfigError as error:
        raise DiscoveryFailed(str(error), remedy="See `claudomator doctor`.") from error


def state_in_use(config: Path | None, state_dir: Path | None, environ: Mapping[str, str], cwd: Path) -> Path | None:
    """Return the state folder of the daemon that ``discover`` finds; None: it does not run."""
    with contextlib.suppress(ClientError):
        return _meant(config, state_dir, environ, cwd).own
    return None


def configuration_problem(state_dir: Path, environ: Mapping[str, str]) -> str | None:
    """Return the problems of the configuration file of the daemon that runs with that state folder; None: none.

    A line for each problem: file, line, field, remedy. A file that the daemon has found valid is not parsed.
    """
    record = next((candidate for candidate in _records(environ) if _is_same(candidate.state_dir, state_dir)), None)
    if record is None or record.config is None:
        return None
    try:
        if digest_of(config_bytes(record.config)) == record.digest:
            return None
    except OSError:
        pass  # load_config below reports it
    from claudomator_py.schema.configfile import ConfigError, load_config  # late, as in ``configuration``

    try:
        load_config(record.config, environ)
    except ConfigError as error:
        return str(error)
    return None


def _meant(config: Path | None, flag: Path | None, environ: Mapping[str, str], cwd: Path) -> Endpoint:
    """Return the endpoint of the daemon that is meant. Raises as ``discover``."""
    if flag is not None:
        return _announced(state_folder(flag, None, environ, cwd))
    records = _records(environ)
    path = _trusted(config, environ, cwd)
    gone = cwd / FILE_NAME
    if path != gone and not _is_named(config, environ) and _started_with(gone, records):
        path = gone
    try:
        configured = None if path is None else configured_state_dir(path, environ)
        folder = state_folder(None, configured, environ, cwd if path is None else path.parent)
        return _announced(folder)
    except Unclear:
        stopped = None
    except DaemonNotRunning as error:
        stopped = error
    running = (
        [record for record in records if _runs(record.state_dir)] if path is None else _started_with(path, records)
    )
    match running:
        case [only]:
            return _announced(only.state_dir)
        case [_, _, *_]:
            detail = f"Several daemons of this user are running: {_listed(running)}."
            raise DiscoveryFailed(detail, remedy="Choose one with --state-dir, or with --config if those differ.")
    if stopped is None:
        from claudomator_py.schema.configfile import resolve_state_dir  # late, as in ``configuration``

        loaded = configuration(config, environ, cwd)
        return _announced(resolve_state_dir(None, loaded.settings, environ, loaded.base_dir))
    if path is not None:
        configuration(config, environ, cwd)  # raises its problems, which would keep a daemon from starting as well
    raise _not_running(stopped, path, [record for record in records if _runs(record.state_dir)], environ)


def _not_running(
    stopped: DaemonNotRunning, path: Path | None, others: Sequence[DaemonRecord], environ: Mapping[str, str]
) -> DaemonNotRunning:
    """Return the error that no daemon was found, and where it was searched. others: this user's running daemons."""
    leads = "the default, since no configuration was found" if path is None else f"that of {path}"
    looked = f"{stopped.detail.removesuffix('.')} ({leads})"
    if others:
        detail = f"{looked}; this user runs another: {_listed(others)}."
        return type(stopped)(detail, remedy="Name that one with --state-dir, or start the one that you mean.")
    detail = f"{looked}, and no other daemon of this user is recorded in {records_folder(environ)}."
    return type(stopped)(detail, remedy=stopped.remedy)


def _records(environ: Mapping[str, str]) -> list[DaemonRecord]:
    """Return the records of this user's daemons, possibly including killed ones."""
    folder, records = records_folder(environ), []
    try:
        with StateFolder(folder) as opened:
            for path in sorted(folder.iterdir()):
                with contextlib.suppress(ClientError, OSError):
                    records.append(DaemonRecord.from_text(opened.read(path.name)))
    except (ClientError, OSError):
        return []
    return [record for record in records if record is not None]


def _started_with(config: Path, records: Sequence[DaemonRecord]) -> list[DaemonRecord]:
    """Return the records of running daemons that were started with that configuration file, which may be gone."""
    same = [record for record in records if record.config is not None and _is_same(record.config, config)]
    return [record for record in same if _runs(record.state_dir)]


def _is_same(path: Path, other: Path) -> bool:
    return os.path.realpath(path) == os.path.realpath(other)


def _runs(folder: Path) -> bool:
    """Return whether a daemon of this user, or root's, runs with that state folder."""
    try:
        with StateFolder(folder) as opened:
            return opened.has_listener() or opened.daemon_runs()
    except (ClientError, OSError):
        return False


def _listed(records: Sequence[DaemonRecord]) -> str:
    return ", ".join(
        f"{record.state_dir} ({'no configuration' if record.config is None else record.config})" for record in records
    )


def _trusted(config: Path | None, environ: Mapping[str, str], cwd: Path) -> Path | None:
    """Return the configuration that is found; None: there is none. Raises DiscoveryFailed for another user's."""
    path = find_config(config, environ, cwd)
    if path is not None and not _is_named(config, environ) and path.parent == cwd and not is_users_own(path):
        detail = f"{path} may have been written by another user, so it is not trusted."
        raise DiscoveryFailed(detail, remedy=f"Name it with --config if you trust it, or set {URL_VARIABLE}.")
    return path


def _is_named(config: Path | None, environ: Mapping[str, str]) -> bool:
    """Return whether the configuration was named, not just found."""
    return config is not None or bool(environ.get(CONFIG_VARIABLE))


def _announced(folder: Path) -> Endpoint:
    """Return the endpoint that the daemon of that state folder has announced, if it runs."""
    try:
        with StateFolder(folder) as opened:
            url = opened.read(_ENDPOINT_FILE)
            _check_url(url, str(folder / _ENDPOINT_FILE))
            socket = opened.has_listener()
            # Without either, it was killed or is of an earlier version, and anybody may listen at its URL.
            if not socket and not opened.daemon_runs():
                raise DaemonNotRunning(
                    f"The daemon that listened at {url} ended without notice, as when it is killed.", remedy=START_IT
                )
            return Endpoint(url, _token(opened), own=folder, socket=socket)
    except (FileNotFoundError, PermissionError):
        raise NotStarted(f"No daemon runs with the state folder {folder}.", remedy=START_IT) from None


def _with_local_token(url: str, environ: Mapping[str, str], cwd: Path) -> Endpoint:
    """Return that URL on this machine, with the token of this user's daemon, if there is one."""
    from claudomator_py.domain.remote import is_loopback  # late, as it imports pydantic

    if not is_loopback(urlsplit(url).hostname or ""):
        remedy = f"Set {TOKEN_VARIABLE} to the token in the file `token` of the daemon's state folder."
        raise NotAuthorised(f"{URL_VARIABLE} is on another machine, and there is no token for it.", remedy=remedy)
    try:
        return replace(_meant(None, None, environ, cwd), url=url, socket=False)
    except (ClientError, OSError):
        pass
    # No daemon is known to run, so whoever listens at the URL must prove to be a process of this user, or root's.
    try:
        path = _trusted(None, environ, cwd)
        configured = None if path is None else configured_state_dir(path, environ)
        with StateFolder(state_folder(None, configured, environ, cwd if path is None else path.parent)) as folder:
            return Endpoint(url, _token(folder), own=folder.path)
    except (ClientError, Unclear, OSError):
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
