"""Everything at a glance: tasks, agents, refused files, and the health of the daemon."""

from collections.abc import Callable
from dataclasses import field
from itertools import islice

from sqlalchemy import Connection

from claudomator_py.dispatch.observe import Observer
from claudomator_py.domain.health import CheckView
from claudomator_py.domain.units import DAY_MS, MINUTE_MS
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.ports import Clock, RunHost
from claudomator_py.resources import cursors
from claudomator_py.resources.agents.service import agent_views, day_budget, spending_view
from claudomator_py.resources.daemon import ReadinessView
from claudomator_py.resources.daemon.service import known_hosts
from claudomator_py.resources.overview import FileProblemPage, FileProblemView, OverviewCalls, StatusView
from claudomator_py.resources.schedules.service import by_next_time
from claudomator_py.resources.session import Service
from claudomator_py.resources.tasks.views import TaskViews
from claudomator_py.sources.inbox.refusals import Refusal, Refusals, readable
from claudomator_py.store import alike_rows, reads
from claudomator_py.store.connections import Unchanged
from claudomator_py.store.database import StoreUnavailable
from claudomator_py.store.visibility import representative
from claudomator_py.surface import answers
from claudomator_py.tasks.holds import drain_check, drain_view
from claudomator_py.values import dataclass

SHOWN = 50


def refused_file(refused: Refusal) -> FileProblemView:
    """Return the refusal as it is shown."""
    return FileProblemView(path=readable(refused.path), problems=refused.problems)


@dataclass(eq=False, repr=False)
class Overview(Service):
    """The service of the overview."""

    registry: AgentRegistry
    observer: Observer
    clock: Clock
    refusals: Refusals
    """The files refused at present."""
    health: Callable[[], list[CheckView]]
    task_views: TaskViews
    host: RunHost
    _unchanged: Unchanged = field(default_factory=Unchanged, init=False)

    @answers(OverviewCalls.status)
    def status(self, shown_of_each: int = SHOWN) -> StatusView:
        """Return everything at a glance. shown_of_each: the most tasks in each of its lists."""
        who = representative(self._by)

        def read(connection: Connection) -> StatusView:
            budgets, now_ms = self.observer.budgets, self.clock()
            # The same for a minute, so the cached counts hold as well while nothing is written.
            since_ms = now_ms - now_ms % MINUTE_MS - DAY_MS
            figures = self._unchanged.read(
                connection, (who, since_ms), lambda: reads.status_figures(connection, since_ms, self._by)
            )
            today, own = self._unchanged.read(
                connection, (who, budgets.day(now_ms)), lambda: budgets.seen(connection, now_ms, self._by)
            )
            whole = self._by.sees_all
            files = self.refusals.page(limit=SHOWN) if whole else ()
            refused = len(self.refusals) if whole else 0
            lists = self._unchanged.read(
                connection,
                (who, since_ms, shown_of_each),
                lambda: reads.status_lists(
                    connection, shown_of_each, failed_since_ms=since_ms, figures=figures, by=self._by
                ),
            )
            unlisted = self._unchanged.read(
                connection,
                (who, since_ms, shown_of_each, "unlisted"),
                lambda: alike_rows.unlisted(connection, lists, since_ms, self._by),
            )
            views = iter(
                self.task_views.of(connection, [task for task_list in lists.values() for task in task_list.tasks])
            )
            shown = {name: tuple(islice(views, len(task_list.tasks))) for name, task_list in lists.items()}
            return StatusView(
                needs_you=shown["needs_you"],
                problems=shown["problems"],
                unlisted=unlisted,
                problem_reasons=dict(figures.failures),
                inbox=tuple(map(refused_file, files)),
                running=shown["running"],
                queued=shown["queued"],
                recent=shown["recent"],
                agents=tuple(agent_views(connection, self.registry, budgets, now_ms, self._by, (today, own))),
                hosts=tuple(known_hosts(connection, self.host, self.registry)) if whole else (),
                schedules=tuple(by_next_time(connection, self._by)),
                spent_today=spending_view(own.total),
                budget=day_budget(budgets, today) if whole else None,
                counts=dict(figures.counts),
                totals={**{name: task_list.total for name, task_list in lists.items()}, "inbox": refused},
            )

        result = self._read(read)
        if not self._by.sees_all:
            return result  # the daemon's trouble may name what belongs to others
        return result.model_copy(update={"trouble": tuple(check for check in self._checks() if not check.ok)})

    @answers(OverviewCalls.inbox_page)
    def inbox_page(self, cursor: str | None, limit: int) -> FileProblemPage:
        """Return a page of the inbox's refused files, the last one refused first. Raises BadCursor."""
        if not self._by.sees_all:
            return FileProblemPage(items=(), total=0)  # files of the inbox belong to no organisation
        listed = {"list": "inbox"}
        refusals = self.refusals.page(cursors.read_number(cursor, listed), limit + 1)
        part, following = cursors.part(refusals, limit, listed, lambda refusal: (refusal.number,))
        return FileProblemPage(items=tuple(map(refused_file, part)), next_cursor=following, total=len(self.refusals))

    def readiness(self) -> ReadinessView:
        """Return whether tasks are accepted and started. Never raises."""
        checks = self._checks()
        return ReadinessView(
            ready=all(check.ok or not check.blocking for check in checks),
            checks=tuple(checks) if self._by.sees_all else (),
        )

    def _checks(self) -> list[CheckView]:
        return [*self._store_checks(), *self.health()]

    def _store_checks(self) -> list[CheckView]:
        try:
            drained = drain_check(self.database.read(drain_view))
        except StoreUnavailable as error:
            return [CheckView(name="store", ok=False, detail=error.reason, remedy=error.remedy)]
        if (trouble := self.database.trouble) is not None:
            return [CheckView(name="store", ok=False, detail=trouble.reason, remedy=trouble.remedy), drained]
        return [CheckView(name="store", ok=True, detail=f"{self.database.dialect} answers"), drained]
