"""Write the reference pages that are made from the code: ``python docs/reference/generate.py``."""

from pathlib import Path

from claudomator_py.core.outcome import REASON_POLICIES, HoldKind, Reason

HERE = Path(__file__).parent
HOLDS = {
    HoldKind.NONE: "",
    HoldKind.UNTIL_RESET: "until the reset",
    HoldKind.BRIEF: "briefly",
    HoldKind.UNTIL_OPERATOR: "until released",
}


def reason_codes() -> str:
    """The table of reason codes."""
    rows = [
        "# Reason codes",
        "",
        "Every end that is not a success has one of these codes, in the API, the logs and the command line. The same",
        "table decides what the daemon does; `GET /v1/reasons` gives it as JSON.",
        "",
        "| code | meaning | uses up an attempt | tried again | one tier up | holds the agent | needs a person |",
        "|---|---|---|---|---|---|---|",
    ]
    for reason in Reason:
        policy = REASON_POLICIES[reason]
        marks = [_mark(policy.counts_attempt), _mark(policy.retries), _mark(policy.escalates)]
        cells = [f"`{reason}`", policy.meaning, *marks, HOLDS[policy.hold], _mark(policy.needs_person)]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


PAGES = {"reason-codes.md": reason_codes}


def _mark(value: bool) -> str:
    return "yes" if value else ""


if __name__ == "__main__":
    for name, page in PAGES.items():
        (HERE / name).write_text(page())
