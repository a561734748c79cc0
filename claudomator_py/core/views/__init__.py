"""The JSON shapes of the API: what anyone who asks is told. Field order is the order of the JSON.

Instants are RFC 3339 strings in UTC (see ``core.units.format_instant``); states are upper case; priorities are names.
Tokens and cost are the run's own share. A signal is a negative exit code.
"""

from claudomator_py.core.views.agents import AgentView, HoldView, NearLimitView
from claudomator_py.core.views.budgets import BudgetView, SpendingView
from claudomator_py.core.views.daemon import (
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
from claudomator_py.core.views.decisions import (
    CandidateView,
    ClassificationView,
    DecisionView,
    PolicyCheckView,
    WhyView,
)
from claudomator_py.core.views.events import EventView
from claudomator_py.core.views.logs import LogChunk, LogEndView, LogEntryView, LogKind, LogPageView, LogTextView
from claudomator_py.core.views.outcomes import InputView, OutcomeView
from claudomator_py.core.views.page import Page
from claudomator_py.core.views.requests import (
    AnswerRequest,
    ApproveRequest,
    DrainRequest,
    Family,
    HoldRequest,
    RejectRequest,
    ReleaseRequest,
    RestartRequest,
)
from claudomator_py.core.views.runs import RunCheckView, RunState, RunView
from claudomator_py.core.views.sessions import SessionView
from claudomator_py.core.views.status import StatusView
from claudomator_py.core.views.tasks import Action, DependencyView, PriorityLabel, TaskFilter, TaskView, WorktreeView
from claudomator_py.core.views.tokens import NewTokenView, TokenRequest, TokenView

__all__ = [
    "Action",
    "AgentView",
    "AnswerRequest",
    "ApproveRequest",
    "BackupView",
    "BudgetView",
    "CandidateView",
    "CheckView",
    "ClassificationView",
    "DecisionView",
    "DependencyView",
    "DrainRequest",
    "DrainView",
    "EventView",
    "Family",
    "FileProblemPage",
    "FileProblemView",
    "HoldRequest",
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
    "PriorityLabel",
    "ProblemDetails",
    "ReadinessView",
    "ReasonView",
    "RejectRequest",
    "ReleaseRequest",
    "RestartRequest",
    "RunCheckView",
    "RunState",
    "RunView",
    "SessionView",
    "SpendingView",
    "StatusView",
    "TaskFilter",
    "TaskView",
    "TokenRequest",
    "TokenView",
    "WhyView",
    "WorktreeView",
]
