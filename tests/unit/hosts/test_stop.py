"""Ending processes that make it hard."""

import os
import signal
import subprocess
import time

from claudomator_py.hosts.shim import procfs
from claudomator_py.hosts.shim.stop import end_all


def test_what_was_never_there_is_ended_at_once() -> None:
    stopped = end_all(list, 10, time.sleep)
    assert (stopped.signalled, stopped.left) == (0, [])


def test_those_who_fork_faster_than_one_can_look_are_ended_by_their_group() -> None:
    """Every look finds one who is dead by the time of its signal, as a process that hops from fork to fork is."""
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        gone = procfs.Process(pid=process.pid, ppid=1, pgid=process.pid, state=b"R", start=0, times=[])
        end_all(lambda: [gone] if process.poll() is None else [], 0, time.sleep)
        assert process.returncode == -signal.SIGKILL


def test_what_does_not_end_is_given_up_at_the_deadline_and_named() -> None:
    endless = procfs.Process(pid=os.getpid(), ppid=1, pgid=os.getpgrp(), state=b"D", start=0, times=[])
    stopped = end_all(lambda: [endless], 0, time.sleep, deadline=time.monotonic() + 0.1)
    assert stopped.left == [endless]
