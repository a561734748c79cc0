"""Workers of a test run, forked from a process that has imported all test modules.

Each would import them itself, at the same time: two thirds of the CPU of collecting them. What most would make once, in
seconds, is made here, too.
"""

import atexit
import gc
import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from _pytest.pathlib import ImportMode, import_path
from execnet import gateway_io
from execnet.gateway_base import Popen2IO

_MANY_MODULES = 100
"""In so many, some in each worker need what is made once."""


def fork_workers(config: pytest.Config, number: int) -> None:
    """Have so many ready for pytest-xdist, which starts any further one itself. This process must have no threads."""
    packages, modules = bool(config.getini("consider_namespace_packages")), list(_modules(config))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for path in modules:
            try:
                import_path(path, mode=ImportMode.importlib, root=config.rootpath, consider_namespace_packages=packages)
            except (Exception, pytest.skip.Exception):  # a worker meets it again, and reports it
                _forget(path)
        if len(modules) >= _MANY_MODULES:
            with suppress(Exception):  # likewise
                _make_once()
    gc.freeze()
    ready: list[_Worker] = []
    for _ in range(number):
        ready.append(_Worker(ready))

    class ReadyFirst(gateway_io.Popen2IOMaster):
        def __init__(self, args: list[str], execmodel: Any) -> None:
            if not ready:
                super().__init__(args, execmodel)
                return
            self.popen = worker = ready.pop(0)
            Popen2IO.__init__(self, worker.stdin, worker.stdout, execmodel)

    setattr(gateway_io, "Popen2IOMaster", ReadyFirst)  # noqa: B010 - what the module looks up


def _make_once() -> None:
    from claudomator_py.api.page import rendering
    from tests.databases import migrated_file
    from tests.fakes.daemon import openapi_document

    openapi_document()
    for begun in (False, True):
        migrated_file(begun)
    templates = rendering._environment()
    for name in templates.list_templates():
        templates.get_template(name)


def _forget(path: Path) -> None:
    """Else pytest would take the half of that module for the whole."""
    for name, module in [*sys.modules.items()]:
        if getattr(module, "__file__", None) == str(path):
            del sys.modules[name]


def _modules(config: pytest.Config) -> Iterator[Path]:
    """Those that this run collects."""
    for name in config.args:
        path = config.invocation_params.dir / name.partition("::")[0]
        yield from [path] if path.is_file() else sorted(path.rglob("test_*.py"))


class _Worker:
    """What execnet uses of a ``subprocess.Popen``. others: those before it, whose pipes are none of its own."""

    def __init__(self, others: "list[_Worker]") -> None:
        (given, stdin), (stdout, told) = os.pipe(), os.pipe()
        self.stdin, self.stdout = os.fdopen(stdin, "wb"), os.fdopen(stdout, "rb")
        self._pid = os.fork()
        if self._pid == 0:
            for worker in (*others, self):
                worker.stdin.close()
                worker.stdout.close()
            _work(given, told)
        os.close(given)
        os.close(told)

    def wait(self) -> int:
        """Return its exit status."""
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def kill(self) -> None:
        """End it."""
        os.kill(self._pid, 9)


def _work(given: int, told: int) -> None:
    """Do what is asked for at the first descriptor, answer at the second, and end."""
    code = 1
    try:
        for target, fd in enumerate((given, told)):
            os.dup2(fd, target)
            os.close(fd)
        sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
        exec(gateway_io.popen_bootstrapline, {"__name__": "__main__"})
        atexit._run_exitfuncs()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)
