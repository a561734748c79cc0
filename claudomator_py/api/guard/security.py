"""The checks that every request must pass before it is routed: its host, its origin, its credentials, its size.

A local daemon is attacked through its user's browser. So the Host must be exactly one of ours (DNS rebinding), pages of
other sites are refused whatever the method (a Host check alone would let a cross-site POST through), and a token is
needed even on loopback. No CORS header is ever sent.

A browser has a session in a cookie instead of the token. The session is valid only at the host where it began, for the
pages and for their event streams, on requests of our own pages and on addresses that the user entered. A request that
changes something must come from our own page, according to the browser. A link on another site may lead to our pages,
but then counts as without a session.
"""

import asyncio
import hmac
import logging
from collections.abc import Callable, Sequence
from enum import Enum

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from claudomator_py.api.guard.exchange import GoneError, RequestHeaders, ResponseHeaders, bounded
from claudomator_py.api.guard.limits import Throttle
from claudomator_py.api.guard.pace import Paces, PrincipalBusy
from claudomator_py.api.guard.sessions import Sessions
from claudomator_py.api.problem import Refused, unexpected
from claudomator_py.api.settings import WebSettings
from claudomator_py.domain.errors import Unavailable, shown
from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.environment.secrets import PREFIX
from claudomator_py.resources.access.service import Keyring
from claudomator_py.values import dataclass, regex

MAX_BODY_BYTES = 1024 * 1024
RUN_PREFIX = PREFIX.encode("ascii")
LOGIN_BODY_BYTES = 4 * 1024
"""Without credentials, the only body is a login, which is short."""
OPEN_PATHS = frozenset({"/livez", "/readyz"})
WEBHOOK = regex(r"/v1/channels/[^/]+/incoming")
"""Where messages from outside arrive. They are signed and need no token (``webhook.py`` of channels)."""
WEBHOOK_BODY_BYTES = 256 * 1024
UNIX_HOST = "localhost"
"""The Host in requests over a Unix socket."""
PUBLIC_PAGES = regex(r"/login|/static/[^/]+|/\.well-known/agent-card\.json")
_PAGES = regex(
    r"/|/(?:tasks|schedules|hosts)/.+|/logout|/drain|/undrain|/next|/new(?:/check)?|/schedules"
    r"|/(?:agents|repositories|select|sessions|specialists|channels|routing|decisions|policy|report|night|notices)(?:/.+)?"
)
_FOR_PROGRAMS = regex(r"/(?:v1|a2a|\.well-known)(?:/.*)?|/openapi\.json|/metrics")
"""Paths where a session is not valid, except for the streams that pages follow."""
_STREAMS = regex(r"/v1/events|/v1/runs/[^/]+/log")

log = logging.getLogger(__name__)

STALE = "claudomator.stale_cookie"
"""Key in the scope: the name of a cookie in the request that is no longer valid, so that a page may remove it."""
_READING = frozenset({"GET", "HEAD"})
_ALLOWED_SITES = frozenset({b"same-origin", b"none"})


class ServerLoad(Enum):
    """Who the server can serve, health checks aside."""

    FREE = "everybody"
    CROWDED = "clients with credentials"
    FULL = "nobody"


class _From(Enum):
    """Where a request comes from, according to the browser."""

    NOBODY = "a client that is no browser, or an address that the user entered"
    OWN_PAGE = "our own page"
    LINK = "a link on a page of another origin"


@dataclass(frozen=True, slots=True)
class _Admitted:
    """Who sent a request. by: None: anonymous. standing: whether the credentials are still valid, for answers that
    take long. session: the id of the browser's session, if that was the credential.
    """

    by: Principal | None = None
    standing: Callable[[], bool] = lambda: True
    session: str | None = None


class Security:
    """ASGI middleware; the outermost, so that its headers are on every response, including errors from inside.

    dress: turns a refusal into what the client can show, such as a page.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        settings: WebSettings,
        sessions: Sessions,
        keyring: Keyring,
        throttle: Throttle,
        dress: Callable[[Scope, Response], Response],
        websockets: ASGIApp | None,
        paces: Paces,
    ) -> None:
        """websockets: the application for WebSockets, which bypass the middleware for requests, whose state would stay
        in memory for as long as they last; None: they are refused.
        """
        self._app = app
        self._authorities = settings.authorities()
        self._token = settings.token.encode("ascii")
        self._cookie = settings.cookie.encode("ascii")
        self._sessions = sessions
        self._keyring = keyring
        self._dress = dress
        self._websockets = websockets
        self._paces = paces
        self._limits = settings.limits
        self._throttle = throttle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] == "websocket":
            await self._connect(scope, receive, send)
            return
        answer = ResponseHeaders(send)
        try:
            headers = RequestHeaders(scope)
            self._throttle.check_target(scope["raw_path"], scope["query_string"])
            host = self._check_host(headers, over_unix=_over_unix(scope))
            sender = _sender(headers, host, scope)
            run = await self._run(headers)
            admitted = self._admit(headers, host, sender, scope, run)
            authorised = admitted.by is not None
            state = scope.setdefault("state", {})
            state.update(principal=admitted.by, standing=admitted.standing, session=admitted.session)
            _check_load(state.get("load", ServerLoad.FREE), scope["path"], authorised=authorised)
            heard = await self._hear(headers, receive, scope, admitted.by)
            if scope["method"] == "HEAD":
                scope, heard = {**scope, "method": "GET"}, answer.only_head(heard)
            pace = None if admitted.by is None or scope["path"] in OPEN_PATHS else self._paces.of(admitted.by)
            if pace is None and not authorised:
                await self._app(scope, heard, answer)
            elif pace is None:
                with self._paces.desk.ahead() as answer.begins:
                    await self._app(scope, heard, answer)
            else:
                async with pace.serving() as answer.begins:
                    await self._app(scope, heard, answer)
        except GoneError:
            return  # the client has gone
        except PrincipalBusy:
            await self._dress(scope, _busy().response(scope["path"]))(scope, receive, answer)
        except Refused as refused:
            await self._dress(scope, refused.response(scope["path"]))(scope, receive, answer)
        except Exception:
            log.exception("%s %s failed", scope["method"], shown(scope["path"]))
            if answer.started:
                raise  # the server cuts the connection, so that the client sees an incomplete response
            await self._dress(scope, unexpected(scope["path"]))(scope, receive, answer)

    async def _connect(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Accept a WebSocket only with a token in ``Authorization``, which no page can send.

        Pages of any site may open one to this machine, with cookies, so sessions do not count.
        """
        by = self._may_connect(scope)
        if by is None or self._websockets is None:
            await send({"type": "websocket.close", "code": 1008})  # before it is accepted: HTTP 403
            return
        state = scope.setdefault("state", {})
        state.update(principal=by, standing=lambda: self._keyring.named(by.id) is not None)
        await self._websockets(scope, receive, send)

    def _may_connect(self, scope: Scope) -> Principal | None:
        """Return whose WebSocket it is; None: it is refused. What the handshake sent is forgotten on return."""
        try:
            headers = RequestHeaders(scope)
            self._throttle.check_target(scope["raw_path"], scope["query_string"])
            host = self._check_host(headers, over_unix=_over_unix(scope))
            _check_origins(headers, host)
            token = headers.bearer()
            by = None if token is None or token.startswith(RUN_PREFIX) else self._holder(token)
            if by is None and headers.all(b"authorization"):
                self._throttle.failure(scope["client"])
        except Refused:
            return None
        return by

    def _check_host(self, headers: RequestHeaders, *, over_unix: bool) -> str:
        hosts = headers.all(b"host")
        host = hosts[0].decode("latin-1").lower() if len(hosts) == 1 else ""
        if host not in self._authorities and not (over_unix and host == UNIX_HOST):
            problem = f"The Host {shown(host)!r}" if host else "A request without exactly one Host"
            raise Refused(
                421,
                "wrong_host",
                f"{problem} is not a name of this daemon.",
                "Use the URL that the daemon printed at its start.",
            )
        return host

    async def _run(self, headers: RequestHeaders) -> Principal | None:
        """Return the run of the token, if it is a run's token: only the database knows whether the run still lasts."""
        token = headers.bearer()
        if token is None or not token.startswith(RUN_PREFIX):
            return None
        try:
            return await asyncio.to_thread(self._keyring.running, token.decode("latin-1"))
        except Unavailable as error:
            raise Refused(503, error.status, error.detail, error.remedy, headers={"Retry-After": "1"}) from error

    def _admit(
        self, headers: RequestHeaders, host: str, sender: _From, scope: Scope, run: Principal | None
    ) -> _Admitted:
        """Return who sent the request. Raises Refused if credentials are needed, or after too many requests."""
        try:
            admitted = self._check_credentials(headers, host, sender, scope, run)
        except Refused:
            if headers.all(b"authorization"):  # a wrong token; a missing one is no guess
                self._throttle.failure(scope["client"])
            raise
        if admitted.by is not None and scope["method"] not in _READING:
            # Each principal is one client, and so is each browser session.
            self._throttle.change(admitted.session or admitted.by.id)
        return admitted

    async def _hear(self, headers: RequestHeaders, receive: Receive, scope: Scope, by: Principal | None) -> Receive:
        """Return a ``receive`` that replays the body."""
        most, patience_s = MAX_BODY_BYTES, self._limits.body_s
        if by is None:
            most, patience_s = LOGIN_BODY_BYTES, self._limits.login_body_s
            if _is_webhook(scope):
                most = WEBHOOK_BODY_BYTES
        address = scope["client"][0] if scope["client"] else None
        return await bounded(headers, receive, most, patience_s, self._paces.hold(by or address))

    def _check_credentials(
        self, headers: RequestHeaders, host: str, sender: _From, scope: Scope, run: Principal | None
    ) -> _Admitted:
        """Return the owner of the token or session. Raises Refused if one is needed."""
        if run is not None:
            return _Admitted(run)  # what a run may follow ends with it
        token = headers.bearer()
        if token is not None and (by := self._holder(token)) is not None:
            return _Admitted(by, lambda: self._keyring.named(by.id) is not None)
        method, path = scope["method"], scope["path"]
        public, reading = PUBLIC_PAGES.fullmatch(path) is not None, method in _READING
        page = public or _PAGES.fullmatch(path) is not None
        if page and not reading and sender is not _From.OWN_PAGE:
            raise _cross_site()
        nowhere = not page and reading and path not in OPEN_PATHS and _FOR_PROGRAMS.fullmatch(path) is None
        counts = page or nowhere or (reading and _STREAMS.fullmatch(path) is not None)
        if counts and sender is not _From.LINK:
            for cookie in headers.cookies(self._cookie):
                if (admitted := self._of_session(cookie, host)) is not None:
                    if nowhere:
                        detail = f"There is nothing at {shown(path)}."
                        raise Refused(404, "no_such_path", detail, "See /openapi.json for the paths there are.")
                    return admitted
                scope[STALE] = self._cookie.decode("ascii")
        if public or path in OPEN_PATHS or _is_webhook(scope):
            return _Admitted()
        detail = "The token is unknown or no longer valid." if headers.all(b"authorization") else "A token is required."
        raise Refused(
            401,
            "not_authorised",
            detail,
            "Send 'Authorization: Bearer TOKEN' with a token from `claudomator token create`, or the one in the file "
            "`token` of the daemon's state folder.",
            headers={"WWW-Authenticate": 'Bearer realm="claudomator"'},
        )

    def _holder(self, token: bytes) -> Principal | None:
        if hmac.compare_digest(token, self._token):
            return OPERATOR
        return self._keyring.holder(token.decode("latin-1"))

    def _of_session(self, cookie: str, host: str) -> _Admitted | None:
        """Return the owner of the session, if it is valid at that host and its owner's token still is."""
        session = self._sessions.find(cookie, host)
        by = None if session is None else self._keyring.named(session.principal)
        if session is None or by is None:
            return None
        return _Admitted(by, lambda: self._of_session(cookie, host) is not None, session.id)


def _is_webhook(scope: Scope) -> bool:
    return scope["method"] == "POST" and WEBHOOK.fullmatch(scope["path"]) is not None


def _over_unix(scope: Scope) -> bool:
    """Whether the request came over a Unix socket, for which ASGI gives the path as server, without a port."""
    server = scope.get("server")
    return server is not None and server[1] is None


def _sender(headers: RequestHeaders, host: str, scope: Scope) -> _From:
    """Return where the request comes from, according to the browser. Raises Refused for another site or origin.

    A link may open a whole page, as the other site sees nothing of it.
    """
    sites = headers.all(b"sec-fetch-site")
    origins = _check_origins(headers, host)
    if any(site not in _ALLOWED_SITES for site in sites):
        opened = headers.all(b"sec-fetch-mode") == [b"navigate"] and headers.all(b"sec-fetch-dest") == [b"document"]
        if len(sites) == 1 and opened and not origins and scope["method"] == "GET" and is_page(scope["path"]):
            return _From.LINK
        raise _cross_site()
    return _From.OWN_PAGE if b"same-origin" in sites or (origins and not sites) else _From.NOBODY


def _check_origins(headers: RequestHeaders, host: str) -> Sequence[bytes]:
    """Return the request's Origin headers. Raises Refused for one of another host."""
    own = {f"http://{host}".encode("latin-1"), f"https://{host}".encode("latin-1")}
    origins = headers.all(b"origin")
    if any(origin.lower() not in own for origin in origins):
        raise _cross_site()
    return origins


def is_page(path: str) -> bool:
    """Return whether the path is a page for people, not the API or a file."""
    return path == "/login" or _PAGES.fullmatch(path) is not None


def _busy() -> Refused:
    return Refused(
        429,
        "too_many_requests",
        "Too many requests of this client are waiting.",
        "Send fewer at once, and this one again in a second.",
        headers={"Retry-After": "1"},
    )


def _cross_site() -> Refused:
    return Refused(
        403,
        "cross_site",
        "The request comes from a page of another site.",
        "Open the daemon's own URL, or use the command line.",
    )


def _check_load(load: ServerLoad, path: str, *, authorised: bool) -> None:
    """Raise Refused if the load is too high for the request. Health checks are always answered."""
    if load is not ServerLoad.FREE and not (load is ServerLoad.CROWDED and authorised) and path not in OPEN_PATHS:
        raise Refused(
            503,
            "too_many_connections",
            "There are too many concurrent requests.",
            "Close some of the pages that are open in browsers, then retry.",
            headers={"Retry-After": "1", "Connection": "close"},
        )
