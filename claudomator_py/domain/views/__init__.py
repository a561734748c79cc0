"""The JSON shapes of the API: what anyone who asks is told. Field order is the order of the JSON.

Instants are RFC 3339 strings in UTC (see ``domain.units.format_instant``); states are upper case; priorities are names.
Tokens and cost are the run's own share. A signal is a negative exit code.
"""

from claudomator_py.domain.run import LogKind
from claudomator_py.domain.views.access import NewTokenView, SessionView, TokenRequest, TokenView
from claudomator_py.domain.views.agents import AgentView, BudgetView, HoldView, NearLimitView, SpendingView
from claudomator_py.domain.views.base import EventView, Page
from claudomator_py.domain.views.daemon import (
    BackupView,
    CheckView,
    DrainView,
    FileProblemPage,
    FileProblemView,
    LoginCodeView,
    ProblemDetails,
    ReadinessView,
    ReasonView,
)
from claudomator_py.domain.views.routing import PolicyCheckView
from claudomator_py.domain.views.runs import (
    AskedView,
    HandoffView,
    InputView,
    LogChunk,
    LogEndView,
    LogEntryView,
    LogPageView,
    LogTextView,
    OutcomeView,
    ProgressView,
    RunCheckView,
    RunProgressView,
    RunState,
    RunView,
    SubtaskView,
)

__all__ = [
    "AgentView",
    "AskedView",
    "BackupView",
    "BudgetView",
    "CheckView",
    "DrainView",
    "EventView",
    "FileProblemPage",
    "FileProblemView",
    "HandoffView",
    "HoldView",
    "InputView",
    "LogChunk",
    "LogEndView",
    "LogEntryView",
    "LogKind",
    "LogPageView",
    "LogTextView",
    "LoginCodeView",
    "NearLimitView",
    "NewTokenView",
    "OutcomeView",
    "Page",
    "PolicyCheckView",
    "ProblemDetails",
    "ProgressView",
    "ReadinessView",
    "ReasonView",
    "RunCheckView",
    "RunProgressView",
    "RunState",
    "RunView",
    "SessionView",
    "SpendingView",
    "SubtaskView",
    "TokenRequest",
    "TokenView",
]
