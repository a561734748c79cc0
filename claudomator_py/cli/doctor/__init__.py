"""The checks of ``doctor``, by subject: each yields findings with remedies."""

from enum import StrEnum

from pydantic import BaseModel


class Severity(StrEnum):
    """problem: keeps the daemon from working. warn: may do so, or is not as it should be."""

    OK = "ok"
    WARN = "warn"
    PROBLEM = "problem"


class Finding(BaseModel, frozen=True):
    """The result of one check. detail: what was found. remedy: what to do; None for ok."""

    name: str
    verdict: Severity
    detail: str
    remedy: str | None = None


def ok(name: str, detail: str) -> Finding:
    """Find nothing wrong."""
    return Finding(name=name, verdict=Severity.OK, detail=detail)


def warn(name: str, detail: str, remedy: str) -> Finding:
    """Find something that may cause trouble."""
    return Finding(name=name, verdict=Severity.WARN, detail=detail, remedy=remedy)


def problem(name: str, detail: str, remedy: str) -> Finding:
    """Find something that keeps the daemon from working."""
    return Finding(name=name, verdict=Severity.PROBLEM, detail=detail, remedy=remedy)
