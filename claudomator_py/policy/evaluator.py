"""The process of ``sandbox``: reads conditions with values from its input, and writes what they are to its output.

It bounds itself: the system ends it, by a signal whose meaning it does not change, once it has used the processor for
as long as it may, and refuses it memory. What it says to each question has four bytes of length before it.
"""

import json
import os
import resource
import signal
import struct
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from claudomator_py.policy.expression import Context, Expression, Unevaluated, code_of, context_of
from claudomator_py.policy.sandbox import MAX_MEMORY_MIB

_PANIC = "Internal evaluation error"
"""What the library says also where a value did not fit into the memory as one of Python's."""
_MAX_KEPT_BYTES = 32 * 1024 * 1024
"""What it keeps of what conditions took; with more than that it ends, and another one is started for the next."""
_MAX_SHOWN = 1_000
"""Characters of a value that is none."""
_HEAD = struct.Struct("!I")


def main() -> None:
    """Answer until the input ends."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    nothing = context_of({})
    Expression("true", "true").value(nothing)  # the library is there now, and counts for no condition
    evaluator, ends = _Evaluator(nothing), False
    _say({"ready": True})
    while not ends and len(head := os.read(0, _HEAD.size)) == _HEAD.size:
        answer = evaluator.answer(_read(_HEAD.unpack(head)[0]))
        ends = _has_bytes() > evaluator.has_bytes + _MAX_KEPT_BYTES
        _say({**answer, "ends": ends})


class _Evaluator:
    """What it knows from one question to the next."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._tries = False
        self.has_bytes = _bound()
        """The memory that it has without a condition."""
        self._had_bytes = _peak_bytes()

    def answer(self, data: bytes) -> dict[str, object]:
        """What the question has as its answer."""
        try:
            question = json.loads(data)
            if "values" in question:
                self._context = context_of(question["values"])
            if "check" in question and not self._tries:
                import claudomator_py.policy.condition  # noqa: F401 what it takes counts for no condition

                self._tries = True
                self.has_bytes = _bound()
            return self._bounded(question)
        except MemoryError:
            os.abort()

    def _bounded(self, question: Mapping[str, Any]) -> dict[str, object]:
        begun_s = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, question["cpu_ms"] / 1000)
        try:
            found = self._checked(question["check"]) if "check" in question else self._value(question["evaluate"])
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        return {**found, "cpu_ms": (time.process_time() - begun_s) * 1000}

    def _value(self, text: str) -> dict[str, object]:
        try:
            value = _compiled(text).value(self._context)
        except Unevaluated as undecided:
            self._look_for_lack_of_memory(str(undecided))
            return {"undecided": str(undecided), "remedy": undecided.remedy}
        return {"value": value if isinstance(value, bool) else str(value)[:_MAX_SHOWN]}

    def _checked(self, text: str) -> dict[str, object]:
        from claudomator_py.policy.condition import BadCondition, checked

        try:
            checked(text)
        except BadCondition as bad:
            self._look_for_lack_of_memory(str(bad))
            return {"refused": str(bad), "remedy": bad.remedy}
        return {}

    def _look_for_lack_of_memory(self, said: str) -> None:
        """Raises MemoryError where that is behind what the library says."""
        took = _peak_bytes() - self._had_bytes
        if "MemoryError" in said or (_PANIC in said and took > MAX_MEMORY_MIB * 1024 * 1024 // 4):
            raise MemoryError from None


@lru_cache(1_000)
def _compiled(text: str) -> Expression:
    return Expression(text, code_of(text))


def _peak_bytes() -> int:
    """The most memory that it has used at a time."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _has_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _bound() -> int:
    """Let it have so much more memory than it has by now, which is returned."""
    has = _has_bytes()
    most = has + MAX_MEMORY_MIB * 1024 * 1024
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    return has


def _read(length: int) -> bytes:
    data = bytearray()
    while len(data) < length and (piece := os.read(0, length - len(data))):
        data += piece
    return bytes(data)


def _say(answer: Mapping[str, object]) -> None:
    data = json.dumps(answer).encode()
    data = _HEAD.pack(len(data)) + data
    while data:
        data = data[os.write(1, data) :]
