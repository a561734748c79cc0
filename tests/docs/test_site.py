"""The documentation as a whole: it builds without a warning, loads nothing from elsewhere, and no link is broken."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
LOADING = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}
NOT_LOADED = {"canonical", "next", "prev"}
STYLE_URL = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])((?:https?:)?//[^'\")\s]+)")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
PATHS_OUTSIDE = ("README.md", "CHANGELOG.md")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. Links between pages, and to headings, are checked by the strict build itself."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-W", "error::DeprecationWarning:docs", "-m", "mkdocs", "build", "--strict", "--quiet"]
    done = subprocess.run(
        [*command, "--config-file", ".mkdocs.yml", "--site-dir", str(folder)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Loaded(HTMLParser):
    """Collects what a browser would load by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        results = dict(attrs)
        address = results.get(LOADING.get(tag, ""))
        if address is not None and results.get("rel") not in NOT_LOADED:
            self.addresses.append(address)


def test_no_page_loads_anything_from_another_site(site: Path) -> None:
    pages = sorted(site.glob("**/*.html"))
    assert len(pages) > 10
    foreign = []
    for page in pages:
        parser = Loaded()
        parser.feed(page.read_text())
        assert parser.addresses, f"{page} loads no style: is it a page?"
        foreign += [(page.name, address) for address in parser.addresses if re.match(r"(?:[a-z]+:)?//", address)]
    for style in site.glob("**/*.css"):
        foreign += [(style.name, address) for address in STYLE_URL.findall(style.read_text())]
    assert not foreign


def test_no_source_of_the_reference_is_published(site: Path) -> None:
    assert (site / "reference" / "task-file.html").exists()
    assert not list(site.glob("**/*.py"))


@pytest.mark.parametrize("name", PATHS_OUTSIDE)
def test_links_in_files_outside_the_site_lead_somewhere(name: str) -> None:
    text = (REPOSITORY / name).read_text()
    targets = [target for target in LINK.findall(text) if not re.match(r"[a-z]+:", target)]
    lost = []
    for target in targets:
        path, _, anchor = target.partition("#")
        file = REPOSITORY / (path or name)
        if not file.exists() or (anchor and anchor not in _anchors(file)):
            lost.append(target)
    assert not lost


def _anchors(file: Path) -> set[str]:
    """The headings of a page, as links name them."""
    headings = re.findall(r"^#+ (.+)$", file.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_the_index_leads_to_every_page() -> None:
    linked = set(LINK.findall((REPOSITORY / "docs" / "index.md").read_text()))
    pages = {str(page.relative_to(REPOSITORY / "docs")) for page in (REPOSITORY / "docs").rglob("*.md")}
    assert {page for page in pages if not page.startswith("adr/")} - {"index.md"} == linked


def test_the_readme_is_short() -> None:
    assert len((REPOSITORY / "README.md").read_text().splitlines()) < 150


def test_the_architecture_names_every_package() -> None:
    text = (REPOSITORY / "docs" / "architecture.md").read_text()
    packages = [path.parent.name for path in (REPOSITORY / "claudomator_py").glob("*/__init__.py")]
    assert not [name for name in packages if f"`{name}/`" not in text]
    suites = [path.name for path in (REPOSITORY / "tests").iterdir() if list(path.glob("**/test_*.py"))]
    assert not [name for name in suites if f"`tests/{name}`" not in text]


def test_every_file_that_an_explanation_names_exists() -> None:
    pages = [REPOSITORY / "docs" / "architecture.md", *(REPOSITORY / "docs" / "explanation").glob("*.md")]
    named = {path for page in pages for path in re.findall(r"`([\w*/]+/[\w*]+\.py)[`:]", page.read_text())}
    assert len(named) > 20
    roots = (REPOSITORY, REPOSITORY / "claudomator_py")
    assert not [path for path in sorted(named) if not any(list(root.glob(path)) for root in roots)]


def test_every_proof_of_a_guarantee_exists() -> None:
    text = (REPOSITORY / "docs" / "explanation" / "guarantees.md").read_text()
    proofs = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    assert len(proofs) > 15
    lost = [
        f"{path}::{name}"
        for path, name in proofs
        if not (REPOSITORY / path).is_file()
        or (name and not re.search(rf"^def {name}\b", (REPOSITORY / path).read_text(), re.MULTILINE))
    ]
    assert not lost


def test_no_page_stands_twice_in_the_navigation(site: Path) -> None:
    named = re.findall(r"[:-] ([\w/.-]+\.md)$", (REPOSITORY / ".mkdocs.yml").read_text(), re.MULTILINE)
    built = {str(page.relative_to(site).with_suffix(".md")) for page in site.glob("**/*.html")}
    assert sorted(named) == sorted(built - {"404.md", "search.md"})


PAGES_OF_PEOPLE = [
    *(REPOSITORY / name for name in PATHS_OUTSIDE),
    REPOSITORY / "systemd" / "README.md",
    *sorted(page for page in (REPOSITORY / "docs").glob("**/*.md") if "reference" not in page.parts),
]


@pytest.mark.parametrize("page", PAGES_OF_PEOPLE, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_no_line_of_prose_is_longer_than_120_characters(page: Path) -> None:
    in_code, long = False, []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith(("```", "~~~")):
            in_code = not in_code
        if len(line) > 120 and not in_code and not line.lstrip().startswith("|"):  # a row of a table cannot be broken
            long.append(number)
    assert not long
