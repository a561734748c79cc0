"""A simulated night with the real daemon: real processes, a real store, and services that follow the clock.

All choices come from the seed: the work, when the daemon is killed and for how long it stays away, and how the night
ends. The timing of a machine is its own.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.schedule import CatchUp, Overlap
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import SECOND_MS
from claudomator_py.resources.tasks import TaskView
from tests.e2e.daemon import Daemon
from tests.e2e.invariants import hold as hold_invariants
from tests.e2e.site import SETTLED, Site
from tests.fakes.steps import from_document
from tests.nights import cost
from tests.nights.outside import Outside, Service, Trouble, now_ms
from tests.nights.promises import avoidable, keep
from tests.nights.records import Records, Span, read
from tests.nights.timeline import Moment, moments, strips, timeline
from tests.nights.work import HOPELESS, Job, jobs
from tests.patience import wait_until
from tests.simulation.accounts import Account, Window

TOTAL = 6
SLOTS = {"alpha": 3, "beta": 2, "gamma": 2}
UNIT_MS = 300
STUCK_S = 60.0
MOMENT_MS = 250
HOURLY = TaskSpec(
    name="hourly",
    instructions="Look around: units=1 fails=0.",
    schedule="* * * * *",
    overlap=Overlap.QUEUE,
    catch_up=CatchUp.ALL,
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a night is to be like. window_ms, capacity: of the account of alpha; beta's is a little shorter and smaller.

    comes_back: at the end the operator logs gamma in again; else gives up what insists on it.
    """

    tasks: int
    kills: int
    window_ms: int
    capacity: int
    outage_ms: int = 2 * SECOND_MS
    comes_back: bool = True


@dataclass(frozen=True, slots=True)
class Turning:
    """Something that is to happen once so many tasks are done, and a moment later."""

    done: int
    delay_s: float
    act: Callable[[], None]


@dataclass
class Night:
    """One night on one site."""

    site: Site
    seed: int
    plan: Plan
    outside: Outside
    random: Random = field(init=False)
    jobs: list[Job] = field(init=False)
    happened: list[Moment] = field(default_factory=list)
    lives: list[Span] = field(default_factory=list)
    acknowledged: set[str] = field(default_factory=set)
    files: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = Random(f"night/{self.seed}")
        self.jobs = jobs(self.random, self.site, self.plan.tasks, str(self.site.root / "effects"))
        self.site.configure(
            agents={
                name: {
                    "kind": "simulated",
                    "auto_select": True,
                    "account": name,
                    "max_concurrent": slots,
                    "script": f"service={self.outside.url(name)}",
                }
                for name, slots in SLOTS.items()
            },
            concurrency={"total": TOTAL},
            # Of a night that lasts minutes, the usual two would be hours.
            balancing={"prefer_wait": "0s"},
        )
        for number in range(9):
            (self.site.work / f"repository-{number}").mkdir(exist_ok=True)

    def play(self) -> str:
        """The whole night; its report. Fails at the first promise that is broken, naming the seed."""
        self._start()
        self._hand_in()
        began = now_ms()
        self.daemon.client.undrain()
        for turning in sorted(self._turnings(), key=lambda turning: turning.done):
            self._until_done(turning.done)
            time.sleep(turning.delay_s)
            turning.act()
        given_up = self._morning()
        ended = now_ms()
        assert self.daemon.stop() == 0
        self._over()
        hold_invariants(self.site, acknowledged=self.acknowledged, file_names=self.files)
        agents = [
            AgentSpec(name=name, kind="simulated", account=name, max_concurrent=slots) for name, slots in SLOTS.items()
        ]
        records = read(self.site, agents, TOTAL, now_ms())
        text = self._report(records, Span(began, ended))
        try:
            keep(records, self.outside, self.jobs, given_up)
        except AssertionError as failure:
            raise AssertionError(f"seed {self.seed}: {failure}\n{text}") from None
        return text

    # --- what happens -----------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self._began = now_ms()
        self.daemon: Daemon = self.site.start().ready()

    def _over(self) -> None:
        self.lives.append(Span(self._began, now_ms()))

    def _hand_in(self) -> None:
        """Half of it as files, half through the API; nothing begins before all is there."""
        client = self.daemon.client
        client.drain("the night's work is being handed in")
        for job in self.jobs:
            spec = from_document(job.content)
            if self.random.random() < 0.5:
                self.files.append(job.name)
                self.site.drop(f"{job.name}.md", _markdown(job.content))
            else:
                self.acknowledged.add(client.submit(spec).id)
        client.add_schedule(HOURLY)
        wait_until(lambda: sum(client.status().counts.values()) >= len(self.jobs), "all tasks to be taken", STUCK_S)

    def _turnings(self) -> list[Turning]:
        """Kills at random moments; between them an outage, a login that expires, and an operator's wish."""
        count = self.plan.tasks
        kills = [
            Turning(self.random.randrange(count // 20, count * 8 // 10), self.random.uniform(0, 1), self._kill)
            for _ in range(self.plan.kills)
        ]
        services = self.outside.services

        def trouble(kind: Trouble | None) -> Callable[[], None]:
            def act() -> None:
                services["alpha"].trouble = kind
                self._happens("alpha's service is well again" if kind is None else f"alpha's service: {kind}")

            return act

        def expire() -> None:
            services["gamma"].logged_in = False
            self._happens("gamma's login expires")

        def wish() -> None:
            self.daemon.client.run_schedule("hourly")
            self._happens("an operator runs `hourly` now")

        outage_s, at = self.plan.outage_ms / SECOND_MS, count // 5
        return [
            *kills,
            Turning(count // 10, 0, wish),
            Turning(at, 0, trouble("overloaded")),
            Turning(at, outage_s, trouble("network")),
            Turning(at, outage_s, trouble(None)),
            Turning(count * 35 // 100, self.random.uniform(0, 1), expire),
        ]

    def _kill(self) -> None:
        self.daemon.kill()
        self._over()
        away_s = self.random.uniform(0, 2)
        self._happens(f"the daemon is killed, and is away for {away_s:.1f} s")
        time.sleep(away_s)
        self._start()
        self._happens("the daemon is ready again")

    def _until_done(self, count: int) -> None:
        """Until so many tasks are done; fails when nothing goes forward."""
        while self.outside.done < count:
            self._go_forward(lambda: self.outside.done >= count, f"{count} tasks to be done")

    def _morning(self) -> frozenset[str]:
        """All is done but what insists on gamma, and says so. Then an operator comes; the tasks that are given up."""
        self.daemon.client.pause_schedule("hourly")
        stuck = self._stuck()
        insisting = [task for task in stuck if task.state == "QUEUED"]
        self._happens(f"morning: {len(insisting)} tasks wait for gamma's login, {len(stuck) - len(insisting)} for them")
        for task in insisting:
            sentences = self.daemon.client.why(task.id).sentences[0]
            assert (task.state, task.reason) == ("QUEUED", "limited"), (task.name, task.state, task.reason)
            assert "auth" in sentences, sentences
            assert "`claudomator release gamma`" in sentences, sentences
        if self.plan.comes_back:
            self.outside.services["gamma"].logged_in = True
            self.daemon.client.release("gamma")
            self._happens("an operator logs in, and releases gamma")
            given_up: frozenset[str] = frozenset()
        else:
            for task in insisting:
                self.daemon.client.cancel(task.id)
            self._happens("an operator cancels what insists on gamma")
            given_up = frozenset(task.name for task in insisting)
            assert given_up, "whoever insists on gamma was done before its login expired"
        self.site.drain(self.daemon)
        return given_up

    def _stuck(self) -> list[TaskView]:
        """Once nothing runs and nothing goes forward: what has not ended."""
        by_name = {job.name: job for job in self.jobs}

        def left() -> list[TaskView]:
            return [task for task in self.daemon.client.all_tasks() if task.state not in SETTLED]

        def waits(task: TaskView, open_: Sequence[TaskView]) -> bool:
            if task.state == "WAITING":
                names = {other.name for other in open_}
                job = by_name.get(task.name)
                wanted = job.content.get("depends_on", []) if job is not None else []
                return isinstance(wanted, list) and not names.isdisjoint(wanted)
            job = by_name.get(task.name)
            return task.state == "QUEUED" and job is not None and job.strict == "gamma"

        def settled() -> bool:
            counts = self.daemon.client.status().counts
            if (
                counts.get("RUNNING")
                or sum(counts.get(state, 0) for state in ("QUEUED", "WAITING")) > len(self.jobs) // 3
            ):
                return False
            tasks = left()
            return all(waits(task, tasks) for task in tasks)

        while not settled():
            try:
                self._go_forward(settled, "the night's work")
            except AssertionError as failure:
                messages = [(task.name, task.state, task.reason_text) for task in left()]
                raise AssertionError(
                    f"seed {self.seed}: {failure}: {messages}\n{self.site.log_text()[-4000:]}"
                ) from None
        return left()

    def _go_forward(self, over: Callable[[], bool], what: str) -> None:
        """Wait for it, or for anything to happen. Fails when nothing does."""
        before = len(self.outside.turns)
        wait_until(lambda: over() or len(self.outside.turns) > before, what, STUCK_S)

    def _happens(self, text: str) -> None:
        self.happened.append(Moment(now_ms(), text))

    # --- what it came to --------------------------------------------------------------------------------------------

    def _report(self, records: Records, night: Span) -> str:
        states = {state: sum(task.state == state for task in records.tasks.values()) for state in SETTLED}
        ends: dict[str, int] = {}
        for run in records.runs:
            how = run.reason or run.ended_as or run.state
            ends[how] = ends.get(how, 0) + 1
        bound, parts = self._lower_bound(records)
        limits = cost.limits(records)
        refusals = [turn for turn in self.outside.turns if turn.verdict == "limited"]
        early = avoidable(self.outside.turns)
        in_vain = sum(limit.in_vain for limit in limits if limit.reason is Reason.RATE_LIMITED)
        ratio = f"{night.length / max(1, bound):.2f} of the lower bound of {bound / SECOND_MS:.1f} s"
        lines = [
            f"seed {self.seed}: {len(self.jobs)} tasks, {len(self.lives) - 1} kills of the daemon",
            f"{ {state: count for state, count in states.items() if count} }, {len(records.runs)} runs {ends}",
            f"makespan {night.length / SECOND_MS:.1f} s, {ratio} ({parts})",
            f"{len(refusals)} limits met: {early} by a run that had done nothing yet, {in_vain} after it was known",
            "",
            *strips(records, night, self.lives),
            "",
            "What happened",
            *timeline([*self.happened, *moments(records)], night),
            "",
            "What each limit cost",
            *(line for limit in limits for line in (*cost.told(limit, night.begin), *self._untold(limit))),
        ]
        return "\n".join(lines)

    def _untold(self, limit: cost.Limit) -> list[str]:
        """What it cost that the account did not say when it resets."""
        met = {run.id for run in limit.met}
        resets = [turn.reset_at for turn in self.outside.turns if turn.run_id in met and turn.reset_at is not None]
        late = limit.span.end - max(resets, default=limit.span.end)
        return [f"  held {late / SECOND_MS:.1f} s longer than it would have had to be"] if late >= MOMENT_MS else []

    def _lower_bound(self, records: Records) -> tuple[int, str]:
        """When slots and accounts could have done that work at the earliest, if a start took no time; and what of it.

        Of gamma's account counts what was used of it.
        """
        finished = {task.name for task in records.tasks.values() if task.state == "COMPLETED"}
        units = sum(job.units * (1 + min(job.fails, HOPELESS)) for job in self.jobs if job.name in finished)
        accounts = {name: service.account for name, service in self.outside.services.items()}
        elapsed = by_slots = -(-units // TOTAL) * UNIT_MS
        while sum(_most(accounts[name], name, elapsed) for name in accounts) < units:
            elapsed += UNIT_MS
        return elapsed, f"{units} units of {UNIT_MS} ms; {by_slots / SECOND_MS:.1f} s by slots alone"


def _most(account: Account, name: str, elapsed: int) -> int:
    by_slots = SLOTS[name] * elapsed // UNIT_MS
    return min(by_slots, account.most_by(elapsed)) if name != "gamma" else min(by_slots, account.used)


def services(plan: Plan) -> dict[str, Service]:
    """Of alpha and beta a window each; beta does not say when its second one resets. Gamma has no limit."""

    def account(length: int, capacity: int) -> Account:
        return Account([Window("five_hour", length, capacity)])

    return {
        "alpha": Service(account(plan.window_ms, plan.capacity)),
        "beta": Service(account(plan.window_ms * 4 // 5, plan.capacity // 2), silent=frozenset({1})),
        "gamma": Service(account(10**9, 10**9)),
    }


def _markdown(content: dict[str, object]) -> str:
    head = {key: value for key, value in content.items() if key != "instructions"}
    # JSON is YAML.
    return f"---\n{json.dumps(head)}\n---\n{content['instructions']}\n"
