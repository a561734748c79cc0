"""What the pages are made of: nothing inline, nothing from elsewhere, and every kind of event has its words."""

import ast
import re
from pathlib import Path

import pytest

import claudomator_py
from claudomator_py.resources.events import TITLES
from tests.fakes.daemon import Daemon
from tests.unit.api.page.conftest import Visitor

PACKAGE = Path(claudomator_py.__file__).parent
TEMPLATES = sorted((PACKAGE / "api" / "templates").glob("*.html"))
STATIC = PACKAGE / "api" / "static"


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_nothing_is_inline(template: Path) -> None:
    text = template.read_text()
    assert not re.search(r"<script(?![^>]* src=)", text)
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:", text)
    assert "|safe" not in text.replace(" ", "")


@pytest.mark.parametrize("name", ["app.js", "app.css"])
def test_nothing_comes_from_elsewhere_and_nothing_is_parsed_as_markup(name: str) -> None:
    text = (STATIC / name).read_text()
    assert not re.search(r"https?://|innerHTML|outerHTML\s*=|insertAdjacentHTML|document\.write|eval\(|@import", text)


def test_what_others_wrote_names_its_version_and_licence() -> None:
    licence = (STATIC / "htmx-2.0.11.LICENSE").read_text()
    assert "Zero-Clause BSD" in licence
    assert 'version:"2.0.11"' in (STATIC / "htmx-2.0.11.min.js").read_text()


def test_files_are_cached_for_as_long_as_they_are_the_same(stranger: Visitor) -> None:
    page = stranger.get("/login").body.decode()
    for path in re.findall(r'"(/static/[^"]+)"', page):
        answer = stranger.get(path)
        assert answer.status == 200
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert stranger.get(path.partition("?")[0]).headers["cache-control"] == "no-cache"


def test_only_these_files_are_served(stranger: Visitor, daemon: Daemon) -> None:
    for name in ("htmx-2.0.11.LICENSE", "..%2ftemplates%2fbase.html", "none.css", ".", "%00"):
        assert stranger.get(f"/static/{name}").status in (401, 404)
        assert daemon.ask("GET", f"/static/{name}").status == 404


def _recorded() -> set[str]:
    """The kinds that the program records: third argument of every call of ``record``."""
    kinds = set()
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text()
        if "record(" not in text:  # to parse all takes a second
            continue
        tree = ast.parse(text)
        names = {
            target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "record"
            if called and isinstance(node, ast.Call) and len(node.args) > 2:
                kind = node.args[2]
                either = (kind.body, kind.orelse) if isinstance(kind, ast.IfExp) else (kind,)
                kinds |= {
                    str(one.value if isinstance(one, ast.Constant) else names[ast.unparse(one)]) for one in either
                }
    return kinds


def test_a_browser_asks_for_every_kind_of_event() -> None:
    recorded = _recorded()
    assert {"accepted", "state", "hold"} <= recorded
    unknown = recorded - set(TITLES)
    assert not unknown, f"the page misses {unknown}: give each its words in pages/timeline.py"
