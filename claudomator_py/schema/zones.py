"""Time zones named in documents, as far as this machine knows them."""

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from claudomator_py.domain.errors import Lines, Path, Problem
from claudomator_py.domain.units import unknown_zone, zone_remedy
from claudomator_py.schema.validation import problem_at


def zone_problem(name: str | None, lines: Lines, path: Path) -> Problem | None:
    """What is wrong with the zone at that place of a document, or None."""
    if name is None or _is_known(name):
        return None
    return problem_at(lines, path, unknown_zone(name), zone_remedy(name, available_timezones()))


def _is_known(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
