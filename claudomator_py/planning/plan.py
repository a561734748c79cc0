"""From a snapshot to the runs to start: the brain, as a fold over the heads in the queue's order."""

from dataclasses import dataclass

from claudomator_py.planning.admission import Blocked, Load, admit
from claudomator_py.planning.snapshot import Head, Snapshot
from claudomator_py.routing.decision import DecisionRecord


@dataclass(frozen=True, slots=True)
class StartRun:
    """Start this task, if its version is still this one."""

    head: Head
    decision: DecisionRecord


class Planner:
    """The fold. Each start it decides takes its slots before the next head is considered.

    Observing uses it to learn which lanes are blocked before it fetches more heads, and ``plan`` replays the same
    fold over the snapshot, so both always agree.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._rules = snapshot.rules
        self._agents = {agent.name: agent for agent in snapshot.agents}
        self._load = load_of(snapshot)

    @property
    def exhausted(self) -> bool:
        """Whether no further head can start, whatever it is."""
        full = self._load.live >= self._rules.total or self._load.disk_low
        return full or not any(agent.free for agent in self._agents.values())

    def consider(self, head: Head) -> StartRun | Blocked:
        """Decide on the next head, and count what it takes."""
        agents = tuple(self._agents.values())
        verdict = admit(head, agents, self._rules, self._load)
        if isinstance(verdict, Blocked):
            return verdict
        chosen = self._agents[verdict.agent]
        self._agents[verdict.agent] = chosen.model_copy(update={"active": chosen.active + 1})
        busy = dict(self._load.busy)
        if head.dir_key:
            busy[head.dir_key] = busy.get(head.dir_key, 0) + 1
        self._load = Load(self._load.live + 1, busy, self._load.disk_low)
        return StartRun(head, verdict)


def load_of(snapshot: Snapshot) -> Load:
    """What is in use in the snapshot."""
    return Load(snapshot.live, snapshot.busy, snapshot.disk_low)


def plan(snapshot: Snapshot) -> tuple[StartRun, ...]:
    """The runs to start, in order. The same snapshot always gives the same plan."""
    planner = Planner(snapshot)
    verdicts = (planner.consider(head) for head in snapshot.heads)
    return tuple(verdict for verdict in verdicts if isinstance(verdict, StartRun))
