"""The composition root: the only package that knows the concrete classes and assembles a daemon from them."""

import sys

from claudomator_py.imports import hiding

# This package is imported before the rest of the daemon, so libraries here load without what it does not use.
with hiding("rich", "greenlet"):
    import structlog  # noqa: F401 - without a console and coroutines; from here on it is there as it is

# FastAPI imports pydantic's v1 compatibility package only to ask of each model whether it is a v1 model.
sys.modules.setdefault("pydantic.v1", None)  # type: ignore[arg-type]  # as the language reference has it
