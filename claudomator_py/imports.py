"""Avoids work that libraries do at import time just in case somebody needs it."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def hiding(*packages: str) -> Iterator[None]:
    """Make imports in the block fail for these packages, unless they are already imported.

    For a library that can do without them and would import them for features not used here. Use only while no other
    thread is importing, as its imports would fail, too.
    """
    hidden = [package for package in packages if package not in sys.modules]
    for package in hidden:
        sys.modules[package] = None  # type: ignore[assignment]  # per the language reference: makes the import fail
    try:
        yield
    finally:
        for package in hidden:
            del sys.modules[package]


@contextmanager
def bulk_import() -> Iterator[None]:
    """Let a block import hundreds of modules faster by postponing slow work that is rarely needed.

    Pydantic models are built when the first value is created, validated or serialised: a process that declares
    hundreds, including those of libraries, uses a few dozen. A declaration that pydantic cannot build then fails only
    on first use, so tests import without this. Garbage collection is off, as it would scan the imported objects, which
    stay alive, again and again.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        from pydantic import BaseModel

        before = BaseModel.model_config
        BaseModel.model_config = {**before, "defer_build": True}
        try:
            yield
        finally:
            BaseModel.model_config = before
    finally:
        if collects:
            gc.freeze()
            gc.enable()
