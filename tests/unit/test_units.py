"""The units of systemd that come with it."""

import configparser
from pathlib import Path

import pytest

UNITS = sorted((Path(__file__).parents[2] / "systemd").glob("*/claudomator.service"))


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.parent.name)
def test_the_daemon_may_open_many_files_and_what_it_starts_as_many_as_usual(unit: Path) -> None:
    """The daemon raises the first number to the second at its start, and gives runs the first."""
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.read(unit)
    soft, _, hard = parser["Service"]["LimitNOFILE"].partition(":")
    assert (int(soft), int(hard)) == (1_024, 65_536)


def test_both_units_are_there() -> None:
    assert [path.parent.name for path in UNITS] == ["system", "user"]
