"""Time zones, as far as this machine knows them."""

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from tzlocal import get_localzone_name

from claudomator_py.core.problem import Problem
from claudomator_py.core.zone import unknown_zone, zone_remedy


def local_zone() -> str:
    """The IANA name of this machine's time zone; UTC where it has none that has a name."""
    name = get_localzone_name()
    return name if name is not None and known_zone(name) else "UTC"


def known_zone(name: str) -> bool:
    """Whether this machine knows the time zone."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def zone_problem(name: str | None) -> Problem | None:
    """What is wrong with the zone that a task names, or None."""
    if name is None or known_zone(name):
        return None
    remedy = zone_remedy(name, available_timezones())
    return Problem(field="timezone", message=unknown_zone(name), remedy=remedy)
