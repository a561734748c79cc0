"""Fixtures: those of the tests against a running daemon."""

from tests.e2e.conftest import site

__all__ = ["site"]
