"""Read-only commands, run without the libraries that validate what people write and strangers send.

`status` without a filter asks this user's own daemon one question over its Unix socket, and prints the answer:
pydantic, HTTPX and Typer would take three quarters of the time. The command and the shapes are the same; the libraries
that they are declared with are replaced by stand-ins (``cli.stand_ins``). If anything is unexpected, such as an option,
a refusal or a missing field, the full command replaces this process and starts over: nothing has been printed by then.
"""

import gc
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from typing import Any, Final, NoReturn, TextIO, cast

from claudomator_py import __version__

LOOKS: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = {
    "status": ("overview.cli", "status", ()),
    "list": ("tasks.cli", "tasks", ()),
    "show": ("tasks.cli_show", "show", ("task",)),
    "why": ("tasks.cli_show", "why", ("task",)),
    "log": ("events.cli", "log", ()),
}
"""By command: its module, its function and the arguments that it needs."""
_INTERRUPTED: Final = 130
AGAIN: Final = "CLAUDOMATOR_WHOLE"
"""Set for the full command that replaces this one."""


def shown(arguments: Sequence[str]) -> bool:
    """Run a command if it can do without the libraries, and return True; False: nothing was done, and the full command
    is needed."""
    if list(arguments) == ["--version"]:
        sys.stdout.write(f"claudomator {__version__}\n")
        return True
    # Over TCP, or after a failed attempt, there is nothing to gain.
    is_whole = os.environ.pop(AGAIN, None) is not None or bool(os.environ.get("CLAUDOMATOR_URL"))
    wanted = _parsed(arguments)
    if is_whole or wanted is None or "pydantic" in sys.modules:
        return False
    gc.disable()
    held: list[tuple[TextIO, str]] = []
    try:
        with redirect_stdout(_holding(sys.stdout, held)), redirect_stderr(_holding(sys.stderr, held)):
            _show(*wanted)
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    except Exception:
        _again()
    from claudomator_py.cli.output import leaving_if_unwritten

    with leaving_if_unwritten():
        for stream, text in held:
            stream.write(text)
            stream.flush()
    return True


def _parsed(arguments: Sequence[str]) -> tuple[str, str, dict[str, str]] | None:
    """Return the module, the function and its arguments; None if the arguments have any other form."""
    name, *rest = arguments or ("",)
    if name not in LOOKS:
        return None
    module, function, needed = LOOKS[name]
    named: dict[str, str] = {}
    if rest[-2:-1] in (["-o"], ["--output"]) and rest[-1] in ("table", "wide"):
        named["output"] = rest[-1]
        del rest[-2:]
    if len(rest) != len(needed) or any(argument.startswith("-") or not argument for argument in rest):
        return None
    return module, function, {**named, **dict(zip(needed, rest, strict=True))}


def _show(module: str, function: str, named: dict[str, Any]) -> None:
    from claudomator_py.cli.stand_ins import standing_in

    with standing_in():
        command = importlib.import_module(f"claudomator_py.resources.{module}")
        if "output" in named:
            from claudomator_py.cli.output import Format

            named["output"] = Format(named["output"])
        getattr(command, function)(config=None, state_dir=None, **named)


class _Holding:
    """Collects output, but otherwise describes itself as the stream for which it is meant."""

    def __init__(self, stream: TextIO, held: list[tuple[TextIO, str]]) -> None:
        self._stream, self._held = stream, held

    def write(self, text: str) -> None:
        self._held.append((self._stream, text))

    def flush(self) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name not in ("isatty", "encoding"):
            raise AttributeError(name)
        return getattr(self._stream, name)


def _holding(stream: TextIO, held: list[tuple[TextIO, str]]) -> TextIO:
    return cast(TextIO, _Holding(stream, held))


def _again() -> NoReturn:
    """Replace this process by the full command."""
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, AGAIN: "1"})
