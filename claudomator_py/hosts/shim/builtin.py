"""Signals and JSON from the interpreter's own C modules.

The library's modules ``signal`` and ``json`` are built on these, but also import ``enum`` and ``re``, which would take
half of the processor time of a supervisor's start.
"""

from __future__ import annotations

TYPE_CHECKING = False
"""True for the type checker. ``typing`` has the same, but its import takes longer than all others here."""
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import Any
else:
    try:
        import _signal as signal
    except ImportError:  # another implementation of Python
        import signal

__all__ = ["dumps", "loads", "signal"]


class _Defaults:
    """The arguments with which ``json.loads`` parses."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def _parser() -> Callable[[str], Any]:
    try:
        from _json import make_scanner
    except ImportError:
        import json

        return json.loads
    scan: Callable[[str, int], tuple[Any, int]] = make_scanner(_Defaults)  # type: ignore[arg-type]

    def parse(text: str) -> Any:
        text = text.strip(" \t\n\r")
        try:
            value, end = scan(text, 0)
        except StopIteration:
            raise ValueError("it is not JSON") from None
        if end != len(text):
            raise ValueError("something follows the JSON")
        return value

    return parse


def _writer() -> Callable[[object], str]:
    try:
        from _json import encode_basestring_ascii, make_encoder
    except ImportError:
        import json

        return json.dumps
    encode = make_encoder(None, _refuse, encode_basestring_ascii, None, ": ", ", ", False, False, True)
    return lambda value: "".join(encode(value, 0))


def _refuse(value: object) -> None:
    raise TypeError(f"{type(value).__name__} has no form in JSON")


_parse, _write = _parser(), _writer()


def loads(text: bytes) -> Any:
    """Return what the JSON text says, as ``json.loads`` does. Raises ValueError, RecursionError."""
    return _parse(text.decode())


def dumps(value: object) -> bytes:
    """Return the value as JSON, as ``json.dumps`` does. Raises TypeError."""
    return _write(value).encode()
