"""What an agent is told of asking: how it can, and what the operator said to what it asked."""

from collections.abc import Sequence

from claudomator_py.core.asking import MARKER
from claudomator_py.core.conversation import Exchange
from claudomator_py.core.lifecycle import InputKind

HOW_TO_ASK = (
    "If you need a decision of the operator before you can go on, end with a message whose last part begins, on a line "
    f"of its own, with `{MARKER}` and then the question. You will be told the answer here. Do not ask what you can "
    "find out yourself."
)
_ANSWER = "The operator answers your question:"
_REFUSED = "You may not use what you were denied. The operator says:"
_BEFORE = "The operator was asked about this task before, in a conversation that is gone:"


def told(exchange: Exchange) -> list[str]:
    """For the conversation in which it was asked: what was said to it."""
    if exchange.allowed:
        return [f"The operator lets you use: {', '.join(exchange.allowed)}. Go on with the task where you left off."]
    lead = _REFUSED if exchange.kind is InputKind.APPROVAL else _ANSWER
    return [lead, (exchange.answer or "").strip()]


def told_afresh(exchanges: Sequence[Exchange]) -> list[str]:
    """For a fresh conversation: all that was asked, and said to it."""
    return [] if not exchanges else [_BEFORE, *(part for exchange in exchanges for part in _quoted(exchange))]


def _quoted(exchange: Exchange) -> list[str]:
    asked = "\n".join(f"> {line}".rstrip() for line in exchange.asked.splitlines())
    said = f"It may use: {', '.join(exchange.allowed)}." if exchange.allowed else (exchange.answer or "").strip()
    return [asked, f"The operator said: {said}"]
