"""The variables of a run: what it has of the daemon's, credentials of systemd, and the run's own token.

A variable in the environment of a service is seen by everything it starts; a file in ``$CREDENTIALS_DIRECTORY`` becomes
the variable of that name only for whom the configuration passes it on to.
"""

import hashlib
import hmac
import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.task import TaskSpec

BASE = frozenset(
    {"HOME", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER", "LANG", "LANGUAGE"}
    | {"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"}
    | {"NODE_EXTRA_CA_CERTS", "SSL_CERT_DIR", "SSL_CERT_FILE"}
)
BASE_PREFIX = "LC_"


def environment(
    daemon: Mapping[str, str], agent: AgentSpec, task: TaskSpec, launch: Mapping[str, str], own: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables of a run. Later ones win: base, passed on, the launch's, the agent's, the task's, our
    own."""
    return {**_base(daemon, agent), **launch, **agent.env, **task.env, **own}


def agent_environment(daemon: Mapping[str, str], agent: AgentSpec) -> dict[str, str]:
    """Return the variables of a program of the agent's that runs no task."""
    return {**_base(daemon, agent), **agent.env}


def _base(daemon: Mapping[str, str], agent: AgentSpec) -> dict[str, str]:
    """Anything else that the daemon has, proxies included, an agent gets by ``pass_env``."""
    base = {name: value for name, value in daemon.items() if name in BASE or name.startswith(BASE_PREFIX)}
    passed = {name: daemon[name] for name in agent.pass_env if name in daemon}
    return {**base, "TERM": "dumb", **passed}


log = logging.getLogger("claudomator")

DIRECTORY = "CREDENTIALS_DIRECTORY"
TOKEN = "token"  # noqa: S105 - the name of a file
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_FILE_BYTES = 64 * 1024


def with_credentials(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment, and each credential as the variable of its name where that is not set.

    What every run gets anyway, such as HOME, is never taken from a credential.
    """
    return {**_variables(environ), **environ}


def token_file(environ: Mapping[str, str]) -> Path | None:
    """Return the file with the operator's token, if it is a credential."""
    folder = environ.get(DIRECTORY)
    path = Path(folder) / TOKEN if folder else None
    return path if path is not None and path.is_file() else None


def _variables(environ: Mapping[str, str]) -> dict[str, str]:
    folder = environ.get(DIRECTORY)
    if not folder:
        return {}
    try:
        names = sorted(entry.name for entry in os.scandir(folder))
    except OSError as error:
        log.warning("the credentials in %s cannot be read: %s", folder, error.strerror)
        return {}
    wanted = [name for name in names if _NAME.fullmatch(name) and name != TOKEN]
    found = {name: _value(Path(folder) / name) for name in wanted if name not in BASE and name[:3] != BASE_PREFIX}
    return {name: value for name, value in found.items() if value is not None}


def _value(path: Path) -> str | None:
    """The content without the line end that editors leave; None, and logged, for what no variable can hold."""
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_FILE_BYTES + 1).decode().removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        log.warning("the credential %s is left out: %s", path.name, error)
        return None
    if "\0" in text or len(text) > _MAX_FILE_BYTES:
        log.warning("the credential %s is left out: it is too long, or binary", path.name)
        return None
    return text


PREFIX = "cmr_"
VARIABLE = "CLAUDOMATOR_RUN_TOKEN"
_PURPOSE = b"claudomator run token 1"
_MAX_TOKEN_LENGTH = 200


class RunTokens:
    """Makes and reads them. operator: the operator's token; with another one, all are others."""

    def __init__(self, operator: str) -> None:
        self._key = hmac.digest(operator.encode("ascii"), _PURPOSE, hashlib.sha256)

    def of(self, run_id: str) -> str:
        """Return the run's token."""
        return f"{PREFIX}{run_id}_{self._signature(run_id)}"

    def run_id(self, token: str) -> str | None:
        """Return the run that it is of, under way or not; None for what was not made here."""
        if not token.startswith(PREFIX) or len(token) > _MAX_TOKEN_LENGTH or not token.isascii():
            return None
        run_id, _, signature = token.removeprefix(PREFIX).rpartition("_")
        return run_id if hmac.compare_digest(signature, self._signature(run_id)) else None

    def _signature(self, run_id: str) -> str:
        return hmac.digest(self._key, run_id.encode("ascii"), hashlib.sha256).hex()
