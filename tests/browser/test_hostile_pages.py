"""A hostile page on another port or under another name of this machine: nothing gets through to the daemon.

The pages have a name of their own, which is a site of its own: no cookie of theirs is sent to another one, and none of
another one is sent to them. Two ports of one host would be one site.
"""

import http.client
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Desktop
from tests.fakes.cards import card
from tests.patience import PATIENCE_S

# Tries everything that a page can send, and says what came of each.
ATTACK = """async ([daemon, task]) => {
    const said = {};
    const attempt = async (name, fn) => {
        try { said[name] = await fn(); } catch (error) { said[name] = "refused"; }
    };
    const loaded = (element, url) => new Promise((resolve) => {
        element.onload = () => resolve("loaded");
        element.onerror = () => resolve("refused");
        element.src = url;
        document.body.append(element);
    });
    await attempt("fetch", async () => (await fetch(daemon + "/", {credentials: "include"})).text());
    await attempt("fetch api", async () => (await fetch(daemon + "/v1/status", {credentials: "include"})).text());
    const blind = {method: "POST", mode: "no-cors", credentials: "include", body: new URLSearchParams({version: 1})};
    await attempt("form", async () => (await fetch(daemon + `/tasks/${task}/cancel`, blind)).type);
    await attempt("plain", async () => (await fetch(daemon + `/v1/tasks/${task}/cancel`, blind)).type);
    await attempt("beacon", async () => navigator.sendBeacon(daemon + "/logout", "") && "opaque");
    await attempt("image", () => loaded(new Image(), daemon + "/static/icon.svg"));
    await attempt("script", () => loaded(document.createElement("script"), daemon + "/static/app.js"));
    await attempt("frame", () => new Promise((resolve) => {
        const frame = document.createElement("iframe");
        frame.onload = () => {
            try { resolve(frame.contentDocument ? "read" : "opaque"); } catch (error) { resolve("opaque"); }
        };
        frame.src = daemon + "/";
        document.body.append(frame);
    }));
    await attempt("events", () => new Promise((resolve) => {
        const source = new EventSource(daemon + "/v1/events", {withCredentials: true});
        source.onopen = () => resolve("open");
        source.onerror = () => { source.close(); resolve("refused"); };
    }));
    return said;
}"""
FORM = """([daemon, task]) => {
    const form = document.createElement("form");
    form.method = "post";
    form.action = `${daemon}/tasks/${task}/cancel`;
    form.innerHTML = '<input name="version" value="1">';
    document.body.append(form);
    form.submit();
}"""
READABLE = {"fetch", "fetch api", "image", "script", "events"}


class _Page(BaseHTTPRequestHandler):
    server: "_Server"

    def do_GET(self) -> None:
        self.server.heard.append(str(self.headers))
        body = b"<!doctype html><title>hostile</title><body>"
        self.send_response(200 if self.path == "/" else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: object = "-", size: object = "-") -> None:
        pass


class _Server(ThreadingHTTPServer):
    """Keeps what browsers send."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Page)
        self.heard: list[str] = []


@pytest.fixture
def server() -> Iterator[_Server]:
    """With a hostile page."""
    with _Server() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def port(server: _Server) -> int:
    """Of the hostile page."""
    return server.server_port


@pytest.fixture
def desktop(lasting_desktop: Desktop) -> Desktop:
    """One daemon: each test looks at a task of its own."""
    return lasting_desktop


def _hostile(desktop: Desktop, operator: Page, host: str, port: int) -> Page:
    """The hostile page in a tab next to the operator's. Whatever the browser complains about there is expected."""
    desktop.complaints.expect("")
    page = operator.context.new_page()
    page.goto(f"http://{host}:{port}/")
    return page


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_nothing_gets_through(desktop: Desktop, port: int, host: str) -> None:
    name = f"secret-task-{host}"
    task = desktop.task(name, not_before="2099-01-01T00:00:00Z")
    operator = desktop.page()
    hostile = _hostile(desktop, operator, host, port)
    text = hostile.evaluate(ATTACK, [desktop.url, task.id])
    assert {name: text[name] for name in READABLE} == dict.fromkeys(READABLE, "refused")
    assert "read" not in text.values()
    frames = [frame for frame in hostile.frames if frame != hostile.main_frame]
    assert all("secret-task" not in frame.content() for frame in frames)
    hostile.evaluate(FORM, [desktop.url, task.id])
    hostile.wait_for_url(f"{desktop.url}/**")
    expect(hostile.get_by_text("comes from a page of another site")).to_be_visible()
    result = desktop.daemon.client.task(task.id)
    assert (result.state, result.version) == (task.state, task.version)
    operator.reload()  # and the session is what it was
    expect(operator.locator("#queue")).to_contain_text(name)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_link_elsewhere_leads_to_the_page_by_one_more_click(desktop: Desktop, port: int, host: str) -> None:
    name = f"linked-{host}"
    task = desktop.task(name, not_before="2099-01-01T00:00:00Z")
    operator = desktop.page()
    hostile = _hostile(desktop, operator, host, port)
    hostile.evaluate(
        """url => {
            const link = document.createElement("a");
            link.href = url;
            link.textContent = "link";
            document.body.append(link);
        }""",
        f"{desktop.url}/tasks/{task.id}",
    )
    hostile.get_by_role("link", name="link").click()
    expect(hostile.get_by_role("heading", name="Log in")).to_be_visible()
    hostile.get_by_role("link", name="Continue").click()
    expect(hostile.get_by_role("heading", name=name, exact=True)).to_be_visible()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "claudomator.localhost"])
def test_another_server_gets_no_cookie_and_does_not_learn_where_it_counts(
    desktop: Desktop, server: _Server, host: str
) -> None:
    """The operator opens it in the same browser, by hand and by a link on our own page."""
    task = desktop.task(f"visited-{host}", not_before="2099-01-01T00:00:00Z")
    operator = desktop.page(f"/tasks/{task.id}")
    theirs = f"http://{host}:{server.server_port}/"
    with operator.expect_navigation(url=theirs):
        operator.evaluate("url => { window.location = url; }", theirs)
    _hostile(desktop, operator, host, server.server_port)
    assert len(server.heard) >= 2
    text = "".join(server.heard).lower()
    assert "cookie:" not in text
    assert desktop.url.removeprefix("http://").partition(":")[0] not in text


def test_a_cookie_that_somebody_got_hold_of_is_nothing_at_the_address(desktop: Desktop) -> None:
    cookie = desktop.page().context.cookies()[0]
    sent = f"{cookie.get('name')}={cookie.get('value')}"

    def status(host: str) -> int:
        connection = http.client.HTTPConnection(desktop.address, timeout=PATIENCE_S)
        try:
            connection.request("GET", "/", headers={"Host": host, "Cookie": sent})
            return connection.getresponse().status
        finally:
            connection.close()

    port = desktop.address.rpartition(":")[2]
    assert status(desktop.url.removeprefix("http://")) == 200
    assert [status(f"{name}:{port}") for name in ("127.0.0.1", "localhost", "[::1]")] == [401, 401, 401]


def test_a_window_that_another_page_opens_is_out_of_its_reach(desktop: Desktop, port: int) -> None:
    operator = desktop.page()
    hostile = _hostile(desktop, operator, "127.0.0.1", port)
    with operator.context.expect_page() as opened:
        hostile.evaluate("url => { window.theirs = window.open(url); }", desktop.url)
    opened.value.wait_for_load_state()
    hostile.wait_for_function("window.theirs.closed")  # cut off


def test_what_an_agent_says_is_shown_and_never_run(desktop: Desktop) -> None:
    hostile = "<img src=x onerror=window.evil=1><script>window.evil=1</script>"
    desktop.task("talks", f"delay=50ms text={hostile!r}", tags=f"[{hostile!r}]")
    task = desktop.settled("talks", "COMPLETED")
    page = desktop.page()
    expect(page.locator("#recent")).to_contain_text(hostile)
    page.goto(f"{desktop.url}/tasks/{task.id}")
    expect(page.locator("pre", has_text="simulated").first).to_contain_text(hostile)
    expect(page.get_by_role("log")).to_contain_text(hostile)
    assert page.locator("main img, main script, .log *:not(.entry, .kind, .said)").count() == 0
    assert page.evaluate("window.evil") is None


def test_what_a_card_says_is_shown_and_never_run(desktop: Desktop) -> None:
    hostile = "</textarea></pre><img src=x onerror=window.evil=1><script>window.evil=1</script>"
    skill = {"id": hostile, "name": hostile, "description": hostile, "examples": [hostile], "tags": [hostile]}
    evil = card("evil", name=hostile, description=hostile, system_prompt=hostile, keywords=[hostile], skills=[skill])
    desktop.daemon.client.register_specialist(evil)
    page = desktop.page()
    for path in ("", "/evil", "/evil/edit", "/evil/remove", "/evil/forget", "?q=onerror"):
        page.goto(f"{desktop.url}/specialists{path}")
        expect(page.locator("main")).to_contain_text("onerror=window.evil=1")
        assert page.locator("main img, main script").count() == 0
    page.goto(f"{desktop.url}/routing")
    page.get_by_label("Instructions of the task").fill(hostile)
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("region", name="Answer")).to_contain_text(hostile)
    assert page.locator("main img, main script").count() == 0
    assert page.evaluate("window.evil") is None
