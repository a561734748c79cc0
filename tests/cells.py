"""Cells of a matrix of which the gate runs some: see "Tests" in docs/architecture.md."""

from collections.abc import Iterable
from typing import Any

import pytest


def cells(in_gate: Iterable[Any], others: Iterable[Any]) -> list[Any]:
    """Return the values of a parameter. others: left to ``make slow``."""
    return [*in_gate, *(pytest.param(cell, marks=pytest.mark.slow) for cell in others)]
