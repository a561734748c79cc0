"""The API as typed calls: views come back, refusals are raised."""

import re
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote

import httpx
from httpx_sse import EventSource, connect_sse
from pydantic import BaseModel, ValidationError

from claudomator_py import __version__
from claudomator_py.client.errors import (
    ConnectionLost,
    DaemonNotRunning,
    NotAuthorised,
    ServiceProblem,
    UnexpectedAnswer,
)
from claudomator_py.client.streams import PATIENCE_S, SILENCE_S, follow
from claudomator_py.core.idempotency import LONGEST_KEY
from claudomator_py.core.notice import DeliveryState, DeliveryView
from claudomator_py.core.run import Stream
from claudomator_py.core.task import TaskSpec
from claudomator_py.core.taskfile import to_document
from claudomator_py.core.views import (
    AgentView,
    BackupView,
    DrainRequest,
    DrainView,
    EventView,
    FileProblemView,
    LogChunk,
    LogEntryView,
    LoginCodeView,
    LogTextView,
    Page,
    ProblemDetails,
    ReadinessView,
    ReasonView,
    RestartRequest,
    RunView,
    StatusView,
    TaskFilter,
    TaskView,
    WhyView,
)

TIMEOUT_SECONDS = 30.0
_PROBLEM = "application/problem+json"
_START_IT = "Start it with `claudomator serve`, or set CLAUDOMATOR_URL to where it runs."
_VERSIONS = "See that the URL is the daemon's, and that the daemon and this command are of one version."
_PAGE = 200
_LOG_BYTES = 256 * 1024
_KEY = re.compile(rf"[\x20-\x7e]{{1,{LONGEST_KEY}}}")
_TOKEN = re.compile(r"[\x21-\x7e]+")

V = TypeVar("V", bound=BaseModel)


class Client:
    """A connection to the daemon; use it in a ``with`` block.

    Every call may raise ``client.errors.ClientError``. ref: a task's id, a unique prefix of it, or its name.
    if_version: the version that was seen; a task that was changed since is refused (``stale_version``).
    idempotency_key: a name for this one request; sent again with it, after a lost connection, it is not done again.
    """

    def __init__(self, base_url: str, token: str | None, *, timeout_s: float = TIMEOUT_SECONDS) -> None:
        headers = {"User-Agent": f"claudomator/{__version__}", "Accept": "application/json"}
        if token is not None:
            if not _TOKEN.fullmatch(token):
                remedy = "Copy it again from the file `token` of the daemon's state folder."
                raise NotAuthorised("The token contains characters that no token has.", remedy=remedy)
            headers["Authorization"] = f"Bearer {token}"
        self.base_url = base_url.rstrip("/")
        try:
            # No proxies, no .netrc and no redirects: the token goes to the daemon and to nobody else.
            self._http = httpx.Client(
                base_url=self.base_url,
                headers=headers,
                timeout=timeout_s,
                trust_env=False,
                verify=_certificates(self.base_url),
            )
        except httpx.InvalidURL as error:
            raise UnexpectedAnswer(f"{base_url!r} is not a URL.", remedy="Write http://127.0.0.1:8484.") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()

    def submit(self, spec: TaskSpec, *, idempotency_key: str | None = None) -> TaskView:
        """Hand in a task; it is durable when this returns."""
        document = to_document(spec, defaults=False)
        return self._view(TaskView, "POST", "/v1/tasks", json=document, headers=_headers(idempotency_key))

    def tasks(self, wanted: TaskFilter | None = None, *, cursor: str | None = None, limit: int = 50) -> Page[TaskView]:
        """One part of the list, newest first."""
        query = (wanted or TaskFilter()).model_dump(mode="json", exclude_none=True)
        cursors = {} if cursor is None else {"cursor": cursor}
        return self._view(Page[TaskView], "GET", "/v1/tasks", params={**query, **cursors, "limit": limit})

    def all_tasks(self, wanted: TaskFilter | None = None) -> Iterator[TaskView]:
        """The whole list, newest first, fetched as it is read."""
        page = self.tasks(wanted, limit=_PAGE)
        yield from page.items
        while page.next_cursor is not None:
            page = self.tasks(wanted, cursor=page.next_cursor, limit=_PAGE)
            yield from page.items

    def task(self, ref: str) -> TaskView:
        """One task with its content."""
        return self._view(TaskView, "GET", f"/v1/tasks/{_part(ref)}")

    def task_unless(self, ref: str, version: int) -> TaskView | None:
        """One task with its content; None if it is at that version still, which costs little to ask."""
        response = self._send("GET", f"/v1/tasks/{_part(ref)}", headers={"If-None-Match": f'"{version}"'})
        if response.status_code == httpx.codes.NOT_MODIFIED:
            return None
        if not response.is_success:
            raise self._refusal(response)
        return self._parsed(TaskView, response)

    def cancel(self, ref: str, *, if_version: int | None = None, idempotency_key: str | None = None) -> TaskView:
        """Ask for its end."""
        headers = _headers(idempotency_key, if_version)
        return self._view(TaskView, "POST", f"/v1/tasks/{_part(ref)}/cancel", headers=headers)

    def restart(
        self,
        ref: str,
        request: RestartRequest | None = None,
        *,
        if_version: int | None = None,
        idempotency_key: str | None = None,
    ) -> TaskView:
        """Begin a new generation: the whole decision is made again."""
        body = (request or RestartRequest()).model_dump(mode="json", exclude_defaults=True)
        headers = _headers(idempotency_key, if_version)
        return self._view(TaskView, "POST", f"/v1/tasks/{_part(ref)}/restart", json=body, headers=headers)

    def runs(self, ref: str) -> list[RunView]:
        """All runs of a task, oldest first."""
        return list(self._view(Page[RunView], "GET", f"/v1/tasks/{_part(ref)}/runs").items)

    def run(self, run_id: str) -> RunView:
        """One run, by its whole id."""
        return self._view(RunView, "GET", f"/v1/runs/{_part(run_id)}")

    def log(self, run_id: str, stream: Stream = "stdout", offset: int = 0, limit: int = _LOG_BYTES) -> LogChunk:
        """Bytes of what the run wrote, from ``offset``."""
        query = {"stream": stream, "offset": offset, "limit": limit}
        response = self._request("GET", f"/v1/runs/{_part(run_id)}/log", params=query)
        try:
            following = int(response.headers["Claudomator-Next-Offset"])
            ended = {"true": True, "false": False}[response.headers["Claudomator-Ended"]]
        except (KeyError, ValueError) as error:
            raise UnexpectedAnswer(f"{self.base_url} sent a log without its offsets.", remedy=_VERSIONS) from error
        return LogChunk(response.content, offset, following, ended)

    def follow_text(self, run_id: str, stream: Stream = "stdout", *, patience_s: float = PATIENCE_S) -> Iterator[str]:
        """What the run writes, as text for people, until the run ends. It outlasts restarts of the daemon."""
        for kind, data in self._follow(f"/v1/runs/{_part(run_id)}/log", {"stream": stream}, patience_s):
            if kind == "end":
                return
            if kind == "output":
                yield self._valid(LogTextView, data).text

    def follow_log(
        self, run_id: str, stream: Stream = "stdout", *, patience_s: float = PATIENCE_S
    ) -> Iterator[LogEntryView]:
        """What the agent says and does, until the run ends. It outlasts restarts of the daemon."""
        query = {"stream": stream, "view": "structured"}
        for kind, data in self._follow(f"/v1/runs/{_part(run_id)}/log", query, patience_s):
            if kind == "end":
                return
            if kind == "entry":
                yield self._valid(LogEntryView, data)

    def log_entries(self, run_id: str, stream: Stream = "stdout") -> Iterator[LogEntryView]:
        """What the agent has said and done by now."""
        for page in self._log_pages(run_id, stream, "structured"):
            yield from (self._valid(LogEntryView, item) for item in page)

    def log_text(self, run_id: str, stream: Stream = "stdout") -> Iterator[str]:
        """What the run has written by now, as text for people."""
        for page in self._log_pages(run_id, stream, "text"):
            yield from (self._valid(LogTextView, item).text for item in page)

    def events(
        self,
        after: int | None = None,
        *,
        task: str | None = None,
        kinds: Sequence[str] = (),
        patience_s: float = PATIENCE_S,
        on_connect: Callable[[], None] = lambda: None,
    ) -> Iterator[EventView]:
        """What happens, without end: after that event, or from now on. It outlasts restarts of the daemon.

        on_connect: called when the stream has begun, and again when it was lost and found. An event of kind ``reset``
        says that what happened before it is to be asked for anew.
        """
        query = {"after": after, "task": task, "kind": list(kinds)}
        for _, data in self._follow("/v1/events", query, patience_s, on_connect):
            yield self._valid(EventView, data)

    def why(self, ref: str) -> WhyView:
        """Why a task is where it is."""
        return self._view(WhyView, "GET", f"/v1/tasks/{_part(ref)}/why")

    def agents(self) -> list[AgentView]:
        """The configured agents."""
        return list(self._view(Page[AgentView], "GET", "/v1/agents").items)

    def release(self, agent: str, *, idempotency_key: str | None = None) -> AgentView:
        """End all holds of an agent."""
        return self._view(AgentView, "POST", f"/v1/agents/{_part(agent)}/release", headers=_headers(idempotency_key))

    def reasons(self) -> list[ReasonView]:
        """Every reason code, and what follows from it."""
        return list(self._view(Page[ReasonView], "GET", "/v1/reasons").items)

    def drain(self, reason: str | None = None) -> DrainView:
        """Start nothing new; what runs goes on."""
        return self._view(DrainView, "POST", "/v1/drain", json=DrainRequest(reason=reason).model_dump())

    def undrain(self) -> DrainView:
        """Start tasks again."""
        return self._view(DrainView, "POST", "/v1/undrain")

    def drain_state(self) -> DrainView:
        """Whether tasks are started, and how many run."""
        return self._view(DrainView, "GET", "/v1/drain")

    def notifications(
        self, state: DeliveryState | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> Page[DeliveryView]:
        """One part of who was told of what, newest first."""
        query = {"state": state, "cursor": cursor, "limit": limit}
        given = {key: value for key, value in query.items() if value is not None}
        return self._view(Page[DeliveryView], "GET", "/v1/notifications", params=given)

    def retry_notification(self, delivery: int) -> DeliveryView:
        """Send one again that was given up."""
        return self._view(DeliveryView, "POST", f"/v1/notifications/{delivery}/retry")

    def test_notification(self, target: str) -> DeliveryView:
        """Send a test to a target now."""
        return self._view(DeliveryView, "POST", f"/v1/notifications/test/{_part(target)}")

    def backup(self) -> BackupView:
        """Copy the database, on the daemon's machine."""
        return self._view(BackupView, "POST", "/v1/backups")

    def status(self) -> StatusView:
        """Everything at a glance."""
        return self._view(StatusView, "GET", "/v1/status")

    def inbox_problems(self) -> list[FileProblemView]:
        """Files of the inbox that were refused."""
        return list(self._view(Page[FileProblemView], "GET", "/v1/inbox").items)

    def login_code(self) -> LoginCodeView:
        """A code that lets one browser in, once, within a minute."""
        return self._view(LoginCodeView, "POST", "/v1/login-codes")

    def alive(self) -> bool:
        """Whether a daemon answers at all; it needs no token."""
        try:
            return self._send("GET", "/livez").is_success
        except DaemonNotRunning:
            return False

    def server_time(self) -> float | None:
        """What time it is where the daemon is (Unix time, to the second); None if it does not say."""
        told = self._send("GET", "/livez").headers.get("Date")
        try:
            return None if told is None else parsedate_to_datetime(told).timestamp()
        except ValueError:
            return None

    def readiness(self) -> ReadinessView:
        """Whether tasks are accepted; with the reasons if the token is right."""
        response = self._send("GET", "/readyz")
        if response.status_code not in (httpx.codes.OK, httpx.codes.SERVICE_UNAVAILABLE):
            raise self._refusal(response)
        return self._parsed(ReadinessView, response)

    def _view(self, view: type[V], method: str, path: str, **options: Any) -> V:
        return self._parsed(view, self._request(method, path, **options))

    def _request(self, method: str, path: str, **options: Any) -> httpx.Response:
        response = self._send(method, path, **options)
        if not response.is_success:
            raise self._refusal(response)
        return response

    def _log_pages(self, run_id: str, stream: Stream, view: str) -> Iterator[Sequence[object]]:
        cursor = "0"
        while True:
            query = {"stream": stream, "view": view, "cursor": cursor}
            page = self._request("GET", f"/v1/runs/{_part(run_id)}/log", params=query).json()
            yield page["items"]
            if page["ended"] or page["next_cursor"] == cursor:
                return
            cursor = page["next_cursor"]

    def _follow(
        self, path: str, query: Mapping[str, Any], patience_s: float, on_connect: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[str, str]]:
        """Kind and data of the events of a stream."""
        params = {name: value for name, value in query.items() if value is not None}

        @contextmanager
        def connect(last_id: str | None) -> Iterator[EventSource | None]:
            headers = {} if last_id is None else {"Last-Event-ID": last_id}
            timeout = httpx.Timeout(TIMEOUT_SECONDS, read=SILENCE_S)
            with (
                self._explained(),
                connect_sse(self._http, "GET", path, params=params, headers=headers, timeout=timeout) as source,
            ):
                if not source.response.is_success:
                    source.response.read()
                    raise self._refusal(source.response)
                on_connect()
                yield source if source.response.status_code != httpx.codes.NO_CONTENT else None

        return ((event.event, event.data) for event in follow(connect, patience_s))

    def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        with self._explained():
            return self._http.request(method, path, **options)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Raises why nothing came back as a ClientError."""
        try:
            yield
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            if "CERTIFICATE" in str(error):  # OpenSSL's name for it; httpx has no exception of its own
                detail = f"The certificate of {self.base_url} is not trusted."
                raise UnexpectedAnswer(detail, remedy="Let this machine trust who signed it.") from error
            raise DaemonNotRunning(f"No daemon answers at {self.base_url}.", remedy=_START_IT) from error
        except httpx.TimeoutException as error:
            detail = f"The daemon at {self.base_url} does not answer."
            raise ConnectionLost(detail, remedy="See its log for what keeps it.") from error
        except (httpx.NetworkError, httpx.RemoteProtocolError) as error:
            detail = f"The daemon at {self.base_url} closed the connection."
            raise ConnectionLost(detail, remedy="See whether it still runs, and what came of the request.") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise UnexpectedAnswer(f"{self.base_url} cannot be asked: {error}.", remedy=_VERSIONS) from error

    def _refusal(self, response: httpx.Response) -> Exception:
        if response.headers.get("content-type", "").partition(";")[0] != _PROBLEM:
            detail = f"{self.base_url} answered {response.status_code} in a way no Claudomator does."
            return UnexpectedAnswer(detail, remedy=_VERSIONS)
        details = self._parsed(ProblemDetails, response)
        if response.status_code == httpx.codes.UNAUTHORIZED:
            return NotAuthorised(details.detail, remedy=details.remedy)
        after = response.headers.get("retry-after", "")
        return ServiceProblem(details, retry_after_s=int(after) if after.isascii() and after.isdigit() else None)

    def _parsed(self, view: type[V], response: httpx.Response) -> V:
        return self._valid(view, response.content)

    def _valid(self, view: type[V], data: object) -> V:
        """The view that the JSON, or what it was read to, says."""
        try:
            return view.model_validate_json(data) if isinstance(data, str | bytes) else view.model_validate(data)
        except ValidationError as error:
            detail = f"{self.base_url} answered what this command does not understand."
            raise UnexpectedAnswer(detail, remedy=_VERSIONS) from error


def _certificates(base_url: str) -> ssl.SSLContext | bool:
    """The system's certificates for TLS; loading them takes longer than a request, so plain HTTP goes without."""
    return ssl.create_default_context() if base_url.startswith("https:") else False


def _part(text: str) -> str:
    """The text as one segment of a path, whatever is in it."""
    return quote(text, safe="").replace(".", "%2E") if set(text) <= {"."} else quote(text, safe="")


def _headers(idempotency_key: str | None, if_version: int | None = None) -> Mapping[str, str]:
    """What makes a change safe to ask for. Raises ValueError for what is no key."""
    headers = {} if if_version is None else {"If-Match": f'"{if_version}"'}
    if idempotency_key is not None:
        if not _KEY.fullmatch(idempotency_key):
            raise ValueError(f"an idempotency key has 1 to {LONGEST_KEY} printable ASCII characters")
        escaped = idempotency_key.replace("\\", "\\\\").replace('"', '\\"')
        headers["Idempotency-Key"] = f'"{escaped}"'
    return headers
