"""Rendering of pages: the templates, what every page is given, and the headers that every page carries.

Style sheet and scripts, under /static, are few and small, so they are read once and served from memory.
"""

from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from fastapi.responses import HTMLResponse

from claudomator_py import __version__
from claudomator_py.api.guard.roles import may
from claudomator_py.api.page.formatting import remedy_text
from claudomator_py.domain.errors import ServiceError
from claudomator_py.domain.health import StandingView
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.text import plain
from claudomator_py.domain.wording import instant_text
from claudomator_py.resources.daemon.service import DaemonService
from claudomator_py.resources.events.page import KINDS
from claudomator_py.resources.policy import CHECKS
from claudomator_py.values import dataclass, regex

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

import hashlib
from pathlib import Path
from urllib.parse import urlsplit

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from starlette.exceptions import HTTPException

from claudomator_py.api.operation import ACCESS, guarded

_FOLDER = Path(__file__).parent.parent / "static"
_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_FOR_EVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class _Asset:
    content: bytes
    media_type: str
    digest: str


def _asset_url(name: str) -> str:
    """Return the URL of a file, which changes with its content, so that it can be cached forever. Raises KeyError."""
    return f"/static/{name}?v={_ASSETS[name].digest}"


def static_files() -> APIRouter:
    """Return the route. Anyone may ask: the page that says how to log in needs them, too."""
    routes = guarded("/static")

    @routes.get("/{name}")
    def file(request: Request, name: str) -> Response:
        asset = _ASSETS.get(name)
        if asset is None:
            raise HTTPException(404)
        current = request.query_params.get("v") == asset.digest
        headers = {"Cache-Control": _FOR_EVER if current else "no-cache"}
        return Response(asset.content, headers=headers, media_type=asset.media_type)

    return routes


def _read(path: Path) -> _Asset:
    content = path.read_bytes()
    return _Asset(content, _TYPES[path.suffix], hashlib.sha256(content).hexdigest()[:16])


_ASSETS = {path.name: _read(path) for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES}


# `same-origin`, because with `no-referrer` a browser sends "Origin: null" with our own forms, too.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "same-origin",
    "Vary": "Cookie",
}
_CODE = regex(r"`([^`\n]+)`")


def render(
    template: str, values: Mapping[str, object], status: int = 200, *, by: Principal | None = None
) -> HTMLResponse:
    """Return the page. values: what the template shows, worked out already. by: who looks; what it may not do is not
    shown."""

    def permitted(operation: str) -> bool:
        return by is not None and may(by, operation)

    shown = {**values, "may": permitted, "by": by, "standing": _standing(by)}
    text = _environment().get_template(template).render(shown)
    return HTMLResponse(text, status, headers=_HEADERS)


def page_before(request: Request, otherwise: str = "/") -> Response:
    """Return the way back to the page where a button of every page was pressed. otherwise: the place of whoever does
    not say where that was."""
    before = urlsplit(request.headers.get("referer", ""))
    path = before.path if before.path.startswith("/") and not before.path.startswith("//") else ""
    place = f"{path}?{before.query}" if path and before.query else path
    return RedirectResponse(place or otherwise, 303)


def _standing(by: Principal | None) -> StandingView | None:
    """Whether the daemon starts tasks; None: that cannot be told now, and the page is shown without it."""
    access = ACCESS.get()
    if by is None or access is None:
        return None
    with suppress(ServiceError, KeyError):  # KeyError: an application of a few pages alone
        return access.as_(by)[DaemonService].standing()
    return None


def _clean(value: object) -> object:
    """Whatever is shown comes without control codes: names, instructions and output are written by strangers."""
    return plain(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def sentence(text: str) -> "Markup":
    """Return a sentence of ours with what stands in backticks as code. It may quote strangers, so all of it is escaped
    first: no tag begins or ends between two backticks."""
    from markupsafe import Markup, escape  # with the templates: a daemon without a page open has no use for it

    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(plain(text)))))  # noqa: S704 - escaped in it


@cache
def _environment() -> "Environment":
    # For whoever looks at a page.
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=PackageLoader("claudomator_py.api", "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        finalize=_clean,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(version=__version__, asset=_asset_url, event_kinds=KINDS, rule_checks=CHECKS)
    environment.filters["instant"] = instant_text
    environment.filters["remedy"] = remedy_text
    environment.filters["sentence"] = sentence
    return environment
