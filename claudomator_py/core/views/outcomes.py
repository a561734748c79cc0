"""How runs ended, and what they ask of a person."""

from claudomator_py.core.lifecycle import InputKind
from claudomator_py.core.outcome import Denied, Outcome, OutcomeStatus, Provenance, Reason, Tokens
from claudomator_py.core.units import format_instant
from claudomator_py.core.view import Instant, View


class OutcomeView(View):
    """How a run ended. detail: the error in the agent's own words; limit: the window that it named.

    question: what it ended with; denied: tool calls that it was denied.
    """

    status: OutcomeStatus
    reason: Reason | None = None
    reset_at: Instant | None = None
    provenance: Provenance | None = None
    conversation_id: str | None = None
    text: str | None = None
    tokens: Tokens = Tokens()
    cost_usd: float | None = None
    detail: str | None = None
    limit: str | None = None
    question: str | None = None
    denied: tuple[Denied, ...] = ()

    @classmethod
    def of(cls, outcome: Outcome) -> "OutcomeView":
        """The shape of an outcome."""
        return cls(
            status=outcome.status,
            reason=outcome.reason,
            reset_at=None if outcome.reset_at is None else format_instant(outcome.reset_at),
            provenance=outcome.provenance,
            conversation_id=outcome.conversation_id,
            text=outcome.text,
            tokens=outcome.tokens,
            cost_usd=outcome.cost_usd,
            detail=outcome.detail,
            limit=outcome.limit,
            question=outcome.question,
            denied=outcome.denied,
        )


class InputView(View):
    """What a person is asked. text: the question, or what leave is asked for. since: since when.

    agent, run_id: whose run asks; None: it is asked before the first run. tools: what leave is asked for; approving
    allows the ``rule`` of each. kept_until: until when its working directory is kept from others; None: it is not.
    """

    kind: InputKind
    text: str
    since: Instant
    agent: str | None = None
    run_id: str | None = None
    tools: tuple[Denied, ...] = ()
    kept_until: Instant | None = None
