"""Where it would bend: 200 accounts and ten clusters of 100 nodes, at up to ten million runs a day, in virtual time and
with the real planner; and what a tick has to do for each live run."""

import fcntl
import heapq
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Final

from claudomator_py.domain.agent import ModelChoice, Tier
from claudomator_py.domain.host import HostSpec, HostType, choose_host
from claudomator_py.domain.outcome import Provenance, Reason
from claudomator_py.domain.units import DAY_MS, SECOND_MS
from claudomator_py.hosts.local.fate import decide_fate
from claudomator_py.hosts.slurm.engine import Slurm
from claudomator_py.scheduler.plan import Planner, StartRun
from claudomator_py.scheduler.snapshot import ActiveHold, AgentState, QueueHead, Snapshot
from tests.fakes.configuration import rules

CLUSTERS: Final = 10
NODES: Final = 100
"""Of each."""
RUN_S: Final = 600
"""How long a run takes."""
SPARE: Final = 1.25
"""Slots for each run that there is at a time."""
LIMITED: Final = 10
"""One account of so many is at its limit, each for ten minutes in turn."""
STARTS: Final = 400
"""After so many a day is judged."""
LOADS: Final = ((20, 100_000), (20, 1_000_000), (200, 1_000_000), (200, 10_000_000))
LIVE: Final = 1_000
"""Runs whose directories are looked at."""
LISTED: Final = 70_000
MODELS: Final = {tier: ModelChoice(model=tier.value) for tier in Tier}
BEGIN_MS: Final = 1_790_000_000_000


def measure() -> None:
    """Print what a start costs by the number of accounts and of runs a day, and what each live run does."""
    for accounts, a_day in LOADS:
        _say(Day(accounts, a_day).pass_by())
    _say(_looks())
    _say(_listings())


class Day:
    """A stretch of a day in virtual time, in which as many runs begin as end."""

    def __init__(self, accounts: int, a_day: int) -> None:
        self._random = Random(accounts + a_day)  # noqa: S311 - no secret
        self._a_day = a_day
        self._names = [f"a{number:03}" for number in range(accounts)]
        live = round(a_day * RUN_S * SECOND_MS / DAY_MS)
        self._slots = max(1, round(live * SPARE / accounts))
        self._active = Counter(self._names[number % accounts] for number in range(live))
        self._clusters = Counter(f"c{number % CLUSTERS}" for number in range(live))
        self._ends = [
            (
                BEGIN_MS + self._random.randrange(RUN_S * SECOND_MS),
                self._names[number % accounts],
                f"c{number % CLUSTERS}",
            )
            for number in range(live)
        ]
        heapq.heapify(self._ends)
        self._now = BEGIN_MS

    def pass_by(self) -> str:
        """Return what it took, in words."""
        waiting: list[QueueHead] = []
        begun = asked = worst = 0
        took_s = 0.0
        while begun < STARTS:
            self._now += SECOND_MS
            while self._ends and self._ends[0][0] <= self._now:
                _, account, cluster = heapq.heappop(self._ends)
                self._active[account] -= 1
                self._clusters[cluster] -= 1
            while asked < self._a_day * (self._now - BEGIN_MS) / DAY_MS:
                waiting.append(_head(asked, self._now))
                asked += 1
            began = time.process_time()
            planner = Planner(self._snapshot())
            for head in list(waiting):
                action = planner.consider(head)
                if not isinstance(action, StartRun):
                    break
                waiting.remove(head)
                cluster = choose_host([f"c{number}" for number in range(CLUSTERS)], self._clusters, {})
                self._clusters[cluster] += 1
                self._active[action.decision.agent] += 1
                heapq.heappush(self._ends, (self._now + RUN_S * SECOND_MS, action.decision.agent, cluster))
                begun += 1
            took_s += time.process_time() - began
            worst = max(worst, len(waiting))
        rate = self._a_day * SECOND_MS / DAY_MS
        live = sum(self._active.values())
        return (
            f"{len(self._names):4} accounts, {self._a_day:10,} runs a day: {took_s / begun * 1000:6.2f} ms of planning"
            f" a start, {took_s / begun * rate:5.0%} of a processor; {live:,} live,"
            f" {live / CLUSTERS / NODES:.1f} on a node; {worst} waited at most"
        )

    def _snapshot(self) -> Snapshot:
        turn = self._now // (RUN_S * SECOND_MS) % LIMITED
        agents = tuple(
            AgentState(
                name=name,
                kind="claude",
                active=self._active[name],
                max_concurrent=self._slots,
                auto_select=True,
                models=MODELS,
                holds=(_hold(name, self._now),) if number % LIMITED == turn else (),
            )
            for number, name in enumerate(self._names)
        )
        live = sum(self._active.values())
        return Snapshot(now=self._now, rules=rules(total=10**6), agents=agents, live=live, busy={})


def _hold(name: str, now_ms: int) -> ActiveHold:
    reason, known = Reason.RATE_LIMITED, Provenance.REPORTED
    until = now_ms + RUN_S * SECOND_MS
    return ActiveHold(bucket=f"claude/{name}", reason=reason, until=until, provenance=known, source="five_hour")


def _head(number: int, now_ms: int) -> QueueHead:
    return QueueHead(
        task_id=f"t{number}", name=f"t{number}", version=1, lane="", dir_key="", rank=now_ms + number, created=now_ms
    )


def _looks() -> str:
    """Return what it takes to see that a run lives."""
    with tempfile.TemporaryDirectory() as folder:
        held = []
        for number in range(LIVE):
            path = Path(folder, str(number))
            path.mkdir()
            (path / "started").touch()
            held.append((path / "lock").open("wb"))
            fcntl.flock(held[-1], fcntl.LOCK_EX)
        began = time.process_time()
        for number in range(LIVE):
            decide_fate(f"{folder}/{number}", awaited=lambda: True)
        each_s = (time.process_time() - began) / LIVE
        for file in held:
            file.close()
    return f"a look at a live run: {each_s * 1e6:.0f} us, on a local disk; at {LISTED:,}: {each_s * LISTED:.1f} s"


def _listings() -> str:
    """Return what it takes to read what Slurm lists once a second."""
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder, "listed")
        listed.write_text("".join(f"cl-{number:032x}-0|RUNNING|None|n{number % 1000}\n" for number in range(LISTED)))
        program = Path(folder, "squeue")
        program.write_text(f"#!/bin/sh\ncat {listed}\n")
        program.chmod(0o755)
        before, os.environ["PATH"] = os.environ["PATH"], f"{folder}:{os.environ['PATH']}"
        try:
            engine = Slurm(HostSpec(kind=HostType.SLURM, root=folder))
            began = time.process_time()
            assert len(engine.list().jobs) == LISTED
            took_s = time.process_time() - began
            engine.close()
        finally:
            os.environ["PATH"] = before
    return f"a list of {LISTED:,} jobs: {took_s:.2f} s to read"


def _say(text: str) -> None:
    sys.stdout.write(f"  {text}\n")
