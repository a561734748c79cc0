"""A real browser on a real daemon. Whatever the browser complains about on our pages fails the test."""

import http.client
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, ViewportSize, expect, sync_playwright

from claudomator_py.api.settings import WebSettings
from claudomator_py.resources.tasks import TaskView
from tests.e2e.daemon import Daemon
from tests.e2e.site import Site, open_site
from tests.patience import PATIENCE_S, wait_until
from tests.warm.starter import WarmStarter

# The engine alone first: a page in it takes a quarter of the CPU that one takes in the whole browser without a window.
COMMANDS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((path for command in COMMANDS if (path := shutil.which(command)) is not None), None)
WIDE: ViewportSize = {"width": 1_180, "height": 900}
NARROW: ViewportSize = {"width": 375, "height": 800}
TIMEOUT_MS = 1_000 * PATIENCE_S
AGENTS = {
    "simulated": {"kind": "simulated", "auto_select": False, "max_concurrent": 4},
    "other": {"kind": "simulated", "auto_select": False, "max_concurrent": 2},
}
expect.set_options(timeout=TIMEOUT_MS)
_HERE = Path(__file__).parent
_OPENED = pytest.StashKey[tuple[Browser, ExitStack]]()


@dataclass
class Complaints:
    """What the browser said against our pages. expected: parts of what a test causes on purpose."""

    said: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def expect(self, *parts: str) -> None:
        """Complaints with such a part are wanted."""
        self.expected += parts

    def unexpected(self) -> list[str]:
        """What nobody wanted."""
        return [text for text in self.said if not any(part in text for part in self.expected)]


@dataclass
class Desktop:
    """An operator's machine: the daemon, and a browser that can be logged in."""

    site: Site
    daemon: Daemon
    browser: Browser
    complaints: Complaints
    contexts: list[BrowserContext] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Of the pages, at the name that is theirs alone."""
        token = (self.site.state / "token").read_text().strip()
        return f"http://{WebSettings(token=token, listen=self.address).page_host}"

    @property
    def address(self) -> str:
        """What the daemon listens on."""
        assert self.site.endpoint is not None
        return self.site.endpoint.removeprefix("http://")

    def context(self, **options: Any) -> BrowserContext:
        """A browser of its own: no cookies yet."""
        given: dict[str, Any] = {"viewport": WIDE, "locale": "en-GB", "timezone_id": "Europe/Berlin", **options}
        context = self.browser.new_context(**given)
        context.set_default_timeout(TIMEOUT_MS)
        context.on("console", self._listen)
        context.on("weberror", lambda error: self.complaints.said.append(f"error: {error.error}"))
        self.contexts.append(context)
        return context

    def page(self, path: str = "/", **options: Any) -> Page:
        """A page, logged in: by a request, since each page costs a browser as much as many tests do in all."""
        context = self.context(**options)
        name, _, value = self.log_in().partition("=")
        # As the daemon has it set, which `test_login` looks at in the browser itself.
        context.add_cookies([{"name": name, "value": value, "url": self.url, "httpOnly": True, "sameSite": "Strict"}])
        page = context.new_page()
        page.goto(self.url + path)
        return page

    def log_in(self) -> str:
        """Log in by a code, as a browser's form does; the cookie of the session, as a browser sends it."""
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE_S)
        form = urlencode({"code": self.daemon.client.login_code().code})
        headers = {
            "Host": self.url.removeprefix("http://"),
            "Origin": self.url,
            "Content-Type": "application/x-www-form-urlencoded",
        }
        try:
            connection.request("POST", "/login", form, headers)
            answer = connection.getresponse()
            assert answer.status == 303, answer.read()
            return str(answer.headers["Set-Cookie"]).partition(";")[0]
        finally:
            connection.close()

    def restart(self, how: Callable[[Daemon], object]) -> None:
        """Another daemon on the same port, once the first has ended that way."""
        self.site.configure(agents=AGENTS, http={"listen": self.address})
        self.complaints.expect("ERR_", "status of 503", "htmx:")
        how(self.daemon)
        self.daemon = self.site.start().ready()

    def task(self, name: str, simulate: str = "delay=50ms", **content: str) -> TaskView:
        """Drop a task for the simulated agent, and wait until it is known. simulate: what it does."""
        lines = [f"{key}: {value}" for key, value in {"agent": "{type: simulated, strict: true}", **content}.items()]
        text = "\n".join([f"instructions: |\n  Do {name}.\n\n  simulate: {simulate}", *lines])
        self.site.drop(f"{name}.yaml", text + "\n")
        return self.when(name, lambda _: True)

    def when(self, name: str, condition: Callable[[TaskView], bool]) -> TaskView:
        """The task, as soon as that is true of it."""

        def found() -> TaskView | None:
            tasks = self.daemon.client.all_tasks()
            return next((task for task in tasks if task.name == name and condition(task)), None)

        return wait_until(found, f"{name} to be as wanted")

    def settled(self, name: str, state: str) -> TaskView:
        """The task, as soon as it is in that state."""
        return self.when(name, lambda task: task.state == state)

    def _listen(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") or "Content Security Policy" in message.text:
            self.complaints.said.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")


@pytest.fixture(scope="module")
def browser(pytestconfig: pytest.Config) -> Browser:
    """Chromium, without a window; one for all modules that come one after the other."""
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed; on Debian: apt install chromium-headless-shell")
    if _OPENED not in pytestconfig.stash:
        # Where it has no sandbox, as for root and in many containers, it does not start; the pages are our own.
        flags = ["--no-sandbox"]
        with ExitStack() as stack:
            playwright = stack.enter_context(sync_playwright())
            opened = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
            stack.callback(opened.close)
            pytestconfig.stash[_OPENED] = opened, stack.pop_all()
    return pytestconfig.stash[_OPENED][0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """With the last test here Chromium ends: while Playwright is there, no other test can have an event loop."""
    try:
        return (yield)
    finally:
        if (nextitem is None or _HERE not in nextitem.path.parents) and _OPENED in item.config.stash:
            item.config.stash[_OPENED][1].close()
            del item.config.stash[_OPENED]


@contextmanager
def _open_desktop(root: Path, warm: WarmStarter, browser: Browser) -> Iterator[Desktop]:
    with open_site(root, warm=warm, agents=AGENTS) as site:
        yield Desktop(site, site.start().ready(), browser, Complaints())


@contextmanager
def _without_complaints(desktop: Desktop) -> Iterator[Desktop]:
    """What a test opens is closed with it, and what the browser said meanwhile is looked at."""
    desktop.complaints = Complaints()
    try:
        yield desktop
    finally:
        while desktop.contexts:
            desktop.contexts.pop().close()
    assert desktop.complaints.unexpected() == []


@pytest.fixture
def desktop(tmp_path: Path, warm: WarmStarter, browser: Browser) -> Iterator[Desktop]:
    """A daemon with simulated agents, and the browser on it."""
    with _open_desktop(tmp_path / "site", warm, browser) as opened, _without_complaints(opened) as desktop:
        yield desktop


@pytest.fixture(scope="module")
def _lasting(tmp_path_factory: pytest.TempPathFactory, warm: WarmStarter, browser: Browser) -> Iterator[Desktop]:
    with _open_desktop(tmp_path_factory.mktemp("lasting") / "site", warm, browser) as desktop:
        yield desktop


@pytest.fixture
def lasting_desktop(_lasting: Desktop) -> Iterator[Desktop]:
    """The same with one daemon for a module, whose tests leave their tasks to each other."""
    with _without_complaints(_lasting) as desktop:
        yield desktop
