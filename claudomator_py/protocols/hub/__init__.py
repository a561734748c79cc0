"""/v1/hub, where agents connect as specialists and receive their tasks: which are connected, and which run is assigned
to which of them.

An assignment is a run, and has its id. The run's process (``agents/hub_runner``) reads what the hub puts into its
mailbox. The state in memory can be rebuilt from runs, mailboxes and connections.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import Any, Final

from sqlalchemy import Connection

from claudomator_py.domain.errors import Conflict, NotFound
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.log import get_logger
from claudomator_py.ports import RunHost
from claudomator_py.protocols.hub.assignment import AgentConnection, AgentGone, AgentRefused, Assignment
from claudomator_py.protocols.hub.mailbox import End, Mailboxes, ProgressAllowance, check_same
from claudomator_py.protocols.hub.waking import Knock, wake
from claudomator_py.store import run_rows, specialist_rows, task_rows
from claudomator_py.store.database import Database, StoreUnavailable

log = get_logger("claudomator.hub")

KIND: Final = "hub"
PREFIX: Final = "hub:"
"""Precedes the agent's id in the name of the agent that a run records, see ``routing.role.agent_name``."""
LEASE_S: Final = 120.0
"""How long an agent keeps an accepted assignment after its connection is lost."""
GRACE_S: Final = 10.0
"""How long an agent may take to reconnect after its connection is lost or the daemon has started."""
WAKE_S: Final = 60.0
"""How long a woken agent may take to connect."""
OFFER_S: Final = 10.0
"""How long an agent may take to answer an offer or a cancellation."""
AGAIN_S: Final = 5.0
"""Pause after a refused offer or another failure before the next attempt."""
MAX_REFUSALS: Final = 5
_A_MOMENT_S: Final = 0.05


class Hub:
    """Assigns runs to connected agents. Used on the daemon's loop, except ``wake`` and ``is_present``."""

    def __init__(self, database: Database, host: RunHost, registry: AgentRegistry, knock: Knock) -> None:
        self._database = database
        self._host = host
        self._mailboxes = Mailboxes(host)
        self._registry = registry
        self._knock = knock
        self._links: dict[str, dict[str, AgentConnection]] = {}
        self._assignments: dict[str, Assignment] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._since_s = 0.0
        self._left_s: dict[str, float] = {}
        self._due_s = inf
        self._wake_up = asyncio.Event()
        self._background: set[asyncio.Task[None]] = set()

    # --- called by the daemon -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin work on the running loop."""
        self._loop = asyncio.get_running_loop()
        self._since_s = self._loop.time()
        self._spawn(self._keep_looking())
        self.wake()

    def wake(self) -> None:
        """Look soon for runs that began or ended. From any thread; free if no specialist is an agent of the hub."""
        if self._loop is None or not any(agent.kind == KIND for agent in self._registry.agents):
            return
        try:
            self._loop.call_soon_threadsafe(self._look_by, _A_MOMENT_S)
        except RuntimeError:  # the loop has ended
            return

    def is_present(self, agent_id: str) -> bool:
        """Return whether the agent is connected or within its grace period. From any thread."""
        if self._loop is None or agent_id in self._links:
            return True
        return self._now_s < max(self._since_s, self._left_s.get(agent_id, 0.0)) + GRACE_S

    async def close(self) -> None:
        """Stop all work."""
        self._loop = None
        tasks = list(self._background)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- called by connections ------------------------------------------------------------------------------------

    async def join(self, link: AgentConnection, resume: Sequence[str]) -> list[str]:
        """Register a connection, replacing one of the same instance, and return the run ids that it resumes."""
        await self._read_live()
        # No await until all resumed runs are linked: a look in between would offer them again.
        there = {
            name: connection
            for name, connection in self._links.get(link.agent_id, {}).items()
            if connection is not link
        }
        former = there.get(link.instance_id)
        self._links[link.agent_id] = there | {link.instance_id: link}
        if former is not None:
            self._drop(former)
            former.peer.close(1008, "another connection has registered as this instance")
        resumed = []
        for run_id in dict.fromkeys(resume):
            assignment = self._assignments.get(run_id)
            if (
                assignment is None
                or assignment.agent_id != link.agent_id
                or assignment.end is not None
                or assignment.link is not None
            ):
                continue
            if assignment.lock.locked():  # It is just ending; a later result would be refused.
                continue
            assignment.link = link
            link.runs.add(run_id)
            resumed.append(assignment)
        for assignment in resumed:
            await self._accept(assignment, link)
        self._look_by(0)
        return [assignment.run_id for assignment in resumed]

    def leave(self, link: AgentConnection) -> None:
        """Unregister a connection. The agent keeps accepted assignments for the lease. Idempotent."""
        there = self._links.get(link.agent_id, {})
        if there.get(link.instance_id) is link:
            del there[link.instance_id]
            if not there:
                del self._links[link.agent_id]
                self._left_s[link.agent_id] = self._now_s
        self._drop(link)
        self._look_by(0)

    async def progress(self, agent_id: str, run_id: str, fields: Mapping[str, Any]) -> None:
        """Store progress within the run's allowance. Ignored if the assignment is another agent's or has ended."""
        assignment = self._assignments.get(run_id)
        if assignment is None or assignment.agent_id != agent_id or assignment.end is not None:
            return
        kept = assignment.allowance.fit(fields, self._now_s)
        if kept is None:
            return
        try:
            await self._mailboxes.put(run_id, {"type": "progress", **kept}, durable=False)
        except OSError as error:
            log.warning("progress_not_kept", run_id=run_id, problem=str(error))

    async def result(self, link: AgentConnection, run_id: str, end: End) -> bool:
        """Record the end of an assignment. Return whether the same end was recorded before.

        Raises NotFound, Conflict, StoreUnavailable or OSError if it is not recorded.
        """
        if run_id not in self._assignments:
            await self._read_live()
        assignment = self._assignments.get(run_id)
        if assignment is None:
            return await self._late_result(link.agent_id, run_id, end)
        if assignment.agent_id != link.agent_id:
            raise _unknown(run_id)
        async with assignment.lock:
            if assignment.end is not None:
                check_same(assignment.end, end)
                return True
            await self._end(assignment, end)
        return False

    # --- the reconciling loop -------------------------------------------------------------------------------------

    def _look_by(self, delay_s: float) -> None:
        """Look after at most this many seconds."""
        self._due_s = min(self._due_s, self._now_s + delay_s)
        self._wake_up.set()

    async def _keep_looking(self) -> None:
        """Look whenever it is due. As the only caller, it never looks twice at once."""
        while True:
            self._wake_up.clear()
            if self._now_s < self._due_s:
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(self._due_s):
                        await self._wake_up.wait()
                continue
            self._due_s = inf
            await self._look()

    async def _look(self) -> None:
        try:
            await self._read_live()
            for assignment in list(self._assignments.values()):
                # It may have ended while those before it were handled.
                if assignment.run_id not in self._assignments or assignment.end is not None:
                    continue
                try:
                    await self._handle(assignment)
                except OSError as error:  # The other runs have mailboxes of their own.
                    log.warning("mailbox_not_written", run_id=assignment.run_id, problem=str(error))
                    self._look_by(AGAIN_S)
        except StoreUnavailable as error:
            log.warning("hub_waits", problem=str(error))
            self._look_by(AGAIN_S)
        except Exception:
            log.exception("hub_failed")
            self._look_by(AGAIN_S)

    async def _read_live(self) -> None:
        """Synchronise the assignments with the live runs. Raises StoreUnavailable."""
        known = set(self._assignments)
        live = await asyncio.to_thread(self._database.read, lambda connection: run_rows.begun_of_kind(connection, KIND))
        # Only what was known before the read: an assignment added meanwhile may be newer than the rows.
        for run_id in known.difference(run.id for run in live):
            if (assignment := self._assignments.pop(run_id, None)) is not None:
                self._abandon(assignment)
        for run in live:
            if run.id in self._assignments:
                continue
            heard = await self._mailboxes.heard(run.id)
            assignment = Assignment(
                run.id,
                run.task_id,
                run.agent.removeprefix(PREFIX),
                ProgressAllowance(heard.size, self._now_s),
                accepted=heard.accepted,
                end=heard.end,
            )
            assignment.free_s = self._now_s
            self._assignments.setdefault(run.id, assignment)

    def _abandon(self, assignment: Assignment) -> None:
        """Cancel the assignment of a run that has ended, if an agent still works on it."""
        if (link := assignment.link) is not None:
            self._release(assignment, link)
            self._spawn(self._cancel(link, assignment.run_id))

    async def _cancel(self, link: AgentConnection, run_id: str) -> None:
        try:
            await link.peer.ask("task.cancel", {"assignment_id": run_id}, OFFER_S)
        except (AgentRefused, AgentGone) as error:
            log.info("cancel_not_heard", run_id=run_id, agent=link.agent_id, problem=str(error))

    async def _handle(self, assignment: Assignment) -> None:
        """Offer it or give it up, if it is time; otherwise schedule the next look."""
        if assignment.link is not None:
            return
        if assignment.accepted:
            left_s = assignment.free_s + LEASE_S - self._now_s
            if left_s > 0:
                self._look_by(left_s)
                return
            error = f"its connection was lost, and it was away for longer than {LEASE_S:.0f} seconds"
            await self._give_up(assignment, "lost", error)
            return
        if assignment.not_before_s > self._now_s:
            self._look_by(assignment.not_before_s - self._now_s)
            return
        links = self._links.get(assignment.agent_id, {}).values()
        free = next((link for link in links if len(link.runs) < link.most), None)
        if free is not None:
            assignment.link = free
            free.runs.add(assignment.run_id)
            self._spawn(self._offer(assignment, free))
        elif not links:
            await self._handle_absence(assignment)

    async def _offer(self, assignment: Assignment, link: AgentConnection) -> None:
        """Offer it to the agent."""
        try:
            params = await self._params(assignment)
            if assignment.link is not link:  # The run or the connection has ended.
                return
            answer = await link.peer.ask("task.assign", params, OFFER_S)
            if not isinstance(answer, Mapping) or answer.get("accepted") is not True:
                raise AgentRefused(0, "it did not say that it accepts")
            await self._accept(assignment, link)
        except AgentRefused as refusal:
            self._release(assignment, link)
            assignment.refusals += 1
            assignment.not_before_s = self._now_s + AGAIN_S
            log.info("assignment_refused", run_id=assignment.run_id, agent=assignment.agent_id, why=str(refusal))
            if assignment.refusals >= MAX_REFUSALS:
                await self._give_up(assignment, "unreachable", f"it refused {assignment.refusals} times: {refusal}")
        except AgentGone as gone:
            self.leave(link)
            link.peer.close(1011, str(gone))
        except (LookupError, OSError, StoreUnavailable) as error:
            self._release(assignment, link)
            assignment.not_before_s = self._now_s + AGAIN_S
            log.warning("not_assigned", run_id=assignment.run_id, problem=str(error))
        finally:
            self._look_by(0)

    async def _params(self, assignment: Assignment) -> dict[str, Any]:
        def read(connection: Connection) -> dict[str, Any]:
            task = task_rows.get(connection, assignment.task_id)
            return {"name": task.name, "skill": task.skill}

        handoff = await asyncio.to_thread(self._database.read, read)
        instructions = await asyncio.to_thread(self._host.prompt, assignment.run_id)
        ids = {"assignment_id": assignment.run_id, "task_id": assignment.task_id}
        return {**ids, "instructions": instructions, "handoff": handoff}

    async def _accept(self, assignment: Assignment, link: AgentConnection) -> None:
        """Record durably that the agent has accepted it, so that it holds beyond this daemon. Raises OSError."""
        if not assignment.accepted and assignment.end is None:
            await self._mailboxes.put(
                assignment.run_id, {"type": "accepted", "agent": assignment.agent_id, "instance": link.instance_id}
            )
            assignment.accepted = True

    async def _handle_absence(self, assignment: Assignment) -> None:
        """Wait for an absent agent, wake it, or give up."""
        wait_s = max(self._since_s, self._left_s.get(assignment.agent_id, 0.0)) + GRACE_S - self._now_s
        if wait_s > 0:
            self._look_by(wait_s)
            return
        answer = await asyncio.to_thread(
            self._database.read, lambda connection: specialist_rows.find(connection, assignment.agent_id)
        )
        if assignment.agent_id in self._links:  # It connected meanwhile, and may have resumed the run.
            return
        if answer is None or answer.card.wake_url is None:
            error = "its agent is not connected, and has no wake_url: start it"
            await self._give_up(assignment, "not_running", error)
            return
        if assignment.wake_by_s is None:
            await self._mailboxes.put(assignment.run_id, {"type": "waking"}, durable=False)
            assignment.wake_by_s = self._now_s + WAKE_S
            self._spawn(wake(answer, assignment.task_id, self._knock, AGAIN_S, lambda: self._is_awaited(assignment)))
        if self._now_s >= assignment.wake_by_s:
            await self._give_up(assignment, "unreachable", "its agent was woken, and did not connect")
            return
        self._look_by(assignment.wake_by_s - self._now_s)

    def _is_awaited(self, assignment: Assignment) -> bool:
        """Return whether the agent that is being woken may still connect in time."""
        return (
            assignment.link is None
            and assignment.end is None
            and assignment.wake_by_s is not None
            and self._now_s < assignment.wake_by_s
        )

    async def _give_up(self, assignment: Assignment, outcome: str, error: str) -> None:
        async with assignment.lock:
            if assignment.end is None:
                await self._end(assignment, {"type": "end", "outcome": outcome, "error": error})

    async def _end(self, assignment: Assignment, end: End) -> None:
        await self._mailboxes.put(assignment.run_id, end)
        assignment.end = end
        if assignment.link is not None:
            self._release(assignment, assignment.link)
        self._look_by(0)

    async def _late_result(self, agent_id: str, run_id: str, end: End) -> bool:
        """Handle the end of a run that is no longer live: return True if it is recorded. Raises NotFound, Conflict."""
        run = await asyncio.to_thread(self._database.read, lambda connection: run_rows.find(connection, run_id))
        if run is None or run.agent != PREFIX + agent_id:
            raise _unknown(run_id)
        recorded = (await self._mailboxes.heard(run_id)).end
        if recorded is None:
            raise Conflict("The assignment has ended without a result.", remedy="Drop it: nobody waits for it.")
        check_same(recorded, end)
        return True

    # --- connections ----------------------------------------------------------------------------------------------

    def _drop(self, link: AgentConnection) -> None:
        for run_id in list(link.runs):
            self._release(self._assignments[run_id], link)

    def _release(self, assignment: Assignment, link: AgentConnection) -> None:
        link.runs.discard(assignment.run_id)
        if assignment.link is link:
            assignment.link, assignment.free_s = None, self._now_s

    @property
    def _now_s(self) -> float:
        return 0.0 if self._loop is None else self._loop.time()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the work as a background task."""
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


def _unknown(run_id: str) -> NotFound:
    return NotFound(f"There is no assignment {run_id!r} of yours.", remedy="Drop it.")
