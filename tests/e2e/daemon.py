"""A real daemon from its start to its end: waiting until it is ready, asking it, killing and stopping it."""

import os
import select
import signal
from collections.abc import Callable
from pathlib import Path

from claudomator_py.client import ClientError
from claudomator_py.client.http import Client
from tests.patience import PATIENCE_S, wait_until


class Daemon:
    """One life of a daemon."""

    def __init__(self, state: Path, log_file: Path, pid: int, reap: Callable[[int], int]) -> None:
        """reap: waits for the end of the process with that pid and returns its exit status, negative for a signal."""
        self.pid = pid
        self._state = state
        self._log_file = log_file
        self._reap = reap
        self._fd = os.pidfd_open(pid)
        self._status: int | None = None
        self._client: Client | None = None

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._status is None and not select.select([self._fd], [], [], 0)[0]

    @property
    def client(self) -> Client:
        """The API as typed calls, with the operator's token. Call ``ready`` before."""
        if self._client is None:
            url, token = published_url(self._state), (self._state / "token").read_text().strip()
            assert url is not None, "the daemon was not waited for: call ready()"
            self._client = Client(url, token, timeout_s=PATIENCE_S)
        return self._client

    def ready(self) -> "Daemon":
        """Wait until it answers requests. Fails, with its log, if it ends before."""

        def answers() -> bool:
            assert self.running, f"the daemon ended before it was ready:\n{read_log(self._log_file)}"
            try:
                return published_url(self._state) is not None and self.client.readiness() is not None
            except ClientError:
                return False

        wait_until(answers, "the daemon to be ready", PATIENCE_S)
        return self

    def kill(self) -> None:
        """End it as a crash does, and wait for its end."""
        self.send(signal.SIGKILL)
        self.wait()

    def send(self, number: int) -> None:
        """Send it a signal. Any thread may."""
        signal.pidfd_send_signal(self._fd, number)

    def stop(self) -> int:
        """Ask it to end, in order; its exit status."""
        self.send(signal.SIGTERM)
        return self.wait()

    def wait(self, deadline_s: float = PATIENCE_S) -> int:
        """Wait for its end; its exit status, negative for a signal. Fails at the deadline."""
        if self._status is None:
            ended = select.select([self._fd], [], [], deadline_s)[0]
            assert ended, f"the daemon did not end within {deadline_s:.0f} s:\n{read_log(self._log_file)}"
            self._status = self._reap(self.pid)
            os.close(self._fd)
            if self._client is not None:
                self._client.close()
        return self._status


def published_url(state: Path) -> str | None:
    """The URL that the daemon of this state folder has published; None: not yet."""
    try:
        return (state / "endpoint").read_text().strip()
    except FileNotFoundError:
        return None


def read_log(file: Path) -> str:
    """What all daemons so far have logged there."""
    return file.read_text(errors="replace") if file.exists() else ""
