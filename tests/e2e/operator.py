"""A small workload with everything in it, brought in by an operator whose daemons may die at any moment."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from claudomator_py.client import DaemonNotRunning, ServiceProblem
from claudomator_py.domain.outcome import Tokens
from claudomator_py.domain.requests import RestartRequest
from claudomator_py.domain.task import AgentHint, RetryPolicy, TaskSpec
from claudomator_py.resources.tasks import TaskView
from tests.e2e.daemon import Daemon
from tests.e2e.invariants import Facts, hold
from tests.e2e.site import SETTLED, Site
from tests.patience import wait_until

FILES = {
    "first": "instructions: 'do: sleep 0.05'",
    "second": "depends_on: [first]\ninstructions: 'do: true'",
    "checked": "instructions: 'do: true'\ncheck: ['{good}']",
    "unchecked": "instructions: 'do: true'\ncheck: ['{bad}']\nretry: {{max_attempts: 1}}",
    "flaky": "instructions: 'do: [ $CLAUDOMATOR_ATTEMPT -ge 2 ] || exit 3'\nretry: {{max_attempts: 2, backoff: 10ms}}",
    "stubborn": "instructions: 'do: true'\non_lost: retry\nretry: {{max_attempts: 100, backoff: 10ms}}",
    "played": "instructions: 'simulate: delay=20ms outcome=success'\nagent: {{type: simulated}}",
}
RESUMED = TaskSpec(
    name="resumed",
    instructions="simulate: delay=10ms outcome=fail tokens=3/2\nsimulate: delay=10ms text=remembered tokens=5/4",
    agent=AgentHint(type="simulated"),
    retry=RetryPolicy(max_attempts=1),
)
ENDLESS = TaskSpec(
    name="endless",
    instructions='do: trap \'\' TERM; echo "deaf $CLAUDOMATOR_RUN $$" >> "$ledger"; sleep 600',
)
ASKED = TaskSpec(name="asked", instructions="do: true")
COUNT = len(FILES) + 3

Life = Mapping[str, str]
"""How one daemon is started: the keyword arguments of ``Site.start``."""


class Operator:
    """Works as a careful person would: when the daemon dies, start the next one, look, and ask again what got lost."""

    def __init__(self, site: Site, lives: Iterable[Life] = ()) -> None:
        """lives: how the first daemons are started; all further ones are left in peace."""
        self.site = site
        self.acknowledged: set[str] = set()
        self.ended: list[int] = []
        self._lives = list(lives)
        self.daemon = self._start()

    def work(self) -> None:
        """Bring in the whole workload, and ask of it what an operator asks."""
        self.hand_in()
        self.insist(self.cancel_endless)
        self.insist(lambda: self.restart(ASKED))
        self.insist(lambda: self.restart(RESUMED, resume=True))

    def hand_in(self) -> None:
        """Bring in the whole workload."""
        self.drop_files()
        for spec in (ENDLESS, ASKED, RESUMED):
            self.insist(partial(self.submit, spec))

    def insist(self, step: Callable[[], None]) -> None:
        """Do the step, with as many daemons as it takes."""
        while True:
            try:
                self.daemon.ready()
                return step()
            except (DaemonNotRunning, AssertionError) as trouble:
                if isinstance(trouble, AssertionError) and self.daemon.running:
                    raise
                self.ended.append(self.daemon.wait())
                self.daemon = self._start()

    def drop_files(self) -> None:
        """Put all files into the inbox, one of them wrong."""
        checks = {"good": self.site.ledger.check(), "bad": self.site.ledger.check(1)}
        for name, text in FILES.items():
            self.site.drop(f"{name}.yaml", text.format(**checks))
        self.site.drop("broken.yaml", "instructons: typo")

    def submit(self, spec: TaskSpec) -> None:
        """Hand in a task by the API, unless it was accepted before the answer got lost."""
        if not any(task.name == spec.name for task in self.daemon.client.all_tasks()):
            self.acknowledged.add(self.daemon.client.submit(spec).id)

    def cancel_endless(self) -> None:
        """Cancel the endless task once its agent ignores TERM and all others are over.

        While others end, a daemon that is to die at the end of one might ask for this run's end first, and leave
        nothing to ask to a next one that is to die at that.
        """

        def alone() -> bool:
            tasks = {task.name: task.state for task in self.daemon.client.all_tasks()}
            if len(tasks) < COUNT or not all(tasks[name] in SETTLED for name in tasks if name != ENDLESS.name):
                return False
            deaf = {entry.run_id for entry in self.site.ledger.entries() if entry.what == "deaf"}
            # Its shim may have died before there was an agent.
            return tasks[ENDLESS.name] == "FAILED" or any(
                run.id in deaf for run in self.daemon.client.runs(ENDLESS.name)
            )

        wait_until(alone, "nothing but the endless task to run")
        if self.daemon.client.task(ENDLESS.name).state == "RUNNING":
            try:
                self.daemon.client.cancel(ENDLESS.name)
            except ServiceProblem as refusal:
                # What was asked of a daemon that died over its answer may be done by now.
                if refusal.code != "conflict":
                    raise

    def restart(self, spec: TaskSpec, *, resume: bool = False) -> None:
        """Have a task that is done begin once more."""

        def done() -> TaskView | None:
            task = self.daemon.client.task(spec.name)
            return task if task.generation == 2 or task.state in ("COMPLETED", "FAILED") else None

        task = wait_until(done, "the task to end")
        if task.generation == 1:
            self.daemon.client.restart(task.id, RestartRequest(resume=resume))

    def finish(self) -> dict[str, TaskView]:
        """Let everything end, stop the daemon and check what must hold; the tasks by name."""
        tasks: dict[str, TaskView] = {}
        self.insist(self._all_taken)
        self.insist(lambda: tasks.update(self.site.drain(self.daemon)))
        assert self.daemon.stop() == 0
        facts: Facts = hold(self.site, acknowledged=self.acknowledged, file_names=FILES)
        assert len(facts.tasks) == COUNT, f"{len(facts.tasks)} tasks instead of {COUNT}"
        return {task.name: task for task in tasks.values()}

    def _all_taken(self) -> None:
        wait_until(lambda: len(list(self.daemon.client.all_tasks())) >= COUNT, "the files to be taken")

    def _start(self) -> Daemon:
        return self.site.start(**self._lives.pop(0)) if self._lives else self.site.start()


def assert_nothing_shows(tasks: Mapping[str, TaskView]) -> None:
    """Every task came out as if nothing had ever been killed."""
    states = {task.name: (task.state, task.reason) for task in tasks.values()}
    assert states == {
        **dict.fromkeys((*FILES, ASKED.name, RESUMED.name), ("COMPLETED", None)),
        "unchecked": ("FAILED", "check_failed"),
        ENDLESS.name: ("CANCELLED", None),
    }
    assert tasks["flaky"].attempts == 2
    assert tasks[ASKED.name].generation == 2
    resumed = tasks[RESUMED.name]
    # The second line of its script: the first conversation went on.
    assert (resumed.generation, resumed.result_text) == (2, "[simulated] remembered")
    assert resumed.tokens == Tokens(input=8, output=6)
