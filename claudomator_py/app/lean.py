"""Imported before the rest of the daemon: structlog without rich, which it takes for a console that is not used."""

from claudomator_py.imports import without

with without("rich"):
    import structlog  # noqa: F401 - from here on it is there as it is
