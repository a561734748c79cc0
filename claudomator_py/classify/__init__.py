"""Ways to ask a cheap model, as configured; here the one by the Gemini CLI, headless, for users who have only its
login: a call takes a second or more. HTTP is imported only if it is in use."""

import math
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING

from claudomator_py.scheduler.classification import MAX_ANSWER_CHARS, Cause, ModelFault, ModelQuestion, json_objects
from claudomator_py.schema.settings import Classifier, ClassifierKind
from claudomator_py.values import regex

if TYPE_CHECKING:
    from claudomator_py.classify.http import GeminiApi, OpenAiApi

CLI_VARIABLES = ("GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL")
"""Variables that the Gemini CLI gets in addition to those of every program."""
# Without these the CLI relaunches itself as a child that ignores signals, and refuses an unknown folder.
_VARIABLES = {"GEMINI_CLI_NO_RELAUNCH": "true", "GEMINI_CLI_TRUST_WORKSPACE": "true", "TERM": "dumb"}
# With JSON output the exit code tells why it failed; with text it is always 1.
_ARGUMENTS = ("-p", "Answer the question on standard input.", "-o", "json")
_LOGIN_EXIT = 41
_CANNOT_START_EXITS = frozenset({126, 127})
# The CLI exits with the HTTP status, cut to eight bits: 429 becomes 173. Below 400 it would collide with signals.
_STATUS_BY_EXIT = {status % 256: status for status in range(400, 512)}
# The CLI retries by itself for minutes or hours; what it prints meanwhile tells why there is no answer.
_RETRIES_STATUS = regex(rb"failed with status (\d{3})")
_RETRIES_LIMIT = regex(rb"Retrying after \d+ms")
_NOT_REACHED = b"fetch failed"
_STDERR_BYTES = 64 * 1024
_END_S = 2.0


def tier_model(
    classifier: Classifier, environ: Mapping[str, str], for_cli: Mapping[str, str]
) -> "GeminiApi | OpenAiApi | GeminiCli | None":
    """Return the classifier, or None for kind ``none``. environ: has the API key; for_cli: the whole environment of a
    CLI's process."""
    key = environ.get(classifier.key_variable, "") if classifier.key_variable is not None else ""
    match classifier.kind:
        case ClassifierKind.NONE:
            return None
        case ClassifierKind.GEMINI_API:
            from claudomator_py.classify.http import GeminiApi

            return GeminiApi(classifier.model_name, classifier.base_url, key)
        case ClassifierKind.OPENAI:
            from claudomator_py.classify.http import OpenAiApi

            return OpenAiApi(classifier.model_name, classifier.base_url, key or None)
        case ClassifierKind.GEMINI_CLI:
            return GeminiCli(classifier.model_name, classifier.command, for_cli)


class GeminiCli:
    """A model asked through a process per question. environment: the whole environment of the process. Thread-safe."""

    def __init__(self, model: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.model = model
        self._command = tuple(command)
        self._environment = {**environment, **_VARIABLES}
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def ask(self, question: ModelQuestion, timeout_s: float) -> str:
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
            tempfile.TemporaryFile() as stdin,
            tempfile.TemporaryFile() as stderr,
        ):
            stdin.write(question.prompt.encode(errors="replace"))
            stdin.seek(0)
            process = self._start(folder, stdin, stderr, timeout_s)
            try:
                return self._answer(process, stderr, timeout_s)
            finally:
                with self._lock:
                    self._running.discard(process)

    def close(self) -> None:
        """Kill the running processes and start no more."""
        with self._lock:
            self._closed = True
            for process in self._running:
                _kill(process)

    def _start(self, folder: str, stdin: IO[bytes], stderr: IO[bytes], timeout_s: float) -> "subprocess.Popen[bytes]":
        # If the daemon is killed, `timeout` ends the process, a second after we would have.
        backstop = ("timeout", "-s", "KILL", str(math.ceil(timeout_s) + 1))
        argv = [*backstop, *self._command, *_ARGUMENTS, "-m", self.model]
        with self._lock:
            if self._closed:
                raise ModelFault(Cause.INTERRUPTED, "the daemon is stopping")
            try:
                process = subprocess.Popen(
                    argv,
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    env=self._environment,
                    cwd=folder,
                    start_new_session=True,
                )
            except OSError:
                raise self._cannot_start() from None
            self._running.add(process)
            return process

    def _answer(self, process: "subprocess.Popen[bytes]", stderr: IO[bytes], timeout_s: float) -> str:
        try:
            output, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            _end(process)
            raise _late(_tail(stderr)) from None
        if process.returncode in _CANNOT_START_EXITS:
            raise self._cannot_start()
        if process.returncode != 0:
            raise _failed(process.returncode, _tail(stderr))
        # Warnings with braces may precede the envelope, and lines may follow it.
        text = output.decode(errors="replace")
        responses = [
            json_object["response"]
            for json_object in json_objects(text[:MAX_ANSWER_CHARS])
            if "response" in json_object
        ]
        if responses and not isinstance(responses[-1], str):
            raise ModelFault(Cause.GARBAGE, "its answer has no text")
        return str(responses[-1]) if responses else text

    def _cannot_start(self) -> ModelFault:
        return ModelFault(
            Cause.NOT_CONFIGURED, f"{self._command[0]} cannot be started; install it, or set classifier.command"
        )


def _late(output: bytes) -> ModelFault:
    """Return why the process had to be killed at the deadline, from what it printed on stderr."""
    if (match := _RETRIES_STATUS.search(output)) is not None:
        return _refused(int(match[1]))
    if _RETRIES_LIMIT.search(output):
        return ModelFault(Cause.LIMITED, "it reported a limit and began to wait for its end")
    if _NOT_REACHED in output:
        return ModelFault(Cause.UNREACHABLE, "it could not reach its service")
    return ModelFault(Cause.TIMEOUT, "it did not answer in time")


def _failed(code: int, output: bytes) -> ModelFault:
    if code in _STATUS_BY_EXIT:
        return _refused(_STATUS_BY_EXIT[code])
    if code == _LOGIN_EXIT:
        return ModelFault(Cause.REFUSED, "it is not logged in")
    if code == -signal.SIGKILL:
        return ModelFault(Cause.INTERRUPTED, "it was killed")
    if _NOT_REACHED in output:
        return ModelFault(Cause.UNREACHABLE, "it could not reach its service")
    return ModelFault(Cause.SERVER_ERROR, f"it exited with {code}")


def _refused(status: int) -> ModelFault:
    detail = f"its service answered with HTTP {status}"
    if status == 429:
        return ModelFault(Cause.LIMITED, detail)
    return ModelFault(Cause.REFUSED if status < 500 else Cause.SERVER_ERROR, detail)


def _tail(stderr: IO[bytes]) -> bytes:
    stderr.seek(max(0, stderr.seek(0, os.SEEK_END) - _STDERR_BYTES))
    return stderr.read()


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill the process group. Only before it is reaped is the process id certainly still its own."""
    if process.returncode is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def _end(process: "subprocess.Popen[bytes]") -> None:
    _kill(process)
    if process.stdout is not None:
        process.stdout.close()
    process.wait(_END_S)
