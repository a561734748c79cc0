"""Rendering of pages: the templates, the values common to all pages, and their headers.

The style sheet and scripts under /static are small, so they are read once and served from memory.
"""

import hashlib
import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException

from claudomator_py import __version__
from claudomator_py.api.guard.roles import may, may_post
from claudomator_py.api.operation import Allowed, UnlistedRoutes, body_of
from claudomator_py.api.page.formatting import (
    Version,
    model_text,
    read_fields,
    remedy_text,
    tokens_text,
    took,
    unix_lines,
)
from claudomator_py.api.problem import status_of
from claudomator_py.api.served import taken_from
from claudomator_py.domain.budget import cost_text
from claudomator_py.domain.errors import Conflict, Invalid, ServiceError, StaleVersion
from claudomator_py.domain.health import StopsView
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.units import counted
from claudomator_py.domain.wording import instant_text
from claudomator_py.resources.daemon.service import DaemonService
from claudomator_py.resources.events import TITLES
from claudomator_py.resources.policy import CHECKS
from claudomator_py.resources.session import Service, Session
from claudomator_py.resources.tasks import TaskView
from claudomator_py.surface import OPEN, IfVersion, answered_by, declared_by
from claudomator_py.surface.table import Cell, Link, Table, Time, figure
from claudomator_py.texts import escaped, one_line, plain
from claudomator_py.values import dataclass, regex

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_FOLDER = Path(__file__).parent.parent / "static"
_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_FOR_EVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class _Asset:
    content: bytes
    media_type: str
    digest: str


def _asset_url(name: str) -> str:
    """Return the URL of a static file. It changes with the content, so it can be cached forever. Raises KeyError."""
    return f"/static/{name}?v={_ASSETS[name].digest}"


routes = UnlistedRoutes("/static")


@routes.get("/{name}", OPEN)
def file(request: Request, name: str) -> Response:
    """Return a static file. It is open, as the login page needs them too."""
    asset = _ASSETS.get(name)
    if asset is None:
        raise HTTPException(404)
    current = request.query_params.get("v") == asset.digest
    headers = {"Cache-Control": _FOR_EVER if current else "no-cache"}
    return Response(asset.content, headers=headers, media_type=asset.media_type)


def _read(path: Path) -> _Asset:
    content = path.read_bytes()
    return _Asset(content, _TYPES[path.suffix], hashlib.sha256(content).hexdigest()[:16])


_ASSETS = {path.name: _read(path) for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES}


# `same-origin`, because with `no-referrer` a browser sends "Origin: null" even with our own forms.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "same-origin",
    "Vary": "Cookie",
}
_CODE = regex(r"`([^`\n]+)`")


def render(
    template: str,
    values: Mapping[str, object],
    granted: Session | None = None,
    status: int = 200,
    *,
    refusal: ServiceError | None = None,
) -> HTMLResponse:
    """Return the page. values: the template's, computed already. granted: the viewer's session, to show nothing that it
    may not do; None: the viewer is unknown. refusal: of what was sent, for a page that then has its status."""
    by = None if granted is None else granted.by

    def viewer(permits: Callable[[Principal, str], bool]) -> Callable[[str], bool]:
        return lambda what: by is not None and permits(by, what)

    permitted = {"may": viewer(may), "may_post": viewer(may_post)}
    shown = {"refusal": refusal, **values, **permitted, "by": by, "standing": _standing(granted)}
    text = _environment().get_template(template).render(shown)
    response = HTMLResponse(text, status if refusal is None else status_of(refusal), headers=_HEADERS)
    if by is not None and not compile_templates.cache_info().currsize:
        response.background = BackgroundTask(compile_templates)
    return response


def to_task(task: TaskView) -> Response:
    """Return a redirect to the task's page."""
    return RedirectResponse(f"/tasks/{task.id}", 303)


def page_before(request: Request, otherwise: str) -> Response:
    """Return a redirect to the page on which a button was pressed. otherwise: the target if the request does not name
    its page."""
    before = urlsplit(request.headers.get("referer", ""))
    path = before.path if before.path.startswith("/") and not before.path.startswith("//") else ""
    place = f"{path}?{before.query}" if path and before.query else path
    return RedirectResponse(place or otherwise, 303)


async def _filled_in(request: Request) -> dict[str, str]:
    form = await request.form()
    return {name: unix_lines(value).strip() for name, value in form.items() if isinstance(value, str)}


def button(
    routes: UnlistedRoutes,
    path: str,
    call: Callable[..., Any],
    service: type[Service],
    to: str,
    *,
    stays: bool = False,
    again: Callable[[Session, Mapping[str, Any], ServiceError], Response] | None = None,
) -> None:
    """Have a form that is sent to the path carry out the operation that ``call`` declares. If the operation may be
    limited to a version, the form sends the one that it showed.

    to: the address that follows, with parameters of the operation or fields of its answer in braces. stays: the page on
    which the button was pressed follows instead, if it is known. again: returns the form with a refusal of what was
    filled in.
    """
    declared = declared_by(call)
    method = answered_by(service)[declared.id]
    places = {each.name: taken_from(each)[1] for each in declared.parameters if f"{{{each.name}}}" in declared.path}
    bodies = [body.model for each in declared.parameters if (body := body_of(each)) is not None and body.model]
    is_versioned = any(isinstance(each.sent_as, IfVersion) for each in declared.parameters)

    def handler(*, own_asker: Session, own_request: Request, own_fields: Mapping[str, str], **given: Any) -> Response:
        seen = {"versions": [given["version"]]} if is_versioned else {}
        try:
            sent = [read_fields(shape, _values_of(shape, own_fields)) for shape in bodies]
            answer = method(own_asker[service], *map(given.get, places), *sent, **seen)
        except (StaleVersion, Conflict, Invalid) as refusal:
            if again is None:
                raise
            return again(own_asker, {**own_fields, **given}, refusal)
        url = to.format_map({**dict(answer or ()), **given})
        return page_before(own_request, url) if stays else RedirectResponse(url, 303)

    # Prefixed, as in ``api.served``.
    parameters = {"own_asker": Allowed, "own_request": Request, "own_fields": FilledIn, **places}
    parameters |= {"version": Version} if is_versioned else {}
    keyword = inspect.Parameter.KEYWORD_ONLY
    handler.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # read by FastAPI
        [inspect.Parameter(name, keyword, annotation=annotation) for name, annotation in parameters.items()]
    )
    routes.post(path, declared.id)(handler)


def _values_of(shape: type[BaseModel], form: Mapping[str, str]) -> dict[str, object]:
    """Return what the form says of the shape's fields. A box that is not ticked is not sent."""
    return {
        name: name in form if field.annotation is bool else form.get(name) for name, field in shape.model_fields.items()
    }


FilledIn = Annotated[dict[str, str], Depends(_filled_in)]
"""The texts of the form that was sent."""


def _standing(granted: Session | None) -> StopsView | None:
    """Return whether the daemon starts tasks; None: unknown at present, and the page is shown without it."""
    with suppress(ServiceError, KeyError):  # KeyError: an application with only some of the pages
        return None if granted is None else granted[DaemonService].standing()
    return None


def _clean(value: object) -> object:
    """Return the value without control codes: names, instructions and output may come from strangers."""
    return plain(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def sentence(text: str) -> "Markup":
    """Return a sentence as HTML, with text in backticks as code. All of it is escaped first, as it may quote strangers;
    so no tag can begin or end between two backticks."""
    from markupsafe import Markup, escape  # late: a daemon without an open page does not need it

    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(plain(text)))))  # noqa: S704 - escaped in it


def when(instant: str, show: str) -> "Markup":
    """Return an instant as HTML, which the page's script shows on the viewer's clock. show: see ``surface.table.Time``;
    ``clock`` is the time of day."""
    from markupsafe import Markup, escape  # late, like above

    return Markup(f'<time datetime="{escape(instant)}" data-show="{show}">{escape(instant_text(instant))}</time>')  # noqa: S704 - escaped in it


def row_cells(shape: Table[Any], row: object, first: "Markup | None") -> "Markup":
    """Return the cells of a table's row as HTML, here because a template takes several times as long.

    first: content of the first cell, if it is more than its column's.
    """
    from markupsafe import Markup  # late, like above

    contents = [_cell(column.cell(row)) for column in shape.columns[first is not None :]]
    contents = contents if first is None else [first, *contents]
    parts = [f'<th scope="row">{contents[0]}</th>']
    for column, content in zip(shape.columns[1:], contents[1:], strict=True):
        parts.append(f'<td class="number">{content}</td>' if column.right else f"<td>{content}</td>")
    return Markup("".join(parts))  # noqa: S704 - escaped in each


def _cell(value: Cell) -> "str | Markup":
    if isinstance(value, Time):
        return when(value.instant, value.show)
    if isinstance(value, Link):
        return _link(value)
    if isinstance(value, str):
        return sentence(value)
    return "" if value is None else f"{value:,}"


def _link(link: Link) -> "str | Markup":
    from markupsafe import Markup, escape  # late, like above

    words = escape(plain(link.words))
    return words if link.url is None else Markup(f'<a href="{escape(link.url)}">{words}</a>')  # noqa: S704 - escaped


@cache
def compile_templates() -> None:
    """Compile the templates of all pages, once. Called after the first page, so that the next ones do not wait."""
    environment = _environment()
    for name in environment.list_templates():
        environment.get_template(name)


@cache
def _environment() -> "Environment":
    # Late: only for those who open a page.
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=PackageLoader("claudomator_py.api", "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        finalize=_clean,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(version=__version__, asset=_asset_url, event_kinds=tuple(TITLES), rule_checks=CHECKS)
    environment.globals.update(when=when, row_cells=row_cells, took=took, model_text=model_text)
    environment.globals.update(tokens_text=tokens_text, cost_text=cost_text)
    environment.filters["counted"] = counted
    environment.filters["escaped"] = escaped
    environment.filters["figure"] = figure
    environment.filters["instant"] = instant_text
    environment.filters["one_line"] = one_line
    environment.filters["remedy"] = remedy_text
    environment.filters["sentence"] = sentence
    return environment
