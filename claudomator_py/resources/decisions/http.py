"""/v1/decisions: which method answers each operation."""

from claudomator_py.api.served import serve
from claudomator_py.resources.decisions.ask import Decisions
from claudomator_py.resources.decisions.shape import DecisionCalls

decisions = serve(
    "decisions", Decisions, {DecisionCalls.decisions: Decisions.page, DecisionCalls.decision: Decisions.one}
)
