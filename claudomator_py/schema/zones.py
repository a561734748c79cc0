"""Time zones: which names are known here, and which one is this machine's.

The C library follows ``/etc/localtime`` while the daemon runs, and so do the times that people are shown.
"""

import os
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from claudomator_py.domain import errors
from claudomator_py.domain.errors import Lines, Problem
from claudomator_py.domain.units import unknown_zone, zone_remedy
from claudomator_py.schema.validation import problem_at

LOCALTIME = Path("/etc/localtime")
TIMEZONE = Path("/etc/timezone")
"""Its name, where a distribution writes that; it may be out of date."""


def zone_problem(name: str | None, lines: Lines, path: errors.Path) -> Problem | None:
    """Return what is wrong with the time zone at that place of a document, or None."""
    if name is None or known_zone(name):
        return None
    return problem_at(lines, path, unknown_zone(name), zone_remedy(name, available_timezones()))


def known_zone(name: str) -> bool:
    """Return whether this machine knows the time zone."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def local_zone() -> str:
    """Return the IANA name of the time zone that the C library uses here at present, or of one with the same hours; UTC
    if there is none."""
    given = os.environ.get("TZ")
    name = None if given is None else given.removeprefix(":")
    if name is not None and not name.startswith("/"):
        return name if known_zone(name) else "UTC"
    file = Path(name or LOCALTIME)
    try:
        at = file.lstat()
    except OSError:
        return "UTC"
    return _zone_in(file, (at.st_dev, at.st_ino, at.st_mtime_ns))


@lru_cache(maxsize=1)
def _zone_in(file: Path, _identity: tuple[int, ...]) -> str:
    """Return the zone of a file in the zone database, or of a copy of one, as containers have it. _identity: differs
    when the file was replaced."""
    _, in_database, name = os.path.realpath(file).rpartition("/zoneinfo/")
    if in_database and known_zone(name):
        return name
    try:
        with file.open("rb") as data:
            hours = _hours(ZoneInfo.from_file(data))
    except (OSError, ValueError):
        return "UTC"
    likely = [TIMEZONE.read_text(errors="replace").strip()] if TIMEZONE.is_file() else []
    names = (*likely, "UTC", *sorted(available_timezones()))
    return next((name for name in names if known_zone(name) and _hours(ZoneInfo(name)) == hours), "UTC")


def _hours(zone: ZoneInfo) -> list[timedelta | None]:
    """Return the offsets of two years to come, which tell zones apart."""
    now = datetime.now(UTC)
    return [(now + timedelta(days=days)).astimezone(zone).utcoffset() for days in range(0, 731, 5)]
