"""A finding: what was looked at, what was found, how bad it is, and what to do about it."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class Severity(StrEnum):
    """problem: it keeps the daemon from working. warn: it may, or it is not as it should be."""

    OK = "ok"
    WARN = "warn"
    PROBLEM = "problem"


class Finding(BaseModel):
    """detail: what was found, in words. remedy: what to do, unless it is ok."""

    model_config = ConfigDict(frozen=True)

    name: str
    verdict: Severity
    detail: str
    remedy: str | None = None


def ok(name: str, detail: str) -> Finding:
    """Find it as it should be."""
    return Finding(name=name, verdict=Severity.OK, detail=detail)


def warn(name: str, detail: str, remedy: str) -> Finding:
    """Find it not as it should be."""
    return Finding(name=name, verdict=Severity.WARN, detail=detail, remedy=remedy)


def problem(name: str, detail: str, remedy: str) -> Finding:
    """Find that it does not work so."""
    return Finding(name=name, verdict=Severity.PROBLEM, detail=detail, remedy=remedy)
