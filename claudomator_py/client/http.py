"""The API as typed calls that return views and raise refusals."""

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import httpx

from claudomator_py import resources
from claudomator_py.client import DaemonNotRunning, UnexpectedAnswer
from claudomator_py.client.discovery import Endpoint, discover
from claudomator_py.client.transport import PATIENCE_S, TIMEOUT_SECONDS, VERSIONS, HttpTransport, V, path_segment
from claudomator_py.imports import bulk_import
from claudomator_py.surface import Calls

if TYPE_CHECKING:
    from claudomator_py.domain.run import Stream
    from claudomator_py.resources.access import LoginCalls, TokenCalls
    from claudomator_py.resources.agents import AgentCalls
    from claudomator_py.resources.branches import BranchCalls, ChangeCalls
    from claudomator_py.resources.channels import ChannelCalls
    from claudomator_py.resources.daemon import DaemonCalls, HostCalls
    from claudomator_py.resources.decisions import DecisionCalls
    from claudomator_py.resources.events import EventCalls, EventView
    from claudomator_py.resources.notifications import NotificationCalls
    from claudomator_py.resources.overview import OverviewCalls
    from claudomator_py.resources.policy import PolicyCalls
    from claudomator_py.resources.report import ReportCalls
    from claudomator_py.resources.routing import RoutingCalls
    from claudomator_py.resources.runs import LogChunk, LogEntryView, RunCalls
    from claudomator_py.resources.schedules import ScheduleCalls
    from claudomator_py.resources.specialists import SpecialistCalls
    from claudomator_py.resources.tasks import TaskCalls, TaskView

    class _Calls(
        RunCalls,
        TaskCalls,
        RoutingCalls,
        SpecialistCalls,
        AgentCalls,
        HostCalls,
        ChangeCalls,
        BranchCalls,
        ChannelCalls,
        ScheduleCalls,
        DecisionCalls,
        TokenCalls,
        LoginCalls,
        PolicyCalls,
        DaemonCalls,
        NotificationCalls,
        OverviewCalls,
        ReportCalls,
        EventCalls,
    ):
        """The calls of every resource."""

else:

    class _Calls:
        """The calls of every resource, each of which is imported when a call is looked up in it."""

        def __getattr__(self, name):
            call = next((vars(calls)[name] for calls in _every() if name in vars(calls)), None)
            if call is None or name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return call.__get__(self)

        def __dir__(self):
            return sorted({*super().__dir__(), *(name for calls in _every() for name in vars(calls))})


_COMMON: Final = ("tasks", "overview", "runs", "events", "agents", "routing", "specialists", "daemon", "branches")
"""The resources of the most common commands."""


def _resources() -> Iterator[str]:
    yield from _COMMON
    from pkgutil import iter_modules  # late: most commands need no other

    yield from (
        module.name for module in iter_modules(resources.__path__) if module.ispkg and module.name not in _COMMON
    )


def _every() -> Iterator[type]:
    """Yield the classes that declare the calls."""
    for resource in _resources():
        with bulk_import():
            module = import_module(f"claudomator_py.resources.{resource}")
        kinds = [
            kind for kind in vars(module).values() if isinstance(kind, type) and kind.__module__ == module.__name__
        ]
        yield from (kind for kind in kinds if Calls in kind.__mro__)


_LOG_BYTES: Final = 256 * 1024


class Client(HttpTransport, _Calls):
    """A connection to the daemon; use it in a ``with`` block.

    Every call may raise ``client.ClientError``. ref: a task's id, a unique prefix of it, or its name.
    if_version: the version that was seen; a task that has changed since is refused (``stale_version``).
    idempotency_key: a name for this request; if sent again with it, after a lost connection, it is not executed again.
    """

    def task_unless(self, ref: str, version: int) -> "TaskView | None":
        """Return a task with its content; None if it still has that version, which is a cheap request."""
        from claudomator_py.resources.tasks import TaskView

        response = self._send("GET", f"/v1/tasks/{path_segment(ref)}", headers={"If-None-Match": f'"{version}"'})
        if response.status_code == httpx.codes.NOT_MODIFIED:
            return None
        if not response.is_success:
            raise self._refusal(response)
        return self._parsed(TaskView, response)

    def events(
        self,
        after: int | None = None,
        *,
        task: str | None = None,
        kinds: Sequence[str] = (),
        patience_s: float = PATIENCE_S,
        on_connect: Callable[[], None] = lambda: None,
    ) -> "Generator[EventView, None, None]":
        """Yield events without end: after that one, or from now on, across restarts of the daemon.

        on_connect: called when the stream has begun, and after each interruption. An event of kind ``reset`` means that
        earlier events must be fetched again.
        """
        from claudomator_py.resources.events import EventView

        query = {"after": after, "task": task, "kind": list(kinds)}
        for _, data in self._follow("/v1/events", query, patience_s, on_connect):
            yield self._valid(EventView, data)

    def log(
        self, run_id: str, stream: "Stream" = "stdout", offset: int = 0, limit: int = _LOG_BYTES, *, check: bool = False
    ) -> "LogChunk":
        """Return bytes of the run's output, from ``offset``. check: of its check's output."""
        from claudomator_py.resources.runs import LogChunk

        query = _log_query(stream, check=check) | {"offset": offset, "limit": limit}
        response = self._request("GET", f"/v1/runs/{path_segment(run_id)}/log", params=query)
        try:
            following = int(response.headers["Claudomator-Next-Offset"])
            ended = {"true": True, "false": False}[response.headers["Claudomator-Ended"]]
        except (KeyError, ValueError) as error:
            raise UnexpectedAnswer(f"{self.base_url} sent a log without its offsets.", remedy=VERSIONS) from error
        return LogChunk(response.content, offset, following, ended)

    def follow_text(
        self, run_id: str, stream: "Stream" = "stdout", *, check: bool = False, patience_s: float = PATIENCE_S
    ) -> Generator[str, None, None]:
        """Yield the output of the run, or of its check, as text for people until the run ends, across restarts of the
        daemon."""
        from claudomator_py.resources.runs import LogTextView

        for passage in self._following(run_id, _log_query(stream, check=check), "output", LogTextView, patience_s):
            yield passage.text

    def follow_log(
        self, run_id: str, stream: "Stream" = "stdout", *, check: bool = False, patience_s: float = PATIENCE_S
    ) -> "Generator[LogEntryView, None, None]":
        """Yield what the agent says and does, or its check's output, until the run ends, across restarts of the
        daemon."""
        from claudomator_py.resources.runs import LogEntryView

        query = _log_query(stream, check=check) | {"view": "structured"}
        yield from self._following(run_id, query, "entry", LogEntryView, patience_s)

    def log_entries(self, run_id: str, stream: "Stream" = "stdout", *, check: bool = False) -> "Iterator[LogEntryView]":
        """Yield what the agent has said and done so far, or its check's output."""
        from claudomator_py.resources.runs import LogEntryView

        yield from self._so_far(run_id, _log_query(stream, check=check) | {"view": "structured"}, LogEntryView)

    def log_text(self, run_id: str, stream: "Stream" = "stdout", *, check: bool = False) -> Iterator[str]:
        """Yield the output of the run so far, or of its check, as text for people."""
        from claudomator_py.resources.runs import LogTextView

        for passage in self._so_far(run_id, _log_query(stream, check=check) | {"view": "text"}, LogTextView):
            yield passage.text

    def _following(
        self, run_id: str, query: Mapping[str, object], kind: str, view: type[V], patience_s: float
    ) -> Iterator[V]:
        """Yield the events of this kind in a run's log until the run ends."""
        for event, data in self._follow(f"/v1/runs/{path_segment(run_id)}/log", query, patience_s):
            if event == "end":
                return
            if event == kind:
                yield self._valid(view, data)

    def _so_far(self, run_id: str, query: Mapping[str, object], view: type[V]) -> Iterator[V]:
        """Yield the items of a run's log, page by page, up to the last one written."""
        cursor = "0"
        while True:
            params = {**query, "cursor": cursor}
            page = self._request("GET", f"/v1/runs/{path_segment(run_id)}/log", params=params).json()
            yield from (self._valid(view, item) for item in page["items"])
            if page["ended"] or page["next_cursor"] == cursor:
                return
            cursor = page["next_cursor"]

    def metrics(self) -> str:
        """Return the metrics in Prometheus' text format."""
        return self._request("GET", "/metrics", headers={"Accept": "text/plain"}).text

    def alive(self) -> bool:
        """Return whether a daemon answers; this needs no token."""
        try:
            return self._send("GET", "/livez").is_success
        except DaemonNotRunning:
            return False

    def server_time(self) -> float | None:
        """Return the daemon's clock as Unix time, to the second; None: not reported."""
        date = self._send("GET", "/livez").headers.get("Date")
        try:
            return None if date is None else parsedate_to_datetime(date).timestamp()
        except ValueError:
            return None


def _log_query(stream: "Stream", *, check: bool) -> dict[str, object]:
    """Return the query for an output. ``check`` is in it only if set, as an older daemon refuses unknown parameters."""
    return {"stream": stream, "check": "true"} if check else {"stream": stream}


def connect(config: Path | None = None, state_dir: Path | None = None, *, timeout_s: float = TIMEOUT_SECONDS) -> Client:
    """Return a client. config, state_dir: as the options of that name; without them, by the environment and the
    configuration that is found.

    Raises ClientError if no daemon is announced. Nothing is sent yet.
    """

    def locate() -> Endpoint:
        return discover(config, state_dir, os.environ, Path.cwd())

    endpoint = locate()
    return Client(
        endpoint.url,
        endpoint.token,
        timeout_s=timeout_s,
        own=endpoint.own,
        socket=endpoint.socket,
        locate=lambda: _moved(endpoint, locate()),
    )


def _moved(before: Endpoint, now: Endpoint) -> str:
    """Return where the daemon is now, unless what is there takes another token."""
    return now.url if now.token == before.token else before.url
