"""Imported before the rest of the daemon: libraries without what they take along for what is not used."""

import sys

from claudomator_py.imports import hiding

with hiding("rich"):
    import structlog  # noqa: F401 - without a console; from here on it is there as it is

# FastAPI imports the first version of pydantic, a library by itself, to ask of each model whether it is one of its.
sys.modules.setdefault("pydantic.v1", None)  # type: ignore[arg-type]  # as the language reference has it
