"""One walk over the lanes of the queue, for one plan."""

from collections.abc import Iterator, Mapping, Set
from functools import partial
from heapq import heappop, heappush

from sqlalchemy import Connection

from claudomator_py.dispatch.heads import HeadContext, HeadReader, LaneHead, QueuedTask
from claudomator_py.domain.blocked import BlockCode, Blocked, Why
from claudomator_py.faults import Activity, Faults, item_of
from claudomator_py.ports import Clock
from claudomator_py.scheduler.lanes import Demand
from claudomator_py.scheduler.plan import Action, Planner, StartRun
from claudomator_py.scheduler.snapshot import Rules
from claudomator_py.scheduler.tiers import AskTier
from claudomator_py.store import queue

AHEAD = 2
"""Tasks per slot whose tier is asked for in advance."""
LOOK = 8
"""Tasks that are read in the queue's order at once, of the whole queue and then of a demand."""


Planned = tuple[QueuedTask, Action]


class _Front:
    """The queue as far as it has been read: demands with which a task might start, and the lanes found so far.

    As long as that starts something, tasks are read in the queue's order, a few at a time. If it does not, lanes are
    read from the index, because behind a blocked task there may be thousands of its lane. A short queue is read whole,
    without asking for its demands.
    """

    def __init__(self, connection: Connection, planner: Planner, paused: Set[str], *, is_short: bool) -> None:
        """paused: tasks to leave out. is_short: whether fewer than ``LOOK`` tasks are queued."""
        self._connection = connection
        self._planner = planner
        self._paused = paused
        self._is_unread = is_short
        known = () if is_short else queue.demands(connection, planner.exhausted_hints)
        self._shut = {demand: shut for demand in known if (shut := planner.shut(demand)) is not None}
        self._unread = dict.fromkeys(self._shut, queue.FRONT)
        """Demands of which not all lanes are known, with the position up to which tasks have been read."""
        self._lanes: set[str] = set()
        self._last: dict[str, tuple[Demand | None, queue.Position]] = {}
        """By lane, its demand and the position of the last of its tasks that was read in order."""

    def reaches(self, position: queue.Position | None) -> bool:
        """Return whether tasks that have not been read may come before that position. None: the end of the queue."""
        if self._is_unread:
            return True
        return bool(self._unread) and (position is None or position > min(self._unread.values()))

    def next_tasks(self) -> list[str]:
        """Read on in order. Return the tasks by which further lanes begin, among those that fit."""
        whole = queue.first_places(self._connection, LOOK) if self._is_unread else ()
        self._is_unread = False
        self._last |= {place.lane: (None, place.position) for place in whole}
        found = [place for place in whole if self._fits(place)]
        for demand, after in list(self._unread.items()):
            places = queue.next_places(self._connection, demand, LOOK, after)
            self._last |= {place.lane: (demand, place.position) for place in places}
            if len(places) < LOOK:
                del self._unread[demand]
            else:
                self._unread[demand] = places[-1].position
            shut = self._shut[demand]
            found += [place for place in places if not shut.bars(place.tenant) and self._fits(place)]
        begun: list[str] = []
        for place in found:
            if place.lane not in self._lanes:
                self._lanes.add(place.lane)
                begun.append(place.position[-1])
        return begun

    def goes_on(self, lane: str, position: queue.Position) -> bool:
        """Return whether the lane may have tasks behind that position."""
        if lane not in self._last:
            return True
        demand, last = self._last[lane]
        return demand in self._unread or position < last

    def _fits(self, place: queue.QueuePlace) -> bool:
        *_, task_id = place.position
        return task_id not in self._paused and self._planner.taken.leaves(task_id, place.dir_key, place.thread)

    def other_lanes(self) -> set[str]:
        """Return all lanes that are not known yet, of demands that have not been read to the end."""
        taken = self._planner.taken
        lanes = {
            lane for demand in self._unread for lane in queue.lanes(self._connection, demand, taken, self._shut[demand])
        }
        self._unread.clear()
        self._last.clear()  # from here on, lanes are not read to the end
        others = lanes - self._lanes
        self._lanes |= others
        return others


def _preferring_until(verdict: Blocked) -> int | None:
    """Return when the task may use another agent, in epoch milliseconds; None unless it waits only for its preferred
    agent."""
    return verdict.until if verdict.code is BlockCode.PREFERRED_FULL else None


class LaneWalk:
    """One walk over the queue, for one plan: which tasks start, and about which tiers a model is asked.

    again_ms: when tasks that wait for their preferred agent may use another, in epoch milliseconds.
    """

    def __init__(
        self,
        connection: Connection,
        planner: Planner,
        rules: Rules,
        reader: HeadReader,
        faults: Faults,
        clock: Clock,
        queued: int,
    ) -> None:
        """faults: of starts; tasks that pause after one are left out. queued: number of queued tasks, or ``LOOK``."""
        self._connection = connection
        self._planner = planner
        self._rules = rules
        self._reader = reader
        self._faults = faults
        self._clock = clock
        self._is_short = queued < LOOK
        self._waited_ms = planner.now - rules.prefer_wait
        self.again_ms: list[int] = []
        self._heads: dict[str, LaneHead] = {}
        self._order: list[tuple[queue.Position, str]] = []
        self._blocked: set[str] = set()
        self._waited: dict[str, int] = {}
        self._to_ask = AHEAD * rules.total
        self._known: set[str] = set()
        """Eligibilities whose question is known."""

    def starts(self) -> Iterator[Planned]:
        """Yield the starts that examining every queued task would yield, in order, and questions about tasks that would
        start if their tier were known, and about the first task without a tier of each lane that is blocked otherwise.

        The lanes are merged in queue order, each from its first task whose directory and thread are free. When no agent
        can take that task, the lane is skipped until a start changes what is free; neither its other tasks nor tasks in
        busy directories are examined. Lanes are read as far as they are needed, see ``_Front``.
        """
        planner, paused = self._planner, self._paused()
        in_order = not self._rules.classifier  # or else what is known depends on all lanes
        front = _Front(self._connection, planner, paused, is_short=in_order and self._is_short)
        while not planner.exhausted:
            if front.reaches(self._order[0][0] if self._order else None):
                self._add(self._read(front, paused, in_order=in_order))
                in_order = False  # before another start
                continue
            if not self._order:
                break
            position, lane = heappop(self._order)
            lane_head = self._heads.get(lane)
            if lane_head is None or lane_head.position != position:
                continue  # a stale entry: the lane has a newer head
            again = {lane}
            queued, verdict = lane_head.queued, self._verdict(lane_head)
            if queued is not None and isinstance(verdict, StartRun):
                yield queued, verdict
                again |= self._freed()
                in_order = not self._rules.classifier
            elif isinstance(verdict, Blocked) and (until := _preferring_until(verdict)) and lane not in self._waited:
                self._wait(lane, lane_head, until, paused)
            elif queued is not None and isinstance(verdict, Blocked):
                asking = verdict.why is Why.CLASSIFYING
                if (
                    self._to_ask > 0
                    and not lane_head.asked
                    and (asking or lane_head.task.eligibility not in self._known)
                ):
                    yield from self._question(lane_head, queued, verdict)
                if self._blocks_lane(lane_head, queued, asking=asking):
                    self._blocked.add(lane)
                    again = set()
            for name in (lane, *again):
                self._heads.pop(name, None)
            again = {name for name in again if front.goes_on(name, position)}
            if again and not planner.exhausted:
                self._add(self._next(again, paused, after=position, queued_by=self._waited))

    def _read(self, front: "_Front", paused: Set[str], *, in_order: bool) -> dict[str, LaneHead]:
        """Read on: a few tasks in the queue's order, or else the first task of each lane that is not known yet."""
        if in_order:
            heads = self._reader.by_lane(self._connection, queue.contents(self._connection, front.next_tasks()))
        else:
            heads = self._next(front.other_lanes(), paused)
        self._known |= {lane_head.task.eligibility for lane_head in heads.values() if lane_head.asked}
        return heads

    def _next(
        self,
        lanes: Set[str],
        paused: Set[str],
        after: queue.Position | None = None,
        queued_by: Mapping[str, int] | None = None,
    ) -> dict[str, LaneHead]:
        taken = self._planner.taken
        return self._reader.next_of(self._connection, lanes, taken, without=paused, after=after, queued_by=queued_by)

    def _add(self, heads: Mapping[str, LaneHead]) -> None:
        self._heads |= heads
        for lane, lane_head in heads.items():
            heappush(self._order, (lane_head.position, lane))

    def _freed(self) -> set[str]:
        """Return the lanes to look at again after a start, which may have filled their agent or taken a directory."""
        taken = self._planner.taken
        lanes = self._blocked | self._waited.keys()
        lanes |= {lane for lane, lane_head in self._heads.items() if not lane_head.fits(taken)}
        self._blocked.clear()
        self._waited.clear()
        return lanes

    def _wait(self, lane: str, lane_head: LaneHead, until: int, paused: Set[str]) -> None:
        """Look at the lane's tasks that have waited long enough, and note when the next one will have."""
        self._waited[lane] = self._waited_ms
        since_ms = queue.waiting_since(
            self._connection,
            lane,
            self._planner.taken,
            after=lane_head.position,
            without=paused,
            queued_after=self._waited_ms,
        )
        self.again_ms.append(until if since_ms is None else min(until, since_ms + self._rules.prefer_wait))

    def _blocks_lane(self, lane_head: LaneHead, queued: QueuedTask, *, asking: bool) -> bool:
        """Return whether the obstacle of a task blocks its lane. An open question, to a model or a person, blocks only
        its task."""
        self._known.add(lane_head.task.eligibility)
        is_own = asking or queued.head.asks
        self._to_ask -= 1 if is_own else 0
        return not (is_own and (queued.head.asked is not None or self._to_ask > 0))

    def _verdict(self, lane_head: LaneHead) -> StartRun | Blocked | None:
        """Return the decision on a lane's first task; None if it cannot be read or considering it fails."""
        if lane_head.queued is None:
            return None
        return self._faults.attempt(lane_head.item, partial(self._planner.consider, lane_head.queued.head), whole=False)

    def _question(self, lane_head: LaneHead, queued: QueuedTask, verdict: Blocked) -> Iterator[Planned]:
        """Yield the question to ask about a blocked task, if any."""
        asking = partial(self._planner.question, queued.head, verdict)
        question: AskTier | None = self._faults.attempt(lane_head.item, asking, whole=False)
        if question is not None:
            yield queued, question

    def _paused(self) -> set[str]:
        """Return the tasks that pause after a fault of their own when started."""
        now_ms = self._clock()
        starts = [fault.item for fault in self._faults.all() if fault.item.activity is Activity.START]
        items = {item.id: item for item in starts if self._faults.is_paused(item, now_ms)}
        tasks = [task for task, _ in queue.contents(self._connection, sorted(items))]
        return {task.id for task in tasks if item_of(Activity.START, task).content == items[task.id].content}

    def ahead(self, without: Set[str]) -> Iterator[Planned]:
        """Yield questions about the tiers of the next tasks, so that these are known when a slot becomes free.

        Because answers cost money, only the next tasks are asked about. Lanes that wait for more than a slot do not
        count, nor do those of tenants that have used their share. without: tasks with an action already.
        """
        connection, planner, number = self._connection, self._planner, AHEAD * self._rules.total
        firsts = {lane: queue.first(connection, lane, number) for lane in queue.all_lanes(connection)}
        samples = queue.contents(connection, [positions[0][2] for positions in firsts.values()])
        context = self._reader.context(connection, [task for task, _ in samples])
        heads = {str(task.lane): self._reader.lane_head(task, spec, context) for task, spec in samples}
        near: list[queue.Position] = []
        for lane, lane_head in heads.items():
            if (queued := lane_head.queued) is None or planner.shares_used(queued.head):
                continue
            verdict = self._faults.attempt(lane_head.item, partial(planner.decide, queued.head), whole=False)
            if verdict is not None and (
                not isinstance(verdict, Blocked) or verdict.why in (Why.CLASSIFYING, Why.SLOTS)
            ):
                near += firsts[lane]
        tasks = queue.contents(connection, [task_id for *_, task_id in sorted(near)[:number]])
        for task, spec in tasks:
            if task.asked_tier is not None or task.id in without:
                continue
            lane_head = self._reader.lane_head(task, spec, HeadContext())
            if (queued := lane_head.queued) is None:
                continue
            considered = self._faults.attempt(lane_head.item, partial(planner.consider, queued.head), whole=False)
            if isinstance(considered, Blocked):
                yield from self._question(lane_head, queued, considered)
