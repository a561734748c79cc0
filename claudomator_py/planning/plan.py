"""From a snapshot to the runs to start: the brain, as a fold over the heads in the queue's order."""

from dataclasses import dataclass

from claudomator_py.planning.admission import Blocked, admit
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
        self._busy = dict(snapshot.busy)
        self._live = snapshot.live

    @property
    def exhausted(self) -> bool:
        """Whether no further head can start, whatever it is."""
        return self._live >= self._rules.total or not any(agent.free for agent in self._agents.values())

    def consider(self, head: Head) -> StartRun | Blocked:
        """Decide on the next head, and count what it takes."""
        agents = tuple(self._agents.values())
        verdict = admit(head, agents, self._rules, self._live, self._busy.get(head.dir_key, 0))
        if isinstance(verdict, Blocked):
            return verdict
        chosen = self._agents[verdict.agent]
        self._agents[verdict.agent] = chosen.model_copy(update={"active": chosen.active + 1})
        self._live += 1
        if head.dir_key:
            self._busy[head.dir_key] = self._busy.get(head.dir_key, 0) + 1
        return StartRun(head, verdict)


def plan(snapshot: Snapshot) -> tuple[StartRun, ...]:
    """The runs to start, in order. The same snapshot always gives the same plan."""
    planner = Planner(snapshot)
    verdicts = (planner.consider(head) for head in snapshot.heads)
    return tuple(verdict for verdict in verdicts if isinstance(verdict, StartRun))
