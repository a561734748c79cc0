"""The composition root: the only place that knows the concrete classes and puts them together into a daemon."""

import claudomator_py.app.lean  # noqa: F401 - before anything that logs
from claudomator_py.app.serving import serve

__all__ = ["serve"]
