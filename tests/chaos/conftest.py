"""Fixtures: those of the tests against a running daemon, and a seed."""

import os
import secrets
import sys

import pytest

from tests.e2e.conftest import site

__all__ = ["site"]


@pytest.fixture
def seed() -> int:
    """The seed: given, or a new one each time. It is shown when a test fails, and with ``-s``."""
    given = os.environ.get("CLAUDOMATOR_CHAOS_SEED")
    chosen = int(given) if given else secrets.randbelow(10**6)
    sys.stdout.write(f"CLAUDOMATOR_CHAOS_SEED={chosen}\n")
    return chosen
