"""The process of ``sandbox``: reads conditions with values from its input and writes their results to its output.

It limits itself: the system kills it, by a signal whose action it leaves at the default, once its processor time is
used up, and refuses it more memory. Each answer is preceded by its length in four bytes.
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
"""What the library also says if a value did not fit into memory as a Python object."""
_MAX_KEPT_BYTES = 32 * 1024 * 1024
"""Maximum memory retained from conditions; beyond that the process ends and another is started for the next
condition."""
_MAX_SHOWN = 1_000
"""Maximum characters shown of a value that is not a boolean."""
_HEAD = struct.Struct("!I")


def main() -> None:
    """Answer until the input ends."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    nothing = context_of({})
    Expression("true", "true").value(nothing)  # loads the library, so that no condition is charged for it
    evaluator, ends = _Evaluator(nothing), False
    _send({"ready": True})
    while not ends and len(head := os.read(0, _HEAD.size)) == _HEAD.size:
        answer = evaluator.answer(_read(_HEAD.unpack(head)[0]))
        ends = _has_bytes() > evaluator.has_bytes + _MAX_KEPT_BYTES
        _send({**answer, "ends": ends})


class _Evaluator:
    """State kept between questions."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._tries = False
        self.has_bytes = _bound()
        """Memory used without a condition."""
        self._had_bytes = _peak_bytes()

    def answer(self, data: bytes) -> dict[str, object]:
        """The answer to the question."""
        try:
            question = json.loads(data)
            if "values" in question:
                self._context = context_of(question["values"])
            if "check" in question and not self._tries:
                import claudomator_py.policy.condition  # noqa: F401 no condition is charged for this import

                self._tries = True
                self.has_bytes = _bound()
            return self._bounded(question)
        except MemoryError:
            os.abort()

    def _bounded(self, question: Mapping[str, Any]) -> dict[str, object]:
        begun_s = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, question["cpu_ms"] / 1000)
        try:
            result = self._checked(question["check"]) if "check" in question else self._value(question["evaluate"])
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        return {**result, "cpu_ms": (time.process_time() - begun_s) * 1000}

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

    def _look_for_lack_of_memory(self, message: str) -> None:
        """Raises MemoryError if lack of memory is behind the library's message."""
        took = _peak_bytes() - self._had_bytes
        if "MemoryError" in message or (_PANIC in message and took > MAX_MEMORY_MIB * 1024 * 1024 // 4):
            raise MemoryError from None


@lru_cache(1_000)
def _compiled(text: str) -> Expression:
    return Expression(text, code_of(text))


def _peak_bytes() -> int:
    """Peak memory use in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _has_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _bound() -> int:
    """Limit further memory growth; return the memory in use now."""
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


def _send(answer: Mapping[str, object]) -> None:
    data = json.dumps(answer).encode()
    data = _HEAD.pack(len(data)) + data
    while data:
        data = data[os.write(1, data) :]
