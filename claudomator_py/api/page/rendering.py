"""Rendering of pages: the templates, what every page is given, and the headers that every page carries."""

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from fastapi.responses import HTMLResponse

from claudomator_py import __version__
from claudomator_py.api.guard.roles import may
from claudomator_py.api.page import static
from claudomator_py.api.page.words import remedy_text
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.text import plain
from claudomator_py.domain.wording import instant_text
from claudomator_py.resources.events.page import KINDS
from claudomator_py.resources.policy.shape import CHECKS

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

# `same-origin`, because with `no-referrer` a browser sends "Origin: null" with our own forms, too.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "same-origin",
    "Vary": "Cookie",
}
_CODE = re.compile(r"`([^`\n]+)`")


def render(
    template: str, values: Mapping[str, object], status: int = 200, *, by: Principal | None = None
) -> HTMLResponse:
    """The page. values: what the template shows, worked out already. by: who looks; what it may not do is not shown."""

    def permitted(operation: str) -> bool:
        return by is not None and may(by, operation)

    text = _environment().get_template(template).render({**values, "may": permitted, "by": by})
    return HTMLResponse(text, status, headers=_HEADERS)


def _clean(value: object) -> object:
    """Whatever is shown comes without control codes: names, instructions and output are written by strangers."""
    return plain(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def sentence(text: str) -> "Markup":
    """A sentence of ours with what stands in backticks as code. It may quote strangers, so all of it is escaped first:
    no tag begins or ends between two backticks."""
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
    environment.globals.update(version=__version__, asset=static.url_of, event_kinds=KINDS, rule_checks=CHECKS)
    environment.filters["instant"] = instant_text
    environment.filters["remedy"] = remedy_text
    environment.filters["sentence"] = sentence
    return environment
