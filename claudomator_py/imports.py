"""What libraries import on the chance that somebody wants it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without(*packages: str) -> Iterator[None]:
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
