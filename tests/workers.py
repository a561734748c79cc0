"""Workers that run tests in parallel, forked once all tests are collected.

To import and collect them takes six seconds of CPU, and messages between processes that share nothing take as much as
many a test.
"""

import fcntl
import mmap
import os
import random
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, NoReturn

import pytest
from _pytest.runner import runtestprotocol


class Workers:
    """The workers of a session. They run its tests, and this process reports them."""

    def __init__(self, session: pytest.Session, number: int) -> None:
        self._session = session
        self._shares = _Shares(len(session.items), number)
        self._reported: set[int] = set()
        self._readers: dict[Connection, int] = {}
        """By where its reports come from, the process id of a worker."""

    def run(self) -> None:
        """Run all tests, unless the session is to stop after some."""
        self._session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        try:
            for number in range(self._shares.number):
                self._start(number)
            self._report()
        except BaseException:
            self._shares.drop()
            raise
        finally:
            for reader in [*self._readers]:
                self._end_of(reader)

    def _start(self, number: int) -> None:
        reader, writer = Pipe(duplex=False)
        with warnings.catch_warnings():
            # Python counts a thread of NumPy's library, which ends it before a fork.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid:
            writer.close()
            self._readers[reader] = pid
            return
        for other in (reader, *self._readers):
            other.close()
        _Worker(self._session, self._shares, number, writer).work()

    def _end_of(self, reader: Connection) -> int:
        """Wait for the worker's end, which it comes to where nobody reads any more; return its status."""
        reader.close()
        return os.waitstatus_to_exitcode(os.waitpid(self._readers.pop(reader), 0)[1])

    def _report(self) -> None:
        statuses = []
        while self._readers:
            for reader in wait([*self._readers]):
                assert isinstance(reader, Connection)
                try:
                    number, reports = reader.recv()
                except EOFError:
                    statuses.append(self._end_of(reader))
                    continue
                self._log(number, reports)
            if self._session.shouldfail or self._session.shouldstop:
                self._shares.drop()
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)
        for number in {*range(len(self._session.items))} - self._reported:
            self._log(number, [_unfinished(self._session.items[number], f"workers have ended with {statuses}")])

    def _log(self, number: int, reports: list[Any]) -> None:
        item, config = self._session.items[number], self._session.config
        self._reported.add(number)
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for data in reports:
            report = config.hook.pytest_report_from_serializable(config=config, data=data)
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _unfinished(item: pytest.Item, why: str) -> Any:
    report = pytest.TestReport(item.nodeid, item.location, {}, "failed", f"No worker has finished it: {why}.", "call")
    return item.config.hook.pytest_report_to_serializable(config=item.config, report=report)


class _Worker:
    """One of them, in a process of its own."""

    def __init__(self, session: pytest.Session, shares: "_Shares", number: int, writer: Connection) -> None:
        self._session, self._shares, self._number, self._writer = session, shares, number, writer
        self._test = 0

    def work(self) -> NoReturn:
        """Run tests until none is left, and end without a look at what the first process has to put away."""
        code = 1
        try:
            self._set_up()
            self._run()
            code = 0
        except Exception:
            self._writer.send((self._test, [_unfinished(self._session.items[self._test], traceback.format_exc())]))
        finally:
            os._exit(code)

    def _set_up(self) -> None:
        """Share nothing with the others: neither captured output, nor chance, nor temporary folders."""
        config: Any = self._session.config
        capturing = config.pluginmanager.getplugin("capturemanager")
        capturing.stop_global_capturing()
        capturing.start_global_capturing()
        random.seed()
        folder = config._tmp_path_factory.getbasetemp() / str(self._number)
        folder.mkdir(mode=0o700)
        config._tmp_path_factory._basetemp = folder
        config.pluginmanager.register(self)

    def _run(self) -> None:
        hook, items = self._session.config.hook, self._session.items
        number = self._shares.take(self._number)
        while number is not None:
            following = self._shares.take(self._number)
            self._test = number
            hook.pytest_runtest_protocol(item=items[number], nextitem=None if following is None else items[following])
            number = following

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Of what comes before and after the test, only what has failed or was skipped is reported."""
        config, reports = item.config, runtestprotocol(item, log=False, nextitem=nextitem)
        to_report = (report for report in reports if report.when == "call" or not report.passed)
        serializable = config.hook.pytest_report_to_serializable
        self._writer.send((self._test, [serializable(config=config, report=report) for report in to_report]))
        return True


class _Shares:
    """The tests that each worker has yet to take: a stretch each, in memory that all of them share.

    Tests of a module stay together, with what is made for the module. Whoever has none left takes half of the longest.
    """

    def __init__(self, tests: int, workers: int) -> None:
        self.number = workers
        self._lock = os.memfd_create("shares")
        os.truncate(self._lock, 16 * workers)
        self._ends = memoryview(mmap.mmap(self._lock, 0)).cast("q")
        for number in range(workers):
            self._set(number, tests * number // workers, tests * (number + 1) // workers)

    def take(self, worker: int) -> int | None:
        """Return the next test for that worker, by its place; None where no test is left."""
        with self._locked():
            begin, end = self._share(worker)
            if begin == end:
                other = max(range(self.number), key=self._left)
                first, end = self._share(other)
                begin = (first + end) // 2
                self._set(other, first, begin)
            if begin == end:
                return None
            self._set(worker, begin + 1, end)
            return begin

    def drop(self) -> None:
        """Leave none to be taken."""
        with self._locked():
            for number in range(self.number):
                self._set(number, 0, 0)

    def _left(self, worker: int) -> int:
        begin, end = self._share(worker)
        return end - begin

    def _share(self, worker: int) -> tuple[int, int]:
        return self._ends[2 * worker], self._ends[2 * worker + 1]

    def _set(self, worker: int, begin: int, end: int) -> None:
        self._ends[2 * worker], self._ends[2 * worker + 1] = begin, end

    @contextmanager
    def _locked(self) -> Iterator[None]:
        # Of this process, not of the open file, which all have in common; and free again when it has ended.
        fcntl.lockf(self._lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._lock, fcntl.LOCK_UN)
