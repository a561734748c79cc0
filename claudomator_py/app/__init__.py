"""The composition root: the only package that knows the concrete classes and assembles a daemon from them."""

import sys

# FastAPI imports pydantic's v1 compatibility package only to ask of each model whether it is a v1 model.
sys.modules.setdefault("pydantic.v1", None)  # type: ignore[arg-type]  # as the language reference has it
