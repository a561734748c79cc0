"""The circuit breaker: when it opens, for how long, and what one trial decides."""

from claudomator_py.domain.health import FAILURES, FIRST_PAUSE_MS, MAX_PAUSE_MS, Breaker, Trouble

NOW = 1_790_000_000_000


def after(failures: int, breaker: Breaker | None = None) -> Breaker:
    result = breaker or Breaker()
    for _ in range(failures):
        result = result.began().failed(NOW)
    return result


def test_it_opens_at_the_third_failure_in_a_row() -> None:
    assert after(FAILURES - 1).allows(NOW)
    assert not after(FAILURES).allows(NOW + FIRST_PAUSE_MS - 1)
    assert after(FAILURES).allows(NOW + FIRST_PAUSE_MS)
    assert after(FAILURES - 1, after(FAILURES - 1).succeeded()).allows(NOW), "in a row"


def test_each_further_failure_doubles_the_pause_to_its_longest() -> None:
    pauses = [(after(FAILURES + more).open_until or 0) - NOW for more in range(8)]
    assert pauses[:4] == [FIRST_PAUSE_MS << more for more in range(4)]
    assert pauses[-1] == max(pauses) == MAX_PAUSE_MS


def test_after_the_pause_one_trial_decides() -> None:
    trial = after(FAILURES).began()
    assert not trial.allows(NOW + FIRST_PAUSE_MS), "nothing else is tried beside it"
    assert trial.succeeded().allows(NOW)
    again = trial.failed(NOW + FIRST_PAUSE_MS)
    assert not again.allows(NOW + 2 * FIRST_PAUSE_MS)
    assert again.allows(NOW + 3 * FIRST_PAUSE_MS)


def test_while_it_is_closed_no_try_is_a_trial() -> None:
    assert Breaker().began() == Breaker()
    assert after(FAILURES - 1).began() == after(FAILURES - 1)


def test_a_trouble_lasts_from_its_first_failure() -> None:
    first = Trouble.after(None, "no answer", NOW)
    assert first == Trouble("no answer", NOW)
    assert Trouble.after(first, "another", NOW + 1) == Trouble("another", NOW)
