"""What the daemon knows to be secret, and the variables of a run: the daemon's, credentials of systemd, its own token.

What takes secrets out of all that is stored, shown or sent has its values from ``schema.known_secrets``, put in by
whoever assembles the daemon; nobody else makes a redactor with values. What was known once stays known until the daemon
ends: what a run wrote before a reload may hold it still.

A variable in the environment of a service is seen by everything it starts; a file in ``$CREDENTIALS_DIRECTORY`` becomes
the variable of that name only for whom the configuration passes it on to.
"""

import hashlib
import hmac
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
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
_NAME = regex(r"[A-Za-z_][A-Za-z0-9_]*")
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


T = TypeVar("T")

_MAX_KEPT = 64


class Secrets:
    """Values that nobody is to see. Safe to use from any thread.

    Those of a task's own ``env`` are known only where that task is concerned, so that no task can take words out of
    what others say; so is the token of a run.
    """

    def __init__(self, values: Iterable[str] = (), run_token: Callable[[str], str] | None = None) -> None:
        """run_token: of each run, by its id; None: none has one."""
        self._run_token = run_token
        self._lock = threading.Lock()
        self._values = frozenset(values)
        self._redactor = Redactor(self._values)
        self._of_tasks: OrderedDict[frozenset[str], Redactor] = OrderedDict()

    def add(self, values: Iterable[str]) -> None:
        """Count these as secrets as well from now on."""
        with self._lock:
            if (grown := self._values.union(values)) != self._values:
                self._values, self._redactor = grown, Redactor(grown)
                self._of_tasks.clear()

    def redactor(self, task_env: Mapping[str, str] | None = None, run_id: str | None = None) -> Redactor:
        """Return what finds them, those that a task with these variables brings itself, and the token of that run."""
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
        """Return the value without them, be it a text, a model or what JSON can say; see ``domain.redaction.clean``."""
        return clean(value, self._redactor)

    def redact(self, text: str) -> str:
        """Return the text without them."""
        return self._redactor.redact(text)

    def redact_piece(self, text: str) -> str:
        """Return the text, of which an end may be cut off, without them and what is left of them there."""
        return self._redactor.redact_piece(text)
