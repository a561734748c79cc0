"""The daemon itself: its health, its switches, its refusals."""

from pydantic import Field

from claudomator_py.domain.errors import Problem
from claudomator_py.domain.fields import Strict
from claudomator_py.domain.outcome import HoldKind, Reason
from claudomator_py.domain.views.base import Instant, Page, View


class FileProblemView(View):
    """A file of the inbox that was refused as a whole, and every reason."""

    path: str
    problems: tuple[Problem, ...]


class FileProblemPage(Page[FileProblemView]):
    """A part of the refused files, the last one refused first. total: of all of them."""

    total: int


class BackupView(View):
    """A copy of the database. path: on the daemon's machine."""

    path: str
    bytes: int
    created_at: Instant


class ReasonView(View):
    """What a reason code means and what follows from it; see ``domain.outcome.ReasonPolicy``."""

    reason: Reason
    meaning: str
    counts_attempt: bool
    retries: bool
    escalates: bool
    hold: HoldKind
    needs_person: bool
    falls_back: bool


class CheckView(View):
    """One thing that was looked at. remedy: what to do when it is not ok.

    blocking: whether tasks are not accepted or not started while it is not ok; else it only needs attention.
    """

    name: str
    ok: bool
    detail: str
    remedy: str | None = None
    blocking: bool = True


class ReadinessView(View):
    """Whether tasks are accepted and started. Without authentication ``checks`` is empty."""

    ready: bool
    checks: tuple[CheckView, ...] = ()


class DrainRequest(Strict):
    """Why nothing is to be started."""

    reason: str | None = Field(default=None, max_length=2_000)


class DrainView(View):
    """Whether the daemon is drained, and starts nothing new. running: live runs, which finish."""

    drained: bool
    since: Instant | None = None
    reason: str | None = None
    running: int


class ProblemDetails(View):
    """An error response of the API (RFC 9457). code: its stable name; remedy: what to do next.

    problems: each fault, where a document or several fields were wrong.
    """

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None
    code: str
    remedy: str
    problems: tuple[Problem, ...] = ()
