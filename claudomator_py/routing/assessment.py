"""How much harm a task could do, by its text alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from claudomator_py.domain.routing import Risk


@dataclass(frozen=True, slots=True)
class Assessment:
    """What a task's text says of the harm it could do."""

    risk: Risk
    harmful: bool
    vague: bool


def assess(name: str, instructions: str, tags: Sequence[str]) -> Assessment:
    """Judge it."""
    return Assessment(Risk.LOW, False, False)
