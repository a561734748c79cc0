"""Kind ``gemini-cli``: a headless call of the Gemini CLI, for those who have only its login. Takes a second or more."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence

from claudomator_py.routing.tier import Cause, ClassifierFault, TierQuestion, prompt

# Without these it starts a second process of itself that ignores signals, and refuses an unknown folder.
_VARIABLES = {"GEMINI_CLI_NO_RELAUNCH": "true", "GEMINI_CLI_TRUST_WORKSPACE": "true", "TERM": "dumb"}
_RATE_LIMIT_EXIT = 429 % 256
_LOGIN_EXITS = frozenset({41, 401 % 256, 403 % 256})
_END_S = 2.0


class GeminiCli:
    """Asks through a process. environment: all that the process gets."""

    def __init__(self, model: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.model = model
        self._command = tuple(command)
        self._environment = {**environment, **_VARIABLES}

    def ask(self, question: TierQuestion, timeout_s: float) -> str:
        """What the CLI prints. Raises ClassifierFault."""
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as stdin:
            stdin.write(prompt(question).encode(errors="replace"))
            stdin.seek(0)
            argv = [*self._command, "-p", "Answer the question on standard input.", "-m", self.model, "-o", "text"]
            try:
                process = subprocess.Popen(
                    argv,
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env=self._environment,
                    cwd=folder,
                    start_new_session=True,
                )
            except OSError as error:
                raise ClassifierFault(Cause.NOT_CONFIGURED, f"{argv[0]} cannot be started: {error.strerror}") from None
            return _answer(process, timeout_s)

    def close(self) -> None:
        """Nothing is kept between calls."""


def _answer(process: "subprocess.Popen[bytes]", timeout_s: float) -> str:
    try:
        output, _ = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _end(process)
        raise ClassifierFault(Cause.TIMEOUT, "it did not answer in time") from None
    if process.returncode == _RATE_LIMIT_EXIT:
        raise ClassifierFault(Cause.LIMITED, "it reported a rate limit")
    if process.returncode in _LOGIN_EXITS:
        raise ClassifierFault(Cause.REFUSED, "it is not logged in")
    if process.returncode != 0:
        raise ClassifierFault(Cause.SERVER_ERROR, f"it exited with {process.returncode}")
    return output.decode(errors="replace")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """The whole group: its session is its own. It is not reaped yet, so the number is still its own, too."""
    os.killpg(process.pid, signal.SIGKILL)
    if process.stdout is not None:
        process.stdout.close()
    process.wait(_END_S)
