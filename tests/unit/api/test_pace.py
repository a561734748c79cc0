"""What strangers cost the daemon's processor is bounded for each of them and for all together."""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Callable

import pytest

from claudomator_py.api.guard.pace import (
    ALL_PRINCIPALS,
    MAX_AHEAD_S,
    MAX_ALL_WAITING,
    MAX_BEHIND_S,
    MAX_WAITING,
    MAX_WAITING_THEN,
    ONE_PRINCIPAL,
    Pace,
    Paces,
    PrincipalBusy,
)
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from tests.fakes.quick_time import run_quickly

COST_S = 0.01
LONG_S = 1_000.0


def guest(name: str, organisation: str | None = "acme") -> Principal:
    return Principal(name, Role.OPERATE, organisation)


def paces() -> Paces:
    return Paces(asyncio.get_running_loop().time)


def pace_of(among: Paces, by: Principal) -> Pace:
    pace = among.of(by)
    assert pace is not None
    return pace


async def worked_s(among: Paces, connections: dict[Principal, int], seconds: float) -> dict[str, float]:
    """How much processor time each principal gets that wants all there is, over so many connections."""
    taken: Counter[str] = Counter()

    async def greedy(by: Principal) -> None:
        while True:
            await pace_of(among, by).turn(COST_S)
            taken[by.id] += 1
            await asyncio.sleep(0)

    tasks = [asyncio.create_task(greedy(by)) for by, number in connections.items() for _ in range(number)]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    return {name: number * COST_S for name, number in taken.items()}


@pytest.mark.parametrize("connections", [1, 2, 50])
def test_one_gets_its_share_over_however_many_connections(connections: int) -> None:
    async def scenario() -> None:
        got = await worked_s(paces(), {guest("greedy"): connections}, LONG_S)
        assert got["greedy"] == pytest.approx(LONG_S * ONE_PRINCIPAL.of_one + ONE_PRINCIPAL.burst_s, abs=0.1)

    run_quickly(scenario())


def test_all_together_get_theirs_and_each_the_same_of_it() -> None:
    async def scenario() -> None:
        wanting = {guest(f"g{number}", "acme" if number % 2 else None): 1 + number * 10 for number in range(5)}
        got = await worked_s(paces(), wanting, LONG_S)
        assert sum(got.values()) == pytest.approx(LONG_S * ALL_PRINCIPALS.of_one + ALL_PRINCIPALS.burst_s, abs=0.1)
        assert max(got.values()) == pytest.approx(min(got.values()), rel=0.05)

    run_quickly(scenario())


def test_who_asks_now_and_then_does_not_wait_for_the_greedy() -> None:
    async def scenario() -> None:
        among = paces()
        loop = asyncio.get_running_loop()
        greedy = asyncio.create_task(worked_s(among, {guest("a"): 50, guest("b", "globex"): 50}, LONG_S))
        waited = []
        for _ in range(100):
            await asyncio.sleep(LONG_S / 200)
            began = loop.time()
            await pace_of(among, guest("modest", "globex")).turn(COST_S)
            waited.append(loop.time() - began)
        # Two are before it, and each owes no more than it has just cost.
        assert max(waited) <= 3 * COST_S / ALL_PRINCIPALS.of_one + 0.01
        await greedy

    run_quickly(scenario())


def test_the_operator_waits_for_nobody() -> None:
    async def scenario() -> None:
        assert paces().of(OPERATOR) is None

    run_quickly(scenario())


async def _when_served(among: Paces, by: Principal) -> float:
    async with pace_of(among, by).serving():
        return asyncio.get_running_loop().time()


def test_nobody_begins_while_the_operator_waits_for_an_answer() -> None:
    async def scenario() -> None:
        among, loop = paces(), asyncio.get_running_loop()
        with among.desk.ahead() as first, among.desk.ahead() as second:
            waiting = asyncio.create_task(_when_served(among, guest("one")))
            await asyncio.sleep(MAX_BEHIND_S / 4)
            first()
            first()
            await asyncio.sleep(MAX_BEHIND_S / 4)
            assert not waiting.done()
            second()
            assert await waiting == pytest.approx(loop.time())

    run_quickly(scenario())


def test_an_operator_that_asks_all_the_time_keeps_nobody_for_ever() -> None:
    async def scenario() -> None:
        among, loop = paces(), asyncio.get_running_loop()
        with among.desk.ahead():
            began = loop.time()
            assert await _when_served(among, guest("one")) == pytest.approx(began + MAX_BEHIND_S)
            await asyncio.sleep(MAX_BEHIND_S * 1.1)
            given_up = asyncio.create_task(_when_served(among, guest("two")))
            await asyncio.sleep(0)
            given_up.cancel()
            await asyncio.wait([given_up])
            assert given_up.cancelled()
            await asyncio.sleep(MAX_AHEAD_S)
            # It waits itself for longer than a moment, and whoever went has left the place.
            assert await _when_served(among, guest("three")) == pytest.approx(loop.time())

    run_quickly(scenario())


def test_messages_of_others_wait_with_their_calls_and_have_every_other_moment() -> None:
    async def scenario() -> None:
        among, loop = paces(), asyncio.get_running_loop()
        end, turns = loop.time() + 40 * MAX_BEHIND_S, []

        async def ask_without_end(offset: float) -> None:
            await asyncio.sleep(offset)
            while loop.time() < end:
                with among.desk.ahead():
                    await asyncio.sleep(MAX_AHEAD_S * 0.9)

        async def talk(by: Principal) -> None:
            while loop.time() < end:
                await pace_of(among, by).turn(0)
                turns.append(loop.time())
                await asyncio.sleep(MAX_BEHIND_S / 100)

        asking = [ask_without_end(part * MAX_AHEAD_S / 3) for part in range(3)]
        await asyncio.gather(*asking, talk(guest("one")), talk(guest("two", "globex")))
        gaps = [after - before for before, after in itertools.pairwise(turns)]
        assert max(gaps) == pytest.approx(MAX_BEHIND_S, rel=0.05)
        assert len(turns) == pytest.approx(2 * 100 * 20, rel=0.1)
        assert sum(gap > MAX_BEHIND_S / 2 for gap in gaps) == pytest.approx(20, abs=1)
        assert among.desk.is_clear

    run_quickly(scenario())


def test_what_was_not_expected_is_owed_by_whoever_it_was() -> None:
    async def scenario() -> None:
        among, loop = paces(), asyncio.get_running_loop()
        pace_of(among, guest("dear")).charge(10.0)
        began = loop.time()
        await pace_of(among, guest("other", "globex")).turn(COST_S)
        assert loop.time() - began < 5
        await pace_of(among, guest("dear")).turn(COST_S)
        assert loop.time() - began == pytest.approx((10.0 - ONE_PRINCIPAL.burst_s) / ONE_PRINCIPAL.of_one, rel=0.05)

    run_quickly(scenario())


def test_a_call_is_charged_with_what_it_has_cost_also_where_it_fails() -> None:
    async def on_a_thread(call: Callable[[], None]) -> None:
        await asyncio.to_thread(call)

    def compute() -> None:
        until = time.thread_time() + 2 * ONE_PRINCIPAL.burst_s
        while time.thread_time() < until:
            pass
        raise ValueError("that is all")

    async def scenario() -> None:
        pace = pace_of(paces(), guest("dear"))
        await pace.served(lambda: None, on_a_thread)
        assert pace.is_even
        with pytest.raises(ValueError, match="that is all"):
            await pace.served(compute, on_a_thread)
        assert not pace.is_even

    asyncio.run(scenario())


def test_of_very_many_those_not_asked_for_longest_are_forgotten() -> None:
    async def scenario() -> None:
        among = Paces(asyncio.get_running_loop().time, most=10)
        for number in range(30):
            pace_of(among, guest(str(number))).charge(100.0)
        assert not pace_of(among, guest("25")).is_even
        await asyncio.sleep(10)
        assert pace_of(among, guest("3")).is_even

    run_quickly(scenario())


async def request(pace: Pace, seconds: float, *, answers_at_once: bool = False) -> None:
    """One that computes nothing, and waits for something else."""
    async with pace.serving() as begins:
        if answers_at_once:
            begins()
        await asyncio.sleep(seconds)


def test_one_request_of_all_is_served_at_a_time_until_its_answer_begins() -> None:
    async def scenario() -> None:
        among, loop = paces(), asyncio.get_running_loop()
        began = loop.time()
        quick = [request(pace_of(among, guest(str(number))), 0.02) for number in range(4)]
        await asyncio.gather(*quick)
        assert loop.time() - began >= 4 * 0.02
        began = loop.time()
        following = [request(pace_of(among, guest(str(n))), 60, answers_at_once=True) for n in range(4)]
        await asyncio.gather(*following)
        assert loop.time() - began < 61

    run_quickly(scenario())


def test_who_waits_for_something_else_than_the_processor_keeps_nobody_waiting() -> None:
    async def scenario() -> None:
        among, loop = paces(), asyncio.get_running_loop()
        slow = asyncio.create_task(request(pace_of(among, guest("slow")), 600))
        await asyncio.sleep(0.01)
        began = loop.time()
        await request(pace_of(among, guest("other", "globex")), 0)
        assert loop.time() - began < 1
        assert not slow.done()
        await slow

    run_quickly(scenario())


def test_who_fails_or_goes_leaves_its_place() -> None:
    async def failing(pace: Pace) -> None:
        async with pace.serving():
            raise ValueError

    async def scenario() -> None:
        among = paces()
        with pytest.raises(ValueError):  # noqa: PT011 - its own
            await failing(pace_of(among, guest("fails")))
        gone = [asyncio.create_task(request(pace_of(among, guest("goes")), 600)) for _ in range(MAX_WAITING)]
        await asyncio.sleep(0.01)
        for task in gone:
            task.cancel()
        await asyncio.gather(*gone, return_exceptions=True)
        for _ in range(MAX_WAITING):
            await request(pace_of(among, guest("goes")), 0)

    run_quickly(scenario())


def test_of_one_principal_few_requests_wait_and_fewer_where_many_do() -> None:
    async def scenario() -> None:
        among = paces()
        for number in range(8):
            pace_of(among, guest(str(number))).charge(1_000.0)
        waiting = []
        for number in range(MAX_ALL_WAITING // MAX_WAITING):
            pace = pace_of(among, guest(str(number)))
            waiting += [asyncio.create_task(request(pace, 0)) for _ in range(MAX_WAITING)]
            await asyncio.sleep(0)
            with pytest.raises(PrincipalBusy):
                await request(pace, 0)
        late = pace_of(among, guest("7"))
        waiting += [asyncio.create_task(request(late, 0)) for _ in range(MAX_WAITING_THEN)]
        await asyncio.sleep(0)
        with pytest.raises(PrincipalBusy):
            await request(late, 0)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    run_quickly(scenario())


def test_where_the_loop_gets_a_part_of_a_processor_the_shares_are_of_that_part() -> None:
    async def scenario() -> None:
        among, loop = paces(), asyncio.get_running_loop()
        pace = pace_of(among, guest("g"))
        for _ in range(1_000):
            pace.strain.saw(0.003, 0.001)
        assert pace.strain.factor == pytest.approx(3, rel=0.01)
        began = loop.time()
        pace.charge(1.0)
        await pace.turn(COST_S)
        assert loop.time() - began == pytest.approx((3.0 - ONE_PRINCIPAL.burst_s) / ONE_PRINCIPAL.of_one, rel=0.05)
        for passed_s, computed_s in ((60.0, 0.0), (0.0, 60.0)):
            pace.strain.saw(passed_s, computed_s)
            assert 1 <= pace.strain.factor <= 4

    run_quickly(scenario())
