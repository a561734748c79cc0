"""Conditions that may cost much, in a process of their own that ends at its bounds: the same values, or none.

The library can neither be stopped nor asked how much it needs, and where no memory is left it aborts the process. So
this one (``evaluator``) may be lost. It is started when it is first needed, kept for what comes next, and started anew
after it was lost. It ends with whoever started it, whose end of the pipe is closed then.
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
"""The processor's time for one condition on one task."""
MAX_MEMORY_MIB: Final = 128
"""What a condition may take beyond what the process has without it."""
MAX_WALL_S: Final = 10.0
"""How long a condition may take, however little of the processor it gets."""
_MAX_CHECK_CPU_MS: Final = 5_000
"""The processor's time to try a condition on tasks of every shape, when it is read."""
_MAX_CHECK_WALL_S: Final = 60.0
_MAX_START_S: Final = 60.0
_HEAD: Final = struct.Struct("!I")
_PROGRAM: Final = "import sys; sys.path.append(sys.argv[1]); from claudomator_py.policy.evaluator import main; main()"
_INSTALLATION: Final = str(Path(__file__).parents[2])
_NEEDED: Final = ("LD_LIBRARY_PATH",)
"""Of the environment, in which there may be secrets: what some installations of Python do not start without."""
_PIECE: Final = 1 << 16


class _Lost(Exception):
    """The process had to end, or has ended. Its text says why."""


class _Process:
    """One that evaluates. Raises _Lost."""

    def __init__(self) -> None:
        self.told: Context | None = None
        """The one whose values it has."""
        self._popen = subprocess.Popen(
            [sys.executable, "-I", "-X", "utf8", "-c", _PROGRAM, _INSTALLATION],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd="/",
            env={name: os.environ[name] for name in _NEEDED if name in os.environ},
            start_new_session=True,  # whoever interrupts a command at a terminal does not interrupt this
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
        """What it says to that; to nothing, that it is there."""
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
                    raise _Lost(self._why_it_ended())
                heard += piece
            elif self._in in ready:
                try:
                    unsent = unsent[os.write(self._in, unsent[:_PIECE]) :]
                except BlockingIOError:
                    continue
                except BrokenPipeError:
                    raise _Lost(self._why_it_ended()) from None
                if not unsent:
                    poll.unregister(self._in)
        return json.loads(heard[_HEAD.size :])

    def _why_it_ended(self) -> str:
        status = self._popen.wait()
        if status == -signal.SIGPROF:
            return f"it takes more than {self._cpu_ms / 1000:.3g} s of the processor's time, the budget of a rule"
        if status == -signal.SIGABRT:  # so does the library where it gets no memory
            return f"it takes more than {MAX_MEMORY_MIB} MiB of memory, the budget of a rule"
        return f"the process that evaluated it has ended ({status})"


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    with process:  # closes the pipes, and waits
        pass


class _Sandbox:
    """The process, and one question at a time, whoever asks it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: _Process | None = None

    def ask(self, question: Mapping[str, Any], context: Context | None, wall_s: float) -> Any:
        """Raises _Lost."""
        with self._lock:
            try:
                process = self._process
                if process is None or not process.is_alive:
                    process = self._exchanged()
                if context is not None and process.told is not context:
                    question = {**question, "values": context.values}
                answer = process.ask(question, wall_s)
                process.told = context or process.told
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
        """Another process than before. Raises OSError."""
        self._end()
        self._process = _Process()
        return self._process

    def _renew(self) -> None:
        """Start the next one now: whoever needs it may hold up others meanwhile."""
        with contextlib.suppress(OSError):
            self._exchanged()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.end()


_SANDBOX: Final = _Sandbox()
_URGENT: Final = _Sandbox()
"""For what others wait for, see ``Allowance``."""


def evaluate(text: str, context: Context) -> bool | str:
    """Return the value of the condition with those values, in words if it is neither true nor false. Raises Undecided,
    also where it costs more than it may."""
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
    """Try the condition on tasks of every shape: why it is none, and what to do about it; None: it is one."""
    try:
        answer = _SANDBOX.ask({"check": text, "cpu_ms": _MAX_CHECK_CPU_MS}, None, _MAX_CHECK_WALL_S)
    except _Lost as lost:
        return f"cannot be tried on tasks of every shape: {lost}", "have it look at less, or with a shorter pattern"
    return None if "refused" not in answer else (answer["refused"], answer["remedy"])
