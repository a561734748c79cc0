"""The composition root: the only place that knows the concrete classes and puts them together into a daemon."""

import warnings

import claudomator_py.app.lean  # noqa: F401 - before anything that logs
from claudomator_py.imports import many

with many():
    from pydantic.warnings import UnsupportedFieldAttributeWarning

    from claudomator_py.app.serving import serve

# FastAPI ignores it while it declares its fields, which it makes of ours: now they are built later.
warnings.simplefilter("ignore", UnsupportedFieldAttributeWarning)

__all__ = ["serve"]
