"""Commands that only look, shown without the libraries that judge what a person writes and what a stranger sends.

`status` without a filter asks one question of this user's own daemon, over its Unix socket, and shows the answer:
pydantic, HTTPX and Typer would be three quarters of what that takes. The command and the shapes are the same ones; what
they are declared on is stood in for (``cli.stand_ins``). Whatever is not as expected, be it an option, a refusal or a
field that is missing, is done again by the whole command, in the same process's place: by then nothing was written.
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
    "status": ("overview", "status", ()),
    "list": ("tasks", "tasks", ()),
    "show": ("tasks", "show", ("task",)),
    "why": ("tasks", "why", ("task",)),
    "log": ("events", "log", ()),
}
"""By command: its resource, its function and the arguments that it needs."""
_INTERRUPTED: Final = 130
AGAIN: Final = "CLAUDOMATOR_WHOLE"
"""Set for the whole command that takes the place of a plain one."""


def shown(arguments: Sequence[str]) -> bool:
    """Return whether all was said that these arguments ask for; False: it takes the whole command, and nothing was
    done."""
    if list(arguments) == ["--version"]:
        sys.stdout.write(f"claudomator {__version__}\n")
        return True
    # Over TCP, and once it was tried in vain, there is nothing to win.
    is_whole = os.environ.pop(AGAIN, None) is not None or bool(os.environ.get("CLAUDOMATOR_URL"))
    wanted = _wanted(arguments)
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
    from claudomator_py.cli.output import leave_broken_pipe

    try:
        for stream, text in held:
            stream.write(text)
            stream.flush()
    except BrokenPipeError:
        leave_broken_pipe()
    return True


def _wanted(arguments: Sequence[str]) -> tuple[str, str, dict[str, str]] | None:
    """The resource, the function and its arguments; None for whatever is written in another way."""
    name, *rest = arguments or ("",)
    if name not in LOOKS:
        return None
    resource, function, needed = LOOKS[name]
    named: dict[str, str] = {}
    if rest[-2:-1] in (["-o"], ["--output"]) and rest[-1] in ("table", "wide"):
        named["output"] = rest[-1]
        del rest[-2:]
    if len(rest) != len(needed) or any(one.startswith("-") or not one for one in rest):
        return None
    return resource, function, {**named, **dict(zip(needed, rest, strict=True))}


def _show(resource: str, function: str, named: dict[str, Any]) -> None:
    from claudomator_py.cli.stand_ins import standing_in

    with standing_in():
        command = importlib.import_module(f"claudomator_py.resources.{resource}.cli")
        if "output" in named:
            named["output"] = command.Format(named["output"])
        getattr(command, function)(config=None, state_dir=None, **named)


class _Holding:
    """A stream of which others learn what it is, and on which nothing is written yet."""

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
    """Have the whole command take the place of this process."""
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, AGAIN: "1"})
