"""What libraries do at their import on the chance that somebody wants it."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def hiding(*packages: str) -> Iterator[None]:
    """Let imports in the block find none of these packages, unless they are imported already.

    For a library that can do without them and would import them for what is not used here. Only while no other thread
    imports: it would not find them either.
    """
    hidden = [package for package in packages if package not in sys.modules]
    for package in hidden:
        sys.modules[package] = None  # type: ignore[assignment]  # as the language reference has it: cannot be imported
    try:
        yield
    finally:
        for package in hidden:
            del sys.modules[package]


@contextmanager
def bulk_import() -> Iterator[None]:
    """Import hundreds of modules in a block: what takes long, and most of them never need, comes later or not.

    Models of pydantic are built when the first value is made, read or written: a process that declares hundreds, its
    libraries' among them, uses a few dozen. A declaration that pydantic cannot build fails only then, so tests import
    without this. And the collector waits: what is imported stays, and it would search it again and again.
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
