"""A night in virtual time: the real service on a real store, and agents whose quota, faults and speed a seed decides.

Everything follows from the seed: tasks, how long each run works, what it meets, and when the daemon crashes. After each
tick the properties that an operator relies on are checked against what the simulation knows itself, not against what
the service believes.
"""

import heapq
import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from claudomator_py.domain import crashpoint
from claudomator_py.domain.agent import AgentSpec, ModelChoice, Tier
from claudomator_py.domain.outcome import Outcome
from claudomator_py.domain.units import HOUR_MS, MINUTE_MS, SECOND_MS
from claudomator_py.store import run_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import Run
from tests.fakes.world import START_MS, World
from tests.simulation.accounts import Account, Window

UNIT_MS = MINUTE_MS
POLL_MS = SECOND_MS
MAX_MS = 60 * 24 * HOUR_MS
ENDED = ("COMPLETED", "FAILED", "CANCELLED")
MODELS = {Tier.FAST: ModelChoice(model="small"), Tier.BALANCED: ModelChoice(model="middling")}
# On the tick's own thread, so that an exception there ends the tick as kill -9 would.
CRASHES = (
    "tick-begin",
    "tick-end",
    "start-prepared",
    "start-committed",
    "start-spawned",
    "outcome-read",
    "finish-begin",
    "finish-committed",
)


class Crash(BaseException):
    """The daemon is gone, in the middle of a tick."""


@dataclass(frozen=True)
class Weather:
    """What goes wrong, as chances a run; and how often the daemon crashes, as a chance a tick."""

    fails: float = 0.05
    overloaded: float = 0.02
    lost: float = 0.01
    unreported: float = 0.2
    crashes: float = 0.3


@dataclass
class Job:
    """A run of an agent. left: units until it is done. met: how it ends then."""

    run: Run
    name: str
    left: int
    met: str
    spent: int = 0


@dataclass
class Report:
    """What a night came to. Times in milliseconds; lower_bound: no plan could have done it in less.

    avoidable: limits that a run met before it had done anything. wasted_units: minutes of work of runs that did not
    succeed.
    """

    makespan: int = 0
    lower_bound: int = 0
    runs: int = 0
    limits: int = 0
    avoidable: int = 0
    crashes: int = 0
    wasted_units: int = 0
    states: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        ratio = self.makespan / max(1, self.lower_bound)
        return (
            f"{dict(self.states)} in {self.makespan / HOUR_MS:.1f} h ({ratio:.2f} of the lower bound), "
            f"{self.runs} runs, {self.limits} limits met, {self.avoidable} of them avoidable, "
            f"{self.wasted_units} minutes of work lost, "
            f"{self.crashes} crashes"
        )


class Night:
    """One simulation. Run it with ``play``."""

    def __init__(
        self,
        database: Database,
        seed: int,
        *,
        tasks: int,
        accounts: Mapping[str, Account],
        agents: Sequence[AgentSpec],
        weather: Weather,
        total: int = 6,
        directories: int = 5,
    ) -> None:
        self.seed = seed
        self.chance = random.Random(f"night/{seed}")
        self.accounts = accounts
        self.agents = {agent.name: agent for agent in agents}
        self.weather = weather
        self.total = total
        self.world = World(database, agents=agents, total=total)
        self.jobs: dict[str, Job] = {}
        self.turns: list[tuple[int, str]] = []
        self.report = Report()
        self.started: Counter[str] = Counter()
        self.plain: list[str] = []
        self.left: dict[str, int] = {}
        self._submit(tasks, directories)

    def play(self) -> Report:
        """The whole night; what it came to. Fails at the first property that does not hold, naming the seed."""
        while True:
            wake = self._tick()
            if not self.jobs and self._ended():
                break
            self._go_on(wake)
            assert self.world.now_ms - START_MS < MAX_MS, self._told("it does not come to an end")
        self._close()
        return self.report

    # --- what happens -----------------------------------------------------------------------------------------------

    def _submit(self, count: int, directories: int) -> None:
        for number in range(count):
            name = f"t{number:05}"
            fields: dict[str, object] = {"retry": {"max_attempts": 6, "backoff": "1m"}, "on_lost": "retry"}
            kind = self.chance.random()
            if kind < 0.25:
                fields["working_dir"] = f"/nowhere/repo-{self.chance.randrange(directories)}"
            elif kind < 0.4:
                fields["agent"] = {"type": self.chance.choice(sorted(self.agents))}
            elif kind < 0.5:
                fields["agent"] = {"type": self.chance.choice(sorted(self.agents)), "strict": True}
            elif kind < 0.6 and number:
                fields["depends_on"] = [f"t{self.chance.randrange(number):05}"]
            else:
                self.plain.append(name)
            self.world.submit(name, **fields)
            self.world.now_ms += 1

    def _tick(self) -> int | None:
        crash = self.chance.random() < self.weather.crashes
        if crash:
            point, count = self.chance.choice(CRASHES), self.chance.randrange(1, 4)
            self._crash_at(point, count)
        try:
            wake = self.world.tick().wake_ms
        except Crash:
            self.report.crashes += 1
            crashpoint.install(None)
            self.world.restarted_daemon()
            self.world.reconciler.sweep()
            wake = self.world.tick().wake_ms
        finally:
            crashpoint.install(None)
        self._see_starts()
        self._check()
        return wake

    def _crash_at(self, point: str, count: int) -> None:
        left = count

        def hook(name: str) -> None:
            nonlocal left
            if name == point:
                left -= 1
                if left == 0:
                    raise Crash(point)

        crashpoint.install(hook)

    def _go_on(self, wake: int | None) -> None:
        """To the next moment at which anything happens, and let it happen."""
        turn = self.turns[0][0] if self.turns else None
        if turn is not None and wake is not None and wake <= self.world.now_ms + POLL_MS:
            wake = turn  # it looks again soon at what only a turn of a run can change
        times = [at for at in (wake, turn) if at is not None]
        assert times, self._told("nothing will ever happen again")
        now = self.world.now_ms = max(self.world.now_ms + 1, min(times))
        self.world.host.now_ms = now
        while self.turns and self.turns[0][0] <= now:
            _, run_id = heapq.heappop(self.turns)
            if run_id in self.jobs:
                self._turn(self.jobs[run_id], now)

    def _turn(self, job: Job, now: int) -> None:
        account = self.accounts[self.agents[job.run.agent].account]
        refusal = account.take(now)
        if refusal is not None:
            self.report.limits += 1
            # A run that had an answer could not have known; one that had none was started in vain.
            self.report.avoidable += job.spent == 0
            self.left[job.run.id] = job.left
            reported = self.chance.random() >= self.weather.unreported
            if reported:
                account.told = max(account.told, refusal.reset_at)
            known = {"reset_at": refusal.reset_at, "provenance": "reported"} if reported else {}
            self._end(job, status="limited", reason="rate_limited", limit=refusal.window, **known)
            return
        if job.spent == 0:
            self.world.host.write(job.run.id, b"# the model answers\n")
        job.spent += 1
        job.left -= 1
        if job.left > 0:
            heapq.heappush(self.turns, (now + UNIT_MS, job.run.id))
        elif job.met == "lost":
            self.report.wasted_units += job.spent
            self.world.host.kill_shim(job.run.id)
            del self.jobs[job.run.id]
        elif job.met == "ok":
            self._end(job, status="succeeded")
        else:
            self._end(job, status="failed", reason=job.met)

    def _end(self, job: Job, **outcome: object) -> None:
        self.report.wasted_units += job.spent if outcome["status"] == "failed" else 0
        payload = Outcome.model_validate(outcome).model_dump(mode="json")
        self.world.host.write(job.run.id, json.dumps(payload).encode() + b"\n")
        self.world.host.end(job.run.id, 0 if outcome["status"] == "succeeded" else 1)
        del self.jobs[job.run.id]

    def _see_starts(self) -> None:
        for run in self.world.database.read(run_rows.live):
            directory = self.world.host.directories.get((run.id, 0))
            if run.id in self.jobs or directory is None or not directory.started or directory.exit is not None:
                continue
            if not directory.shim:
                continue
            self._begin(run)

    def _begin(self, run: Run) -> None:
        chance = random.Random(f"{self.seed}/{run.task_id}/{run.seq}/{len(self.started)}")
        task = self.world.service.get(run.task_id)
        drawn, weather = chance.random(), self.weather
        met = "ok"
        for name, share in (("agent_error", weather.fails), ("overloaded", weather.overloaded), ("lost", weather.lost)):
            if drawn < share:
                met = name
                break
            drawn -= share
        # A conversation that goes on has done a part of the work already.
        left = self.left.pop(run.resumes or "", None) or min(60, 1 + int(chance.expovariate(1 / 8)))
        job = Job(run, task.name, left, met)
        self.jobs[run.id] = job
        heapq.heappush(self.turns, (self.world.now_ms + UNIT_MS, run.id))
        self.report.runs += 1
        self.started[task.name] += 1
        account = self.accounts[self.agents[run.agent].account]
        assert self.world.now_ms >= account.told, self._told(
            f"{task.name} was started on {run.agent}, whose account had said that it is used up"
        )

    # --- what must hold ---------------------------------------------------------------------------------------------

    def _check(self) -> None:
        live = self.world.database.read(run_rows.live)
        assert len(live) <= self.total, self._told("more runs than slots in all")
        for name, count in Counter(run.agent for run in live).items():
            assert count <= self.agents[name].max_concurrent, self._told(f"more runs than slots on {name}")
        for key, count in Counter(run.dir_key for run in live if run.dir_key).items():
            assert count == 1, self._told(f"{count} runs in {key}")
        assert len({run.task_id for run in live}) == len(live), self._told("a task with two runs")

    def _ended(self) -> bool:
        counts = self.world.overview.status().counts
        return not any(count for state, count in counts.items() if state not in ENDED)

    def _close(self) -> None:
        # Their first runs as they were decided on; a crash may have kept one from beginning.
        decided = [self.world.service.runs(name)[0].started_at or "" for name in self.plain]
        assert decided == sorted(decided), self._told("tasks that differ in their age only were started out of order")
        self.report.states = Counter(self.world.overview.status().counts)
        self.report.makespan = self.world.now_ms - START_MS
        self.report.lower_bound = self._lower_bound()

    def _lower_bound(self) -> int:
        """When the accounts and slots could have done that many units at the earliest."""
        units = sum(account.used for account in self.accounts.values())
        elapsed = -(-units // self.total) * UNIT_MS
        while sum(account.most_by(elapsed) for account in self.accounts.values()) < units:
            elapsed += UNIT_MS
        return elapsed

    def _told(self, what: str) -> str:
        now = (self.world.now_ms - START_MS) / HOUR_MS
        return f"seed {self.seed}, after {now:.2f} h: {what}"


def claude_and_codex(scale: int) -> tuple[dict[str, Account], list[AgentSpec]]:
    """Two agents of one login, one of another, and one with little quota. scale: units of the five-hour windows."""

    def account(capacity: int) -> Account:
        return Account(
            [Window("five_hour", 5 * HOUR_MS, capacity), Window("seven_day", 7 * 24 * HOUR_MS, capacity * 20)]
        )

    accounts = {"work": account(scale), "home": account(scale // 2), "openai": account(scale // 3)}
    agents = [
        AgentSpec(name="claude", kind="claude", account="work", max_concurrent=3, models=MODELS),
        AgentSpec(name="claude-home", kind="claude", account="home", max_concurrent=2, models=MODELS),
        AgentSpec(name="codex", kind="codex", account="openai", max_concurrent=2, models=MODELS),
    ]
    return accounts, agents
