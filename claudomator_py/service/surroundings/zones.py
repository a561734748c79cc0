"""Time zones, as far as this machine knows them."""

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tzlocal import get_localzone_name


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
