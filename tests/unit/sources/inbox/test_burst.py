"""Which files belong to a burst, and when it is over."""

import math

from claudomator_py.sources.inbox.arrivals import BURST_PAUSE_S, MAX_BURST_S, Burst


def test_a_file_that_comes_alone_is_waited_for_until_it_is_taken() -> None:
    burst = Burst()
    assert burst.over_at == -math.inf
    burst.came("/in/a", 5)
    assert burst.over_at == 5 + MAX_BURST_S
    burst.came("/in/a", 5.001)  # made, written and closed
    burst.taken()
    assert burst.over_at == -math.inf


def test_one_that_comes_before_another_is_taken_makes_a_burst_until_a_pause() -> None:
    burst = Burst()
    burst.came("/in/a", 5)
    burst.came("/in/b", 5.002)
    assert burst.over_at == 5 + MAX_BURST_S
    burst.taken()
    assert burst.over_at == 5.002 + BURST_PAUSE_S
    burst.came("/in/c", 5.02)
    burst.taken()
    assert burst.over_at == 5.02 + BURST_PAUSE_S
    burst.came("/in/d", 6)
    burst.taken()
    assert burst.over_at == -math.inf, "after a pause the next comes alone"


def test_files_that_come_without_an_end_are_no_burst_for_long() -> None:
    burst = Burst()
    for number in range(100):
        burst.came(f"/in/{number}", 5 + number / 100)
        burst.taken()
        burst.came(f"/in/{number}x", 5 + number / 100)
    burst.taken()
    assert burst.over_at == 5 + MAX_BURST_S
