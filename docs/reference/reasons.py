"""The page of reason codes, from the table that the daemon itself acts by."""

from claudomator_py.domain.outcome import REASON_POLICIES, HoldKind, Reason
from docs.reference.markdown import code, page, table

_INTRODUCTION = """
Every end that is not a success has one of these codes, in the API, the logs and the command line. The same table
determines what the daemon does; `GET /v1/reasons` returns it as JSON. [Troubleshooting](../how-to/troubleshooting.md)
says what to do about each. "Falls back" means that the next attempt uses the agent's `fallback_model`, if it has one.
"""
_HEAD = (
    "code",
    "meaning",
    "uses up an attempt",
    "tried again",
    "one tier up",
    "holds the agent",
    "falls back",
    "needs a person",
)
_HOLDS = {
    HoldKind.NONE: "",
    HoldKind.UNTIL_RESET: "until the reset",
    HoldKind.BRIEF: "briefly",
    HoldKind.UNTIL_OPERATOR: "until released",
}


def reason_codes() -> str:
    """The table of reason codes."""
    return page("Reason codes", _INTRODUCTION, table(_HEAD, [_row(reason) for reason in Reason]))


def _row(reason: Reason) -> list[str]:
    policy = REASON_POLICIES[reason]
    marks = [_mark(policy.counts_attempt), _mark(policy.retries), _mark(policy.escalates)]
    return [
        code(reason),
        policy.meaning,
        *marks,
        _HOLDS[policy.hold],
        _mark(policy.falls_back),
        _mark(policy.needs_person),
    ]


def _mark(value: bool) -> str:
    return "yes" if value else ""
