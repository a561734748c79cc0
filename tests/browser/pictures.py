"""Take pictures of the page after a bad night: ``python -m tests.browser.pictures [FOLDER]``.

Without a folder it makes the pictures of the README anew (``make pictures``). With one it takes every page there, wide
and narrow, light and dark, to be looked at.
"""

import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Literal

from playwright.sync_api import Page, ViewportSize, sync_playwright

from tests.browser.bad_night import BadNight, configuration
from tests.browser.conftest import CHROMIUM, NARROW, Complaints, Desktop
from tests.e2e.site import REPOSITORY, open_site

IMAGES: Final = REPOSITORY / "docs" / "images"
HOME: Final = "/home/ann"
"""Stands in pictures for the folder of the site."""
WIDE: Final[ViewportSize] = {"width": 1_440, "height": 900}
MAX_BYTES: Final = 200_000
OF_README: Final[Mapping[str, tuple[str, ViewportSize]]] = {
    "overview": ("/", {"width": 1_180, "height": 780}),
    "task": ("/tasks/login-redirect", {"width": 1_040, "height": 1_060}),
    "report": ("/report", {"width": 1_040, "height": 1_000}),
    "night": ("/night", {"width": 1_280, "height": 700}),
}
"""The page and the size of each picture."""
PAGES: Final = (
    *("/", "/?state=FAILED", "/report", "/night", "/agents", "/repositories", "/schedules", "/notices", "/new"),
    *("/select?marked=all", "/sessions", "/specialists", "/specialists/generalist", "/channels", "/routing"),
    *("/decisions", "/policy", "/tasks/nowhere", "/report?since=yesterday"),
)
TASKS: Final = (
    *("login-redirect", "rewrite-importer", "pick-a-colour", "publish-package", "round-amounts", "e2e-rounding"),
    *("cart-tests", "tax-by-country", "leak-in-cache", "migrate-sessions", "notes-20"),
)
FORMS: Final = (
    *("login-redirect/edit", "login-redirect/merge", "tax-by-country/merge", "tax-by-country/discard"),
    *("pick-a-colour/answer", "publish-package/approve", "publish-package/reject", "rewrite-importer/cancel"),
    "round-amounts/restart",
)
SETTLED_MS: Final = 800
"""After which a page has its live log."""
RENAMED: Final = """([found, shown]) => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(found, shown);
  for (const field of document.querySelectorAll("input, textarea")) field.value = field.value.replaceAll(found, shown);
}"""


def main() -> int:
    """Play the night, and take the pictures."""
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="claudomator-night-"))) / "site"
        site = stack.enter_context(open_site(root, **configuration(root)))
        daemon = BadNight(site).play()
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        stack.callback(browser.close)
        desktop = Desktop(site, daemon, browser, Complaints())
        if sys.argv[1:]:
            _take_all(desktop, Path(sys.argv[1]))
        else:
            _take_those_of_the_readme(desktop)
    return 0


def _take_those_of_the_readme(desktop: Desktop) -> None:
    for name, (path, size) in OF_README.items():
        page = _page(desktop, "light", size)
        _open(desktop, page, path)
        file = IMAGES / f"{name}.png"
        page.screenshot(path=file)
        sys.stdout.write(f"{file}: {file.stat().st_size:,} bytes\n")
        assert file.stat().st_size <= MAX_BYTES, f"{file} is too large for a README"


def _take_all(desktop: Desktop, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    paths = (*PAGES, *(f"/tasks/{name}" for name in (*TASKS, *FORMS)))
    for scheme in ("light", "dark"):
        page = _page(desktop, scheme, WIDE)
        for path in paths:
            for words, size in (("wide", WIDE), ("narrow", NARROW)):
                page.set_viewport_size(size)
                _open(desktop, page, path)
                name = path.strip("/").replace("/", "-").replace("?", "-") or "overview"
                page.screenshot(path=folder / f"{name}.{words}.{scheme}.png", full_page=True)


def _page(desktop: Desktop, scheme: Literal["light", "dark"], size: ViewportSize) -> Page:
    return desktop.page("/login", color_scheme=scheme, viewport=size, reduced_motion="reduce")


def _open(desktop: Desktop, page: Page, path: str) -> None:
    page.goto(desktop.url + path)
    page.wait_for_timeout(SETTLED_MS)
    page.evaluate(RENAMED, [str(desktop.site.root), HOME])


if __name__ == "__main__":
    sys.exit(main())
