"""Ways to notify a person, as configured; here the one by a program. HTTP is imported only if it is in use."""

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from claudomator_py.domain.notice import DeliveryFault, Notice, NotifyTarget, TargetKind

if TYPE_CHECKING:
    from claudomator_py.notify.webhook import Unconfigured, Webhook

_MAX_ERROR = 200


def messenger(
    target: NotifyTarget,
    environ: Mapping[str, str],
    for_commands: Mapping[str, str],
    clock: Callable[[], float],
    umask: int = -1,
) -> "Command | Webhook | Unconfigured":
    """Return the messenger for a target. environ: has the URL and secret if variables name them; for_commands: the
    whole environment of a command.

    clock: epoch seconds. umask: of a command; -1: this process's. A missing variable does not raise here: sending
    fails.
    """
    timeout_s = target.timeout / 1000
    if target.kind is TargetKind.COMMAND:
        return Command(target.command, for_commands, timeout_s, umask)
    from claudomator_py.notify.webhook import Unconfigured, Webhook

    for name in (target.url_env, target.secret_env):
        if name is not None and not environ.get(name):
            return Unconfigured(name)
    url = target.url or environ[target.url_env or ""]
    secret = environ[target.secret_env] if target.secret_env is not None else None
    return Webhook(url, target.format, secret, timeout_s, clock)


class Command:
    """Starts the program once per notice, which it gets as a line of JSON on standard input, and its essentials in
    variables. environment: its environment in addition to these.

    umask: of the program; -1: this process's.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], timeout_s: float, umask: int = -1
    ) -> None:
        self._command = tuple(command)
        self._environment = dict(environment)
        self._timeout_s = timeout_s
        self._umask = umask

    def send(self, notice: Notice) -> None:
        """Run the program to its end. Raises DeliveryFault unless it exits with 0 in time."""
        own = {
            "CLAUDOMATOR_NOTICE": notice.kind.value,
            "CLAUDOMATOR_NOTICE_ID": notice.id,
            "CLAUDOMATOR_NOTICE_TITLE": notice.title,
        }
        try:
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={**self._environment, **own},
                cwd=Path("/"),
                start_new_session=True,
                umask=self._umask,
            )
        except OSError as error:
            raise DeliveryFault(f"{self._command[0]} cannot be started ({error.strerror})", lasting=True) from None
        try:
            # With a newline, so that a program that appends it to a file gets one notice per line.
            _, stderr = process.communicate(f"{notice.model_dump_json()}\n".encode(), self._timeout_s)
        except subprocess.TimeoutExpired:
            raise DeliveryFault(f"{self._command[0]} took longer than its timeout and was ended") from None
        finally:
            _end(process)
        if process.returncode != 0:
            last = stderr.decode(errors="replace").strip()[-_MAX_ERROR:]
            raise DeliveryFault(f"{self._command[0]} exited with {process.returncode}" + (f": {last}" if last else ""))

    def close(self) -> None:
        """Do nothing: there are no resources."""


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Kill the process group. Only before it is reaped is the process id certainly still its own."""
    if process.returncode is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        for pipe in (process.stdin, process.stderr):
            if pipe is not None:
                pipe.close()
        process.wait()
