"""The JSON shapes of the API: what anyone who asks is told. Field order is the order of the JSON.

Instants are RFC 3339 strings in UTC (see ``domain.units.format_instant``); states are upper case; priorities are names.
Tokens and cost are the run's own share. A signal is a negative exit code.
"""

from claudomator_py.domain.views.base import EventView, Page
from claudomator_py.domain.views.daemon import (
    BackupView,
    CheckView,
    DrainView,
    FileProblemPage,
    FileProblemView,
    ProblemDetails,
    ReadinessView,
    ReasonView,
)
from claudomator_py.domain.views.routing import PolicyCheckView

__all__ = [
    "BackupView",
    "CheckView",
    "DrainView",
    "EventView",
    "FileProblemPage",
    "FileProblemView",
    "Page",
    "PolicyCheckView",
    "ProblemDetails",
    "ReadinessView",
    "ReasonView",
]
