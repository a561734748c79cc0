"""A module's unit tests, run against the module as it is and against its mutants, each in a process of its own."""

import gc
import importlib.util
import json
import math
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.mutants import PACKAGE, ROOT

_Object = TypeVar("_Object")
_CACHED = type(cache(len))
"""What a function with a cache is."""
_Place = tuple[str, int]
"""A function of a module: its qualified name and its first line."""

MAX_TEST_S = 30
"""Seconds for one test of a mutant, of which none takes three: one that never ends is noticed too."""


class Tests:
    """The unit tests of one module, in a process that has collected them."""

    def __init__(self, module: str, paths: Sequence[str]) -> None:
        self._paths = paths
        self._file = ROOT / PACKAGE / module
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process lives
        self._seconds: dict[str, float] = {}
        self._reached: dict[str, set[_Place]] = {}
        self._loaded: list[FunctionType] = []
        self._whole = compile(self._file.read_text(), str(self._file), "exec")
        self._longest_s = math.inf
        began = time.monotonic()
        with tempfile.NamedTemporaryFile() as file_wrapper:
            self.passed = in_child(lambda: self._run(_Watch(str(self._file), Path(file_wrapper.name))), math.inf) == 0
            if self.passed:
                self._seconds, reached = json.loads(Path(file_wrapper.name).read_text())
                self._reached = {test: {(name, line) for name, line in places} for test, places in reached.items()}
        # On a busy machine all of them take longer, and what is only slow has noticed nothing.
        self._longest_s = max(MAX_TEST_S, time.monotonic() - began)
        if self.passed:
            self._collect()
            forget(PACKAGE)
            _migrate()
            self._loaded = loaded(str(self._file))
            # Else every mutant that is imported would seem to be noticed.
            self.passed = self.run(self._whole) == 0

    def output(self) -> str:
        """What pytest printed last."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def run(self, code: CodeType) -> int | None:
        """Run them on the module with that code: 0 if none fails; None: they did not end in time."""
        was, now = _functions(self._whole), _functions(code)
        changed = [place for place in was if was[place] != now.get(place)]
        # What no test has called may be what is called when the module is imported.
        called = any(not places.isdisjoint(changed) for places in self._reached.values())
        if called and _imported(self._whole) == _imported(code) and set(was) == set(now):
            work = partial(self._run_with, {place: now[place] for place in changed})
        else:
            work = partial(self._run_anew, code, changed)
        return in_child(work, 4 * self._longest_s)

    def _collect(self) -> None:
        kept, folder = (os.dup(1), os.dup(2)), tempfile.tempdir
        try:
            self._redirect()
            pytest.main([*_OPTIONS, "--collect-only", *self._paths])
        finally:
            tempfile.tempdir = folder  # that of the tests is gone with them
            os.dup2(kept[0], 1)
            os.dup2(kept[1], 2)

    def _run_with(self, exchanged: dict[_Place, CodeType]) -> int:
        exchange(self._loaded, exchanged)
        return self._run(self._order(exchanged))

    def _run_anew(self, code: CodeType, changed: Sequence[_Place]) -> int:
        """With something that is done when the module is imported: nothing of the package may be loaded yet, nor
        anything that knows its tables."""
        loaded = ("tests", PACKAGE, "sqlmodel")
        for name in [name for name in sys.modules if name.split(".")[0] in loaded]:
            del sys.modules[name]
        name = ".".join((PACKAGE, *self._file.relative_to(ROOT / PACKAGE).with_suffix("").parts))
        name = name.removesuffix(".__init__")
        sys.meta_path.insert(0, _Exchanged(name, self._file, code))
        return self._run(self._order(changed))

    def _order(self, changed: Iterable[_Place]) -> "_Order":
        """Those first that called what is changed, and of these the ones that took least."""
        reaching = {test for test, places in self._reached.items() if not places.isdisjoint(changed)}
        return _Order({test: (test not in reaching, took) for test, took in self._seconds.items()})

    def _run(self, plugin: object) -> int:
        self._redirect()
        with tempfile.TemporaryDirectory() as folder:
            longest_s = 0 if self._longest_s == math.inf else self._longest_s
            options = [*_OPTIONS, f"--timeout={longest_s}", f"--basetemp={folder}/pytest"]
            return int(pytest.main([*options, *self._paths], plugins=[plugin]))

    def _redirect(self) -> None:
        self._log.truncate(0)
        self._log.seek(0)
        os.dup2(self._log.fileno(), 1)
        os.dup2(self._log.fileno(), 2)


# Few examples: what only the hundredth finds by luck is not held. One that fails is enough, and need not be small.
settings.register_profile(
    "mutants",
    deadline=None,
    suppress_health_check=list(HealthCheck),
    max_examples=25,
    phases=(Phase.explicit, Phase.generate),
)
_PROFILE = ["--hypothesis-seed=0", "--hypothesis-profile=mutants"]
# What is imported already is not rewritten, and pytest warns of it.
_IMPORTED = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
_OPTIONS = [
    "-x",
    "-q",
    # The others look up the source of each frame, which takes longer than the tests do.
    "--tb=native",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:randomly",
    # What is decided does not depend on the database.
    "-k",
    "not postgresql",
    *_PROFILE,
    *_IMPORTED,
]


class _Watch:
    """Writes to a file what each test took, and which functions of the module it called."""

    def __init__(self, module: str, path: Path) -> None:
        self._module = module
        self._told = path
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._reached: dict[str, set[_Place]] = defaultdict(set)
        self._calls: set[_Place] = set()

    def pytest_sessionstart(self) -> None:
        threading.settrace(self._trace)
        sys.settrace(self._trace)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration
        self._reached[report.nodeid] |= self._calls
        self._calls.clear()

    def pytest_sessionfinish(self) -> None:
        reached = {test: sorted(places) for test, places in self._reached.items()}
        self._told.write_text(json.dumps([self._seconds, reached]))

    def _trace(self, frame: FrameType, event: str, arg: object) -> None:
        code = frame.f_code
        if code.co_filename == self._module:
            self._calls.add((code.co_qualname, code.co_firstlineno))


class _Order:
    """The tests in the order of their rank; a new one goes last."""

    def __init__(self, ranks: Mapping[str, tuple[bool, float]]) -> None:
        self._ranks = ranks

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: self._ranks.get(item.nodeid, (True, math.inf)))


class _Exchanged(MetaPathFinder, InspectLoader):
    """Loads one module from code that is given."""

    def __init__(self, name: str, file: Path, code: CodeType) -> None:
        self._name, self._file, self._code = name, file, code

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        inside = [str(self._file.parent)] if self._file.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            fullname, self._file, loader=self, submodule_search_locations=inside
        )

    def get_code(self, fullname: str) -> CodeType:
        return self._code

    def get_source(self, fullname: str) -> str:
        return self._file.read_text()


def _migrate() -> None:
    """Have the tables that tests copy made here, and not by each process anew."""
    from tests.databases import put_migrated  # It loads the package.

    with tempfile.TemporaryDirectory() as folder:
        put_migrated(Path(folder))


def loaded(file: str) -> list[FunctionType]:
    """The functions of that file, as they are in memory."""
    return [function for function in _in_memory(FunctionType) if function.__code__.co_filename == file]


def forget(package: str) -> None:
    """Empty the caches of its functions: what a test asked while it was collected would be what every mutant says."""
    for function in _in_memory(_CACHED):
        if function.__module__.split(".")[0] == package:
            function.cache_clear()


def _in_memory(kind: type[_Object]) -> list[_Object]:
    gc.unfreeze()  # What the tests' conftest has frozen would not be seen.
    # By type(), since isinstance() asks a weak proxy for what may be gone.
    objects = [one for one in gc.get_objects() if type(one) is kind]
    gc.freeze()
    return objects


def exchange(functions: Iterable[FunctionType], codes: Mapping[_Place, CodeType]) -> None:
    """Give them another code, by name and first line."""
    for function in functions:
        place = function.__code__.co_qualname, function.__code__.co_firstlineno
        function.__code__ = codes.get(place, function.__code__)


def _functions(code: CodeType) -> dict[_Place, CodeType]:
    """The functions and methods of a module, by name and first line; what is inside of one belongs to it."""
    result: dict[_Place, CodeType] = {}
    for part in _parts(code):
        if not part.co_flags & CO_OPTIMIZED:
            result |= _functions(part)
        elif not part.co_name.startswith("<"):
            result[part.co_qualname, part.co_firstlineno] = part
    return result


def _imported(code: CodeType) -> list[object]:
    """What is done when a module is imported: its own code, that of its classes, and what these evaluate in passing."""
    results: list[object] = [code.co_code, *(entry for entry in code.co_consts if not isinstance(entry, CodeType))]
    for part in _parts(code):
        if not part.co_flags & CO_OPTIMIZED:
            results += _imported(part)
        elif part.co_name.startswith("<"):
            results.append(part)
    return results


def _parts(code: CodeType) -> Iterator[CodeType]:
    return (entry for entry in code.co_consts if isinstance(entry, CodeType))


def in_child(work: Callable[[], int], longest_s: float) -> int | None:
    """What it returned in a process of its own; None: it was ended, as it took too long."""
    # It ends without what Python does at its end, such as to remove what is temporary.
    with tempfile.TemporaryDirectory(prefix="m", ignore_cleanup_errors=True) as folder:
        pid = os.fork()
        if not pid:
            os.setpgid(0, 0)
            tempfile.tempdir = folder
            code = 1
            try:
                code = work()
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        deadline = time.monotonic() + longest_s
        while time.monotonic() < deadline:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.01)
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return None
