"""Durations and sizes as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.domain.units import (
    format_duration,
    format_instant,
    format_size,
    parse_duration,
    parse_size,
    size_text,
)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("90s", 90_000), ("45m", 2_700_000), ("2h", 7_200_000), ("1d", 86_400_000), ("1h30m", 5_400_000), ("5ms", 5)],
)
def test_reads_a_duration(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize("text", ["", "5", "5 m", "m", "-5m", "1.5h", "5w", "\u0665m", "5m!", "1234567890s"])
def test_refuses_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="number and a unit"):
        parse_duration(text)


@given(st.integers(0, 10**12))
def test_a_written_duration_reads_back(milliseconds: int) -> None:
    assert parse_duration(format_duration(milliseconds)) == milliseconds


@pytest.mark.parametrize(("text", "count"), [("512KiB", 2**19), ("256MiB", 2**28), ("1GB", 10**9), ("7 B", 7)])
def test_reads_a_size(text: str, count: int) -> None:
    assert parse_size(text) == count


@pytest.mark.parametrize("text", ["", "5", "5M", "5mib", "-1B", "1.5GiB"])
def test_refuses_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="number and a unit"):
        parse_size(text)


@given(st.integers(0, 10**12 - 1))
def test_a_written_size_reads_back(count: int) -> None:
    assert parse_size(format_size(count)) == count


def test_an_instant_is_utc_with_milliseconds() -> None:
    assert format_instant(1_790_000_000_123) == "2026-09-21T14:13:20.123Z"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (300 << 20, "300.0 MiB"),
        (51_657_662_464, "48.1 GiB"),
        (5 << 50, "5120.0 TiB"),
    ],
)
def test_a_size_for_people_is_in_the_largest_unit_of_which_there_is_one(count: int, text: str) -> None:
    assert size_text(count) == text
