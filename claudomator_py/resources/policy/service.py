"""The policy: looking at it, trying it, and what it leaves to people."""

from collections.abc import Callable

from sqlalchemy import Connection

from claudomator_py.dispatch.policing import try_rules
from claudomator_py.domain.budget import DayBudget, Spending
from claudomator_py.domain.errors import Invalid
from claudomator_py.domain.verdict import VerdictView
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.policy.facts import Facts
from claudomator_py.policy.verdict import Policy
from claudomator_py.ports import Clock
from claudomator_py.resources.policy import ApprovalsView, PolicyCalls, PolicyView, ask
from claudomator_py.resources.routing.ask import verdict_view
from claudomator_py.resources.session import Service, find_task
from claudomator_py.resources.specialists import SpecialistView
from claudomator_py.schema.taskfiles import parse_task_file
from claudomator_py.store import specialist_rows
from claudomator_py.store.database import Database
from claudomator_py.surface.operation import answers

_AS_FILE = "task.yaml"
"""As what a text is read: YAML, which JSON is too. A task without a name is called after it."""


class PolicyService(Service):
    """What can be asked about the policy. in_force: the rules at present; reviews: whether tasks are routed, and those
    that are built in hold; limits: the budget of a day; registry: the agents. Every method may raise
    ``domain.errors.ServiceError``."""

    def __init__(
        self,
        database: Database,
        in_force: Callable[[], Policy],
        clock: Clock,
        reviews: Callable[[], bool],
        limits: Callable[[], DayBudget],
        registry: AgentRegistry,
    ) -> None:
        super().__init__(database)
        self._in_force = in_force
        self._clock = clock
        self._reviews = reviews
        self._limits = limits
        self._registry = registry

    @answers(PolicyCalls.policy)
    def view(self, *, days: int = 30) -> PolicyView:
        """Return the rules in force, and how often each applied in the last days."""
        rules, now_ms, reviews = self._in_force(), self._clock(), self._reviews()
        return self._read(
            lambda connection: ask.policy_view(connection, rules, self._by, days, now_ms, reviews=reviews),
        )

    def test(self, text: str) -> tuple[VerdictView, ...]:
        """Return what the rules in force say of the tasks in a task file with that text, as if whoever asks had dropped
        it and nothing had been spent today; nothing is stored. Raises Invalid."""
        parsed = parse_task_file(text.encode(), _AS_FILE)
        if parsed.problems:
            raise Invalid.of(parsed.problems)
        rules, now_ms, limits, reviews = self._in_force(), self._clock(), self._limits(), self._reviews()
        visible = frozenset(self._read(lambda connection: specialist_rows.ids_seen(connection, self._by)))
        verdicts = (
            try_rules(
                rules,
                Facts(spec, self._by, "file", spec.specialist, spec.skill),
                limits,
                Spending(),
                now_ms,
                self._registry,
                reviews=reviews,
                share=len(parsed.specs),
            )
            for spec in parsed.specs
        )
        return tuple(verdict_view(one, visible) for one in verdicts)

    def approvals(self) -> ApprovalsView:
        """Return what waits for an approval, and what became of others."""
        return self._read(lambda connection: ask.approvals_view(connection, self._by))

    def candidates(self, ref: str, limit: int) -> tuple[SpecialistView, ...]:
        """Return the specialists to whom whoever asks may give the task, at most ``limit``; none where nothing is
        routed."""
        if not self._reviews():
            return ()
        rules = self._in_force()

        def find(connection: Connection) -> tuple[SpecialistView, ...]:
            return ask.candidates(connection, find_task(connection, ref, self._by), rules, self._by, limit)

        return self._read(find)
