"""Evaluates conditions that may be expensive in a separate process that is killed at its limits: the result is the
same, or there is none.

The library can neither be stopped nor asked how much it needs, and aborts the process when memory runs out. So this
process (``evaluator``) may be lost. It is started on first use, kept for further conditions, and restarted after a
loss. It ends with its parent, which closes its end of the pipe.
"""

import contextlib
import json
import os
import select
import signal
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from claudomator_py.policy.expression import Context, Unevaluated

MAX_CPU_MS: Final = 500
"""Processor time for one condition on one task."""
MAX_MEMORY_MIB: Final = 128
"""Memory that a condition may use in addition to the process's own."""
MAX_WALL_S: Final = 10.0
"""Wall-clock limit for a condition, however little processor time it gets."""
_MAX_CHECK_CPU_MS: Final = 5_000
"""Processor time for trying a condition on tasks of every shape, when it is loaded."""
_MAX_CHECK_WALL_S: Final = 60.0
_MAX_START_S: Final = 60.0
_HEAD: Final = struct.Struct("!I")
_PROGRAM: Final = "import sys; sys.path.append(sys.argv[1]); from claudomator_py.policy.evaluator import main; main()"
_INSTALLATION: Final = str(Path(__file__).parents[2])
_NEEDED: Final = ("LD_LIBRARY_PATH",)
"""Environment variables passed on, as some Python installations do not start without them; others may contain
secrets."""
_PIECE: Final = 1 << 16


class _Lost(Exception):
    """The process had to be killed, or has ended. The message gives the reason."""


class _Ended(_Lost):
    """The process has ended at no limit of its own, such as by a signal from outside."""


class _Process:
    """An evaluator process. Raises _Lost."""

    def __init__(self) -> None:
        self.context: Context | None = None
        """The context whose values the process has."""
        self._popen = subprocess.Popen(
            [sys.executable, "-I", "-X", "utf8", "-c", _PROGRAM, _INSTALLATION],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd="/",
            env={name: os.environ[name] for name in _NEEDED if name in os.environ},
            start_new_session=True,  # an interrupt at a command's terminal does not reach this process
        )
        self._ends = weakref.finalize(self, _end, self._popen)
        if self._popen.stdin is None or self._popen.stdout is None:
            raise _Lost("it has no pipes")
        self._in, self._out = self._popen.stdin.fileno(), self._popen.stdout.fileno()
        os.set_blocking(self._in, False)
        self._cpu_ms = 0.0
        self._is_ready = False

    @property
    def is_alive(self) -> bool:
        return self._popen.poll() is None

    def ask(self, question: Mapping[str, Any], wall_s: float) -> Any:
        if not self._is_ready:
            self._answer(b"", _MAX_START_S)
            self._is_ready = True
        data, self._cpu_ms = json.dumps(question).encode(), question["cpu_ms"]
        return self._answer(_HEAD.pack(len(data)) + data, wall_s)

    def end(self) -> None:
        self._ends()

    def _answer(self, data: bytes, wall_s: float) -> Any:
        """The response to the data; for no data, the ready message."""
        until, unsent, heard = time.monotonic() + wall_s, memoryview(data), bytearray()
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        if unsent:
            poll.register(self._in, select.POLLOUT)
        while len(heard) < _HEAD.size or len(heard) < _HEAD.size + _HEAD.unpack_from(heard)[0]:
            ready = dict(poll.poll(max(0.0, until - time.monotonic()) * 1000))
            if not ready:
                raise _Lost(f"it takes longer than {wall_s:g} s, the budget of a rule")
            if self._out in ready:
                piece = os.read(self._out, _PIECE)
                if not piece:
                    raise self._loss()
                heard += piece
            elif self._in in ready:
                try:
                    unsent = unsent[os.write(self._in, unsent[:_PIECE]) :]
                except BlockingIOError:
                    continue
                except BrokenPipeError:
                    raise self._loss() from None
                if not unsent:
                    poll.unregister(self._in)
        return json.loads(heard[_HEAD.size :])

    def _loss(self) -> _Lost:
        status = self._popen.wait()
        if status == -signal.SIGPROF:
            return _Lost(
                f"it takes more than {self._cpu_ms / 1000:.3g} s of the processor's time, the budget of a rule"
            )
        if status == -signal.SIGABRT:  # also raised by the library when it gets no memory
            return _Lost(f"it takes more than {MAX_MEMORY_MIB} MiB of memory, the budget of a rule")
        return _Ended(f"the process that evaluated it has ended ({status})")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    with process:  # closes the pipes, and waits
        pass


class _Sandbox:
    """The process, used for one question at a time, whichever thread asks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: _Process | None = None

    def ask(self, question: Mapping[str, Any], context: Context | None, wall_s: float) -> Any:
        """Raises _Lost."""
        with self._lock:
            try:
                return self._ask(question, context, wall_s)
            except _Ended:  # through no fault of the question
                return self._ask(question, context, wall_s)

    def _ask(self, question: Mapping[str, Any], context: Context | None, wall_s: float) -> Any:
        try:
            process = self._process
            if process is None or not process.is_alive:
                process = self._exchanged()
            if context is not None and process.context is not context:
                question = {**question, "values": context.values}
            answer = process.ask(question, wall_s)
            process.context = context or process.context
        except OSError as error:
            self._end()
            raise _Lost(f"the process for it cannot be started: {error}") from None
        except _Lost:
            self._renew()
            raise
        except BaseException:
            self._end()
            raise
        if answer["ends"]:
            self._renew()
        return answer

    def _exchanged(self) -> _Process:
        """Replace the process. Raises OSError."""
        self._end()
        self._process = _Process()
        return self._process

    def _renew(self) -> None:
        """Start the next process now, as its first user may be holding up others."""
        with contextlib.suppress(OSError):
            self._exchanged()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.end()


_SANDBOX: Final = _Sandbox()
_URGENT: Final = _Sandbox()
"""For evaluations that others wait for; see ``Allowance``."""


def evaluate(text: str, context: Context) -> bool | str:
    """Return the condition's value for the context; as text if it is neither true nor false. Raises Unevaluated, also
    if it exceeds its cost limit."""
    allowance = context.allowance
    cpu_ms = min(MAX_CPU_MS, allowance.left_ms)
    if cpu_ms < 1:
        raise Unevaluated(f"the rules together take more than {allowance.total_ms / 1000:g} s of the processor's time")
    try:
        sandbox = _URGENT if allowance.is_urgent else _SANDBOX
        answer = sandbox.ask({"evaluate": text, "cpu_ms": cpu_ms}, context, MAX_WALL_S)
    except _Lost as lost:
        allowance.left_ms -= cpu_ms
        raise Unevaluated(str(lost)) from None
    allowance.left_ms -= answer["cpu_ms"]
    if "undecided" in answer:
        raise Unevaluated(answer["undecided"], answer["remedy"])
    value: bool | str = answer["value"]
    return value


def check(text: str) -> tuple[str, str] | None:
    """Try the condition on tasks of every shape. Returns what is wrong with it and what to do; None if it is valid."""
    try:
        answer = _SANDBOX.ask({"check": text, "cpu_ms": _MAX_CHECK_CPU_MS}, None, _MAX_CHECK_WALL_S)
    except _Lost as lost:
        return f"cannot be tried on tasks of every shape: {lost}", "have it look at less, or with a shorter pattern"
    return None if "refused" not in answer else (answer["refused"], answer["remedy"])
