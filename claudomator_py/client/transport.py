"""Requests to the daemon, and its answers as views or errors."""

import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final, Self, TypeVar
from urllib.parse import quote

import httpx
from httpx_sse import EventSource, ServerSentEvent, connect_sse
from pydantic import BaseModel, ValidationError

from claudomator_py import __version__
from claudomator_py.client import (
    START_IT,
    ClientError,
    ConnectionLost,
    DaemonNotRunning,
    NotAuthorised,
    NotStarted,
    ServiceProblem,
    UnexpectedAnswer,
)
from claudomator_py.client.peer import check_peer
from claudomator_py.client.state_folder import StateFolder
from claudomator_py.domain.principal import MAX_KEY_LENGTH
from claudomator_py.domain.shape import Page, ProblemDetails
from claudomator_py.domain.task import TaskSpec
from claudomator_py.surface import (
    CardDocument,
    IdempotencyKey,
    IfVersion,
    InPath,
    InQuery,
    JsonBody,
    JsonField,
    Operation,
    QueryFields,
    TaskDocument,
)
from claudomator_py.values import regex

PATIENCE_S = 60.0
"""How long a daemon may be away while a stream is followed."""
SILENCE_S = 45.0
"""Silence after which a stream counts as lost: the daemon sends something every 15 seconds."""

_FIRST_PAUSE_S = 0.25
_MAX_PAUSE_S = 5.0
_UNAVAILABLE = 503

Connect = Callable[[str | None], AbstractContextManager[EventSource | None]]
"""Opens the stream after the event of that id, or at its beginning; yields None when nothing is left."""


def follow(connect: Connect, patience_s: float = PATIENCE_S) -> Iterator[ServerSentEvent]:
    """Yield the stream's events that have data. Ends when the daemon says that nothing is left.

    Raises what connect raises: at once if it never worked, else if the daemon is not back within patience_s seconds.
    """
    last_id: str | None = None
    pause_s = _FIRST_PAUSE_S
    give_up: float | None = None
    while True:
        try:
            with connect(last_id) as source:
                if source is None:
                    return
                for event in source.iter_sse():
                    last_id = event.id or last_id
                    pause_s, give_up = _FIRST_PAUSE_S, None
                    if event.data:
                        yield event
        except (DaemonNotRunning, ServiceProblem) as error:
            passing = isinstance(error, DaemonNotRunning) or error.details.status == _UNAVAILABLE
            if last_id is None or not passing or (give_up is not None and time.monotonic() >= give_up):
                raise
        if give_up is None:
            give_up = time.monotonic() + patience_s
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _MAX_PAUSE_S)


TIMEOUT_SECONDS: Final = 30.0
VERSIONS: Final = "Check that the URL is the daemon's, and that daemon and command are the same version."
_PROBLEM = "application/problem+json"
_KEY = regex(rf"[\x20-\x7e]{{1,{MAX_KEY_LENGTH}}}")
_TOKEN = regex(r"[\x21-\x7e]+")

_OVER_UNIX = "http://localhost"

V = TypeVar("V", bound=BaseModel)


class HttpTransport:
    """A connection to the daemon. Every request may raise ``client.ClientError``."""

    def __init__(
        self,
        base_url: str,
        token: str | None,
        *,
        timeout_s: float = TIMEOUT_SECONDS,
        locate: Callable[[], str] | None = None,
        own: Path | None = None,
        socket: bool = False,
    ) -> None:
        """locate: returns where the daemon is now, called when a stream was lost; may raise ClientError.

        own: the state folder of this user's daemon; then only a process of this user, or root's, gets requests. socket:
        connect through the Unix socket in that folder.
        """
        self._locate = locate
        self.state_dir = own
        self._extensions = {} if own is None else {"trace": _check_connection}
        headers = {"User-Agent": f"claudomator/{__version__}", "Accept": "application/json"}
        if token is not None:
            if not _TOKEN.fullmatch(token):
                remedy = "Copy it again from the file `token` of the daemon's state folder."
                raise NotAuthorised("The token contains invalid characters.", remedy=remedy)
            headers["Authorization"] = f"Bearer {token}"
        self.base_url = base_url.rstrip("/")
        over_socket = None
        self._folder = _opened(own) if own is not None and socket else None
        if self._folder is not None:
            over_socket = httpx.HTTPTransport(uds=self._folder.socket_address, verify=False, trust_env=False)
        try:
            # No proxies, no .netrc and no redirects: only the daemon may get the token.
            self._http = httpx.Client(
                base_url=self.base_url if self._folder is None else _OVER_UNIX,
                headers=headers,
                timeout=timeout_s,
                trust_env=False,
                verify=_certificates(self.base_url),
                transport=over_socket,
            )
        except httpx.InvalidURL as error:
            raise UnexpectedAnswer(f"{base_url!r} is not a URL.", remedy="Write http://127.0.0.1:8484.") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._http.close()
        if self._folder is not None:
            self._folder.close()

    def _call(self, operation: Operation, arguments: Mapping[str, Any]) -> Any:
        """Send the request of an operation; see ``surface.Calls``."""
        path, query, body = operation.path, dict[str, Any](), None
        key: str | None = None
        version: int | None = None
        for parameter in operation.parameters:
            name, value = parameter.name, arguments[parameter.name]
            match parameter.sent_as:
                case InPath():
                    path = path.replace(f"{{{name}}}", path_segment(str(value)))
                case InQuery():
                    query |= given(**{name: value})
                case QueryFields():
                    query |= {} if value is None else body_of(value)
                case TaskDocument():
                    body = task_document(value)
                case CardDocument():
                    body = value.document
                case JsonBody():
                    body = {} if value is None else body_of(value)
                case JsonField():
                    body = {name: value}
                case IdempotencyKey():
                    key = value
                case IfVersion():
                    version = value
        options = given(params=query or None, json=body, headers=change_headers(key, version) or None)
        response = self._send(operation.method, path, **options)
        if not response.is_success and response.status_code not in operation.also:
            raise self._refusal(response)
        if operation.answer is None:
            return None
        view = self._parsed(operation.answer, response)
        return list(view.items) if isinstance(view, Page) and operation.listed else view

    def _request(self, method: str, path: str, **options: Any) -> httpx.Response:
        response = self._send(method, path, **options)
        if not response.is_success:
            raise self._refusal(response)
        return response

    def _follow(
        self, path: str, query: Mapping[str, Any], patience_s: float, on_connect: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[str, str]]:
        """Yield kind and data of a stream's events."""
        params = given(**query)

        @contextmanager
        def connect(last_id: str | None) -> Iterator[EventSource | None]:
            headers = {} if last_id is None else {"Last-Event-ID": last_id}
            timeout = httpx.Timeout(TIMEOUT_SECONDS, read=SILENCE_S)
            options = {"timeout": timeout, "extensions": self._extensions}
            if last_id is not None and self._locate is not None:
                self._move(self._locate())
            with (
                self._explained(),
                connect_sse(self._http, "GET", path, params=params, headers=headers, **options) as source,
            ):
                if not source.response.is_success:
                    source.response.read()
                    raise self._refusal(source.response)
                on_connect()
                yield source if source.response.status_code != httpx.codes.NO_CONTENT else None

        return ((event.event, event.data) for event in follow(connect, patience_s))

    def _move(self, base_url: str) -> None:
        """Use this URL from now on: a restarted daemon may listen elsewhere."""
        if base_url.rstrip("/") != self.base_url:
            self.base_url = base_url.rstrip("/")
            if self._folder is None:
                self._http.base_url = self.base_url

    def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        with self._explained():
            return self._http.request(method, path, extensions=self._extensions, **options)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise network errors as a ClientError that explains them."""
        try:
            yield
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            if "CERTIFICATE" in str(error):  # OpenSSL's word; httpx has no such exception
                detail = f"The certificate of {self.base_url} is not trusted."
                raise UnexpectedAnswer(detail, remedy="Make this machine trust its issuer.") from error
            raise DaemonNotRunning(f"No daemon answers at {self.base_url}.", remedy=START_IT) from error
        except httpx.TimeoutException as error:
            detail = f"The daemon at {self.base_url} does not answer."
            raise ConnectionLost(detail, remedy="Check the daemon's log.") from error
        except (httpx.NetworkError, httpx.RemoteProtocolError) as error:
            detail = f"The daemon at {self.base_url} closed the connection."
            raise ConnectionLost(
                detail, remedy="Check whether it still runs and whether the request took effect."
            ) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise UnexpectedAnswer(f"{self.base_url} cannot be reached: {error}.", remedy=VERSIONS) from error

    def _refusal(self, response: httpx.Response) -> Exception:
        if response.headers.get("content-type", "").partition(";")[0] != _PROBLEM:
            detail = f"The answer {response.status_code} of {self.base_url} is not that of a Claudomator daemon."
            return UnexpectedAnswer(detail, remedy=VERSIONS)
        details = self._parsed(ProblemDetails, response)
        if response.status_code == httpx.codes.UNAUTHORIZED:
            return NotAuthorised(details.detail, remedy=details.remedy)
        after = response.headers.get("retry-after", "")
        return ServiceProblem(details, retry_after_s=int(after) if after.isascii() and after.isdigit() else None)

    def _parsed(self, view: type[V], response: httpx.Response) -> V:
        return self._valid(view, response.content)

    def _valid(self, view: type[V], data: object) -> V:
        """Return the view for JSON, parsed or not."""
        try:
            return view.model_validate_json(data) if isinstance(data, str | bytes) else view.model_validate(data)
        except ValidationError as error:
            detail = f"{self.base_url} sent a response that this command does not understand."
            raise UnexpectedAnswer(detail, remedy=VERSIONS) from error


def _opened(state_dir: Path) -> StateFolder:
    try:
        return StateFolder(state_dir)
    except FileNotFoundError:
        raise NotStarted(f"The state folder {state_dir} is gone.", remedy=START_IT) from None


def _check_connection(event: str, info: Mapping[str, Any]) -> None:
    """Check a new connection before anything is sent on it. Raises NotAuthorised, ConnectionLost."""
    if event not in ("connection.connect_tcp.complete", "connection.connect_unix_socket.complete"):
        return
    stream = info["return_value"]
    try:
        check_peer(stream.get_extra_info("socket"))
    except OSError as error:
        stream.close()
        raise ConnectionLost("The daemon closed the connection.", remedy="Check whether it still runs.") from error
    except BaseException:
        stream.close()
        raise


def _certificates(base_url: str) -> ssl.SSLContext | bool:
    """Return the system's certificates for TLS; none for plain HTTP, as loading them takes longer than a request."""
    return ssl.create_default_context() if base_url.startswith("https:") else False


def task_document(spec: TaskSpec) -> dict[str, object]:
    """Return the task in the form of a task file."""
    from claudomator_py.schema.taskfile import to_document  # late, as few calls need what is known about files

    return to_document(spec, defaults=False)


def path_segment(text: str) -> str:
    """Return the text escaped as one segment of a path. Raises ClientError: no name and no id contains a slash."""
    if "/" in text:
        raise ClientError(f"Nothing is named {text!r}, as no name or id contains a slash.", remedy="Correct the name.")
    return quote(text, safe="").replace(".", "%2E") if set(text) <= {"."} else quote(text, safe="")


def body_of(request: BaseModel) -> dict[str, Any]:
    """Return a request body or filters as JSON, without defaults."""
    return request.model_dump(mode="json", exclude_defaults=True)


def given(**query: Any) -> dict[str, Any]:
    """Return the parameters of a query that are not None."""
    return {name: value for name, value in query.items() if value is not None}


def change_headers(idempotency_key: str | None, if_version: int | None) -> Mapping[str, str]:
    """Return the headers that make a change safe to repeat. Raises ValueError for an invalid key."""
    headers = {} if if_version is None else {"If-Match": f'"{if_version}"'}
    if idempotency_key is not None:
        if not _KEY.fullmatch(idempotency_key):
            raise ValueError(f"an idempotency key has 1 to {MAX_KEY_LENGTH} printable ASCII characters")
        escaped = idempotency_key.replace("\\", "\\\\").replace('"', '\\"')
        headers["Idempotency-Key"] = f'"{escaped}"'
    return headers
