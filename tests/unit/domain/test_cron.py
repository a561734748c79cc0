"""Cron expressions: what a field allows, and what is refused with a remedy."""

import pytest

from claudomator_py.domain.schedule import BadCron, parse_cron

EVERY = frozenset(range(7))


def test_fields_are_numbers_ranges_steps_lists_and_names() -> None:
    cron = parse_cron("*/20 9-17/4,23 1,15 jan-mar,DEC mon-fri")
    assert cron.minutes == {0, 20, 40}
    assert cron.hours == {9, 13, 17, 23}
    assert cron.days == {1, 15}
    assert cron.months == {1, 2, 3, 12}
    assert cron.weekdays == {1, 2, 3, 4, 5}


@pytest.mark.parametrize(
    ("field", "weekdays"),
    [("0", {0}), ("7", {0}), ("sun", {0}), ("1-5", {1, 2, 3, 4, 5}), ("5-7", {5, 6, 0}), ("*", EVERY), ("0-7", EVERY)],
)
def test_weekdays_count_from_sunday_which_is_0_and_7(field: str, weekdays: set[int]) -> None:
    assert parse_cron(f"0 0 * * {field}").weekdays == weekdays


def test_two_restricted_kinds_of_day_are_alternatives_as_cron_has_it() -> None:
    assert parse_cron("0 0 13 * fri").either_day
    assert not parse_cron("0 0 * * fri").either_day
    assert not parse_cron("0 0 13 * *").either_day
    assert not parse_cron("0 0 */2 * fri").either_day


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("0 3 * *", "write minute, hour, day, month and weekday"),
        ("0 0 3 * * *", "write minute, hour, day, month and weekday"),
        ("@daily", 'write "0 0 * * *"'),
        ("60 3 * * *", "write a number from 0 to 59"),
        ("0 24 * * *", "write a number from 0 to 23"),
        ("0 3 0 * *", "write a number from 1 to 31"),
        ("0 3 * * mno", "did you mean `mon`?"),
        ("0 3 * * fri-mon", "write two ranges, 5-7,0-1"),
        ("5/15 * * * *", "write 5-59/15"),
        ("*/0 * * * *", "write such as */15"),
        ("0 3 L * *", "write numbers from 1 to 31"),
        ("0 3 30 2 *", "correct the day or the month"),
        ("0 3 , * *", "write numbers from 1 to 31"),
        ("٣ 3 * * *", "write numbers from 0 to 59"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_remedy(text: str, remedy: str) -> None:
    with pytest.raises(BadCron) as refused:
        parse_cron(text)
    assert remedy in refused.value.remedy
