"""The secrets known to the daemon, and a run's variables: from the daemon, from systemd credentials, and the run's own
token.

Everything that removes secrets from data before it is stored, shown or sent gets its values from
``schema.known_secrets``, injected when the daemon is assembled; nothing else creates a redactor with values. A known
value stays known until the daemon ends, as output written before a reload may still contain it.

A variable in a service's environment is visible to everything it starts; a file in ``$CREDENTIALS_DIRECTORY`` becomes
the variable of that name only for agents to which the configuration passes it.
"""

import hashlib
import hmac
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.redaction import Redactor, clean
from claudomator_py.domain.task import TaskSpec
from claudomator_py.schema.known_secrets import secrets_in
from claudomator_py.values import regex

BASE = frozenset(
    {"HOME", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER", "LANG", "LANGUAGE"}
    | {"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"}
    | {"NODE_EXTRA_CA_CERTS", "SSL_CERT_DIR", "SSL_CERT_FILE"}
)
BASE_PREFIX = "LC_"


def environment(
    daemon: Mapping[str, str], agent: AgentSpec, task: TaskSpec, launch: Mapping[str, str], own: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables of a run. Later sources win: base, passed on, the launch's, the agent's, the task's, our
    own."""
    return {**_base(daemon, agent), **launch, **agent.env, **task.env, **own}


def agent_environment(daemon: Mapping[str, str], agent: AgentSpec) -> dict[str, str]:
    """Return the variables for running an agent's program without a task."""
    return {**_base(daemon, agent), **agent.env}


def _base(daemon: Mapping[str, str], agent: AgentSpec) -> dict[str, str]:
    """Anything else that the daemon has, including proxies, reaches an agent only through ``pass_env``."""
    base = {name: value for name, value in daemon.items() if name in BASE or name.startswith(BASE_PREFIX)}
    passed = {name: daemon[name] for name in agent.pass_env if name in daemon}
    return {**base, "TERM": "dumb", **passed}


log = logging.getLogger("claudomator")

DIRECTORY = "CREDENTIALS_DIRECTORY"
TOKEN = "token"  # noqa: S105 - the name of a file
_NAME = regex(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_FILE_BYTES = 64 * 1024


def with_credentials(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment plus each credential as the variable of its name, unless that is already set. Variables
    that every run gets anyway, such as HOME, are never taken from a credential."""
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
    values = {name: _value(Path(folder) / name) for name in wanted if name not in BASE and name[:3] != BASE_PREFIX}
    return {name: value for name, value in values.items() if value is not None}


def _value(path: Path) -> str | None:
    """The content without the line end that editors add; None, with a log entry, if a variable cannot hold it."""
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
    """Creates and verifies run tokens. operator: the operator's token; with a different one, all run tokens change."""

    def __init__(self, operator: str) -> None:
        self._key = hmac.digest(operator.encode("ascii"), _PURPOSE, hashlib.sha256)

    def of(self, run_id: str) -> str:
        """Return the run's token."""
        return f"{PREFIX}{run_id}_{_signature(self._key, run_id)}"

    def run_id(self, token: str) -> str | None:
        """Return the run that the token belongs to, live or not; None for a token that was not created here."""
        if not token.startswith(PREFIX) or len(token) > _MAX_TOKEN_LENGTH or not token.isascii():
            return None
        run_id, _, signature = token.removeprefix(PREFIX).rpartition("_")
        return run_id if hmac.compare_digest(signature, _signature(self._key, run_id)) else None


T = TypeVar("T")

_MAX_KEPT = 64


@lru_cache(_MAX_KEPT)
def _signature(key: bytes, run_id: str) -> str:
    """Return the run's signature. A run's start and end need it several times, and OpenSSL takes 20 µs."""
    return hmac.digest(key, run_id.encode("ascii"), hashlib.sha256).hex()


class Secrets:
    """Values that must not be visible. Thread-safe. Values in a task's own ``env`` are secret only where that task is
    concerned, so that no task can remove words from what others say; the same applies to a run's token."""

    def __init__(self, values: Iterable[str] = (), run_token: Callable[[str], str] | None = None) -> None:
        """run_token: returns a run's token by the run's id; None if runs have none."""
        self._run_token = run_token
        self._lock = threading.Lock()
        self._values = frozenset(values)
        self._redactor = Redactor(self._values)
        self._of_tasks: OrderedDict[frozenset[str], Redactor] = OrderedDict()

    def add(self, values: Iterable[str]) -> None:
        """Treat these values as secrets, too, from now on."""
        with self._lock:
            if (grown := self._values.union(values)) != self._values:
                self._values, self._redactor = grown, Redactor(grown)
                self._of_tasks.clear()

    def redactor(self, task_env: Mapping[str, str] | None = None, run_id: str | None = None) -> Redactor:
        """Return the redactor for all secrets, including those in that task's variables and the token of that run."""
        own = frozenset(secrets_in(task_env)) if task_env else frozenset()
        if run_id is not None and self._run_token is not None:
            own |= {self._run_token(run_id)}
        with self._lock:
            if own <= self._values:
                return self._redactor
            if own not in self._of_tasks:
                self._of_tasks[own] = self._redactor.knowing(own)
            self._of_tasks.move_to_end(own)
            if len(self._of_tasks) > _MAX_KEPT:
                self._of_tasks.popitem(last=False)
            return self._of_tasks[own]

    def clean(self, value: T) -> T:
        """Return the value without secrets: a text, a model or JSON data; see ``domain.redaction.clean``."""
        return clean(value, self._redactor)

    def redact(self, text: str) -> str:
        """Return the text without secrets."""
        return self._redactor.redact(text)

    def redact_piece(self, text: str) -> str:
        """Return the text without secrets, including parts of secrets at an end where the text may have been cut
        off."""
        return self._redactor.redact_piece(text)
