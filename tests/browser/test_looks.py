"""Every page in both colour schemes and on a narrow screen: readable, reachable, without findings of axe."""

import re
from typing import Literal
from urllib.parse import urlsplit

import pytest
from fastapi.routing import APIRoute
from playwright.sync_api import Page, expect

from claudomator_py.api.page import routes
from claudomator_py.domain.channel import ChannelSettings, MarkVerdict, NewChannel, NewMessage, TriageSettings
from claudomator_py.domain.requests import DecisionFilter
from claudomator_py.domain.task import TaskSpec
from claudomator_py.resources.channels import MuteRequest
from claudomator_py.resources.tasks import RejectRequest
from tests.browser.conftest import NARROW, WIDE, Desktop
from tests.browser.reaching import violations, weak_contrasts
from tests.e2e.repositories import repository
from tests.fakes.cards import card

Scheme = Literal["light", "dark"]
PLUMBER = card(
    "plumber",
    name="Pipe Doctor",
    description="Finds and fixes leaks of handles, sockets and memory.\nNot for anything that is merely slow.",
    system_prompt="You fix leaks.\n\nProve each with a test that fails before.",
    keywords=["file descriptor leak", "connection leak", "a-keyword-that-is-as-long-as-a-keyword-may-ever-get"],
    visibility="shared",
    allowed_agents=["simulated"],
    permissions={"allowed_tools": ["Read"]},
)
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
NO_PAGES = {"/static/{name}", "/next", "/decisions/{decision_id}/json"}
"""What is got and is no page: files, and what leads to a page."""


def _fill(desktop: Desktop) -> str:
    """One of everything; the id of a task that runs."""
    desktop.task("done", 'delay=50ms tokens=1200/80 cost=0.25 text="It is done."', tags="[shop, login]")
    desktop.task("broken", "delay=50ms outcome=fail", retry="{max_attempts: 1}")
    desktop.task("unsound", check="['true', 'sh -c \"echo 1 failed; exit 2\"', make e2e]", retry="{max_attempts: 1}")
    desktop.task("asks", 'delay=50ms outcome=question text="Which one?"')
    limits = "{type: other, strict: true, tier: fast}"
    desktop.task("limited", "delay=50ms outcome=limited(reset=50m)", agent=limits, priority="high")
    desktop.site.drop("refused.yaml", "instrctions: none\n")
    nightly = 'instructions: Tidy up.\nschedule: "0 3 * * *"\ntimezone: America/Argentina/Buenos_Aires\n'
    desktop.site.drop("a-schedule-with-quite-a-long-name.yaml", nightly)
    desktop.task("a-name-that-is-as-long-as-a-name-can-be-" + "x" * 60, not_before="2099-01-01T00:00:00Z")
    desktop.settled("done", "COMPLETED")
    desktop.settled("broken", "FAILED")
    desktop.settled("unsound", "FAILED")
    desktop.settled("asks", "NEEDS_INPUT")
    desktop.task("held", approval="true")
    desktop.task("let", "delay=50ms", approval="true")
    desktop.settled("held", "NEEDS_INPUT")
    desktop.settled("let", "NEEDS_INPUT")
    desktop.daemon.client.reject("let", RejectRequest(reason="a-reason-that-is-as-long-" + "as-can-be-" * 20))
    desktop.when("limited", lambda task: task.reason == "limited")
    desktop.daemon.client.register_specialist(PLUMBER)
    desktop.daemon.client.grant_specialist("plumber", "org:bolt")
    client = desktop.daemon.client
    settings = ChannelSettings(
        shadow=TriageSettings(), keywords=("leak", "a-keyword-that-is-as-long-" + "as-can-be-" * 5)
    )
    client.create_channel(NewChannel(name="pipes", primary="plumber", settings=settings))
    client.mute_participant("pipes", "plumber", MuteRequest.model_validate({"duration": "1h"}))
    written = client.post_message("pipes", NewMessage(content="@plumber look:\n" + "x" * 300 + "\n<b>bold</b>"))
    client.post_message("pipes", NewMessage(content="and this", reply_to=written.id))
    client.mark_message("pipes", written.id, MarkVerdict.RIGHT)
    text = "The nightly dump of the orders database fails. Restore the last one, and find out why."
    desktop.daemon.client.submit(TaskSpec(name="routed", instructions=text))
    desktop.when("routed", lambda task: task.specialist is not None)
    desktop.daemon.client.cancel("routed")
    _changes_something(desktop)
    running = desktop.task("works", "delay=2m")
    desktop.settled("works", "RUNNING")
    return running.id


def _changes_something(desktop: Desktop) -> None:
    """A task with a branch, whose first run failed."""
    folder = repository(desktop.site.root / "a-repository-with-quite-a-long-name")
    in_tree = {"working_dir": str(folder), "isolation": "worktree", "commit": "true", "retry": "{backoff: 10ms}"}
    fails_first = 'delay=50ms outcome=fail\n  simulate: delay=50ms write=made.txt text="It is made."'
    desktop.task("makes", fails_first, **in_tree)
    desktop.settled("makes", "COMPLETED")


@pytest.fixture
def desktop(lasting_desktop: Desktop) -> Desktop:
    """All tests here only look."""
    return lasting_desktop


def _paths(desktop: Desktop) -> dict[str, str]:
    known = {task.name for task in desktop.daemon.client.all_tasks()}
    running = desktop.daemon.client.task("works").id if "works" in known else _fill(desktop)
    names = ("broken", "unsound", "asks", "routed", "held", "makes")
    broken, unsound, asks, routed, held, makes = (desktop.daemon.client.task(name).id for name in names)
    first_run = desktop.daemon.client.runs(makes)[0].id
    return {
        "front": "/",
        "found": "/?state=COMPLETED",
        "report": "/report",
        "night": "/night",
        "agents": "/agents",
        "repositories": "/repositories",
        "schedules": "/schedules",
        "notices": "/notices",
        "no dead notices": "/notices?state=dead",
        "new": "/new",
        "edit": f"/tasks/{broken}/edit",
        "running": f"/tasks/{running}",
        "failed": f"/tasks/{broken}",
        "check": f"/tasks/{unsound}?check=true",
        "routed": f"/tasks/{routed}",
        "branch": f"/tasks/{makes}",
        "first run": f"/tasks/{makes}?run={first_run}",
        "merge": f"/tasks/{makes}/merge",
        "merge all": "/repositories/merge",
        "discard": f"/tasks/{makes}/discard",
        "cancel": f"/tasks/{running}/cancel",
        "restart": f"/tasks/{broken}/restart",
        "asks": f"/tasks/{asks}",
        "answer": f"/tasks/{asks}/answer",
        "reject": f"/tasks/{asks}/reject",
        "select": "/select?marked=all",
        "sessions": "/sessions",
        "specialists": "/specialists",
        "searched": "/specialists?q=leaks",
        "specialist": "/specialists/plumber",
        "edited": "/specialists/plumber/edit",
        "removed": "/specialists/plumber/remove",
        "unlearned": "/specialists/plumber/forget",
        "channels": "/channels",
        "channel": f"/channels/{desktop.daemon.client.channel('pipes').id}",
        "routing": "/routing",
        "forget": "/routing/forget",
        "decisions": "/decisions",
        "policy": "/policy",
        "approve": f"/tasks/{held}/approve",
        "refused filter": "/decisions?kind=lunch",
        **{f"decision {kind}": path for kind, path in _decisions(desktop).items()},
        "error": "/tasks/nowhere",
        "login": "/login",
        "code": "/login?code=abc",
    }


def _decisions(desktop: Desktop) -> dict[str, str]:
    """One of each kind that there is."""
    results = {
        decision.kind: f"/decisions/{decision.id}" for decision in desktop.daemon.client.all_decisions(DecisionFilter())
    }
    assert {"specialist", "placement"} <= results.keys()
    return results


def _settle(page: Page) -> None:
    """What comes by streams has come."""
    if page.locator("#live").count() and page.locator("[data-refresh]").count():
        expect(page.locator("#live")).to_have_text("Live")
    if page.get_by_role("log").count():
        expect(page.locator(".entry").first).to_be_visible()


def test_no_page_is_left_out(desktop: Desktop) -> None:
    paths = [urlsplit(path).path for path in _paths(desktop).values()]
    pages = [route.path for route in routes() if isinstance(route, APIRoute) and "GET" in (route.methods or ())]
    assert set(pages) >= NO_PAGES
    patterns = [(page, re.sub(r"\{\w+\}", "[^/]+", page)) for page in pages if page not in NO_PAGES]
    assert [page for page, pattern in patterns if not any(re.fullmatch(pattern, path) for path in paths)] == []


def test_all_pages_are_for_everybody(desktop: Desktop) -> None:
    """Nothing sticks out of a narrow screen, and axe finds nothing in either scheme; each page is opened once."""
    desktop.complaints.expect("status of 404", "status of 401", "status of 422")
    passed: set[str] = set()
    results: list[str] = []
    # A colour on its way from one scheme to the other is of neither.
    page = desktop.page(reduced_motion="reduce", has_touch=True)
    stranger = desktop.context(reduced_motion="reduce").new_page()

    def look(at: Page, name: str) -> None:
        results.extend(
            f"{name}: {item['id']}: {item['nodes'][0]['html']}" for item in violations(at, without=["color-contrast"])
        )
        for scheme in SCHEMES:
            at.emulate_media(color_scheme=scheme)
            results.extend(f"{name}, {scheme}: {text}" for text in weak_contrasts(at, passed))

    for name, path in _paths(desktop).items():
        page.set_viewport_size(NARROW)
        page.goto(desktop.url + path)
        _settle(page)
        results.extend(f"{name}: {what}" for what in _sticking_out(page))
        page.set_viewport_size(WIDE)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        look(page, name)
    stranger.goto(desktop.url)
    look(stranger, "stranger")
    page.goto(desktop.url)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    look(page, "help")
    assert results == []


def _sticking_out(page: Page) -> list[str]:
    """What is wider than the narrow screen, or than its own place in it."""
    results = []
    widths = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    if widths != [NARROW["width"], NARROW["width"]]:
        results.append(f"it is {widths} wide")
    results += page.locator(".scroll:has(> table)").evaluate_all(
        "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.ariaLabel)"
    )
    return results


def test_axe_does_find_something(desktop: Desktop) -> None:
    page = desktop.page()
    page.evaluate("document.querySelector('.brand').style.color = 'silver'")
    page.evaluate("document.querySelector('main').append(document.createElement('input'))")
    assert [item["id"] for item in violations(page)] == ["color-contrast", "label"]


def test_axe_does_find_something_in_the_dark(desktop: Desktop) -> None:
    page = desktop.page(reduced_motion="reduce")
    assert violations(page) == []
    dark = "@media (prefers-color-scheme: dark) { .brand { color: #333 !important } }"
    page.evaluate(
        "text => { const s = new CSSStyleSheet(); s.replaceSync(text); document.adoptedStyleSheets = [s] }", dark
    )
    passed: set[str] = set()
    assert weak_contrasts(page, passed) == []
    page.emulate_media(color_scheme="dark")
    for _ in range(2):  # what was weak once is not taken for known
        assert ["brand" in text for text in weak_contrasts(page, passed)] == [True]


def test_what_lies_on_another_ground_is_judged_anew(desktop: Desktop) -> None:
    page = desktop.page(reduced_motion="reduce")
    _settle(page)  # with its stream a page shows everything again, without what is changed here
    assert violations(page) == []
    passed: set[str] = set()
    assert weak_contrasts(page, passed) == []
    page.evaluate("document.querySelector('h2').parentElement.style.background = 'dimgray'")
    assert weak_contrasts(page, passed)
    page.evaluate("document.querySelector('h2').parentElement.style.background = ''")
    page.evaluate("document.querySelector('h2').parentElement.style.opacity = 0.3")
    assert weak_contrasts(page, passed)


def test_what_sticks_out_is_found(desktop: Desktop) -> None:
    page = desktop.page(viewport=NARROW)
    assert _sticking_out(page) == []
    page.evaluate("document.querySelector('main').style.width = '400px'")
    assert len(_sticking_out(page)) == 1


def test_both_schemes_are_what_they_say(desktop: Desktop) -> None:
    brightness = {}
    for scheme in SCHEMES:
        page = desktop.page(color_scheme=scheme)
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        brightness[scheme] = sum(int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(","))
    assert brightness["dark"] < 200 < 600 < brightness["light"]


def test_nothing_moves_where_that_is_not_wanted(desktop: Desktop) -> None:
    moves = "getComputedStyle(document.querySelector('button')).transitionDuration"
    assert desktop.page(reduced_motion="reduce").evaluate(moves) == "0s"
    assert desktop.page(reduced_motion="no-preference").evaluate(moves) != "0s"


def test_what_a_notice_is_about_stands_above_what_it_says(desktop: Desktop) -> None:
    """Though the rows of tasks beside it have columns of their own where there is room."""
    desktop.site.drop("bad.yaml", "instructionz: x\n")
    page = desktop.page()
    page.set_viewport_size({"width": 1440, "height": 900})
    notice = page.locator("#needs-you .notice").filter(has_text="instructionz")
    _settle(page)
    expect(notice).to_be_visible()
    # Both at once: an event that comes meanwhile puts another row in the place of this one.
    where = "row => ['.name', '.why'].map(each => row.querySelector(each).getBoundingClientRect().x)"
    name, why = notice.evaluate(where)
    assert name == why


def test_rows_that_ask_have_the_same_columns_whatever_can_be_done_about_them(desktop: Desktop) -> None:
    _paths(desktop)  # an approval, a question and more
    page = desktop.page(viewport={"width": 1_440, "height": 900})
    _settle(page)
    page.evaluate("document.querySelectorAll('#needs-you details').forEach((one) => { one.open = true; })")
    ends = page.locator("#needs-you .row.task > .stamp").evaluate_all(
        "all => all.map(one => Math.round(one.getBoundingClientRect().right))"
    )
    assert len(ends) > 1
    assert len(set(ends)) == 1


@pytest.mark.parametrize("width", [1_120, 1_440])
def test_the_head_is_two_lines_though_the_daemon_is_drained_and_an_agent_held(desktop: Desktop, width: int) -> None:
    client = desktop.daemon.client
    client.drain()
    client.hold("other")
    try:
        page = desktop.page("/report", viewport={"width": width, "height": 900})
        tops = page.locator(".top > :is(.brand, .standing), .places, .tools").evaluate_all(
            "all => all.map(one => { const box = one.getBoundingClientRect(); return (box.top + box.bottom) / 2 })"
        )
        assert len({round(top / 12) for top in tops}) == 2
        links = page.locator(".places a").evaluate_all("all => all.map(one => one.getBoundingClientRect().top)")
        assert len(set(links)) == 1
        expect(page.get_by_text("Drained: nothing starts").or_(page.get_by_text("Draining:"))).to_be_visible()
        page.get_by_role("button", name="Resume", exact=True).click()
        expect(page).to_have_url(desktop.url + "/report")
        page.get_by_role("button", name="Resume other").click()
        expect(page.get_by_role("button", name="Drain")).to_be_visible()
    finally:
        client.undrain()
        client.release("other")


@pytest.mark.parametrize("path", ["/", "/report"])
def test_a_question_is_shown_whole_wherever_it_asks(desktop: Desktop, path: str) -> None:
    question = "Which of the colours of the style guide do you want for the login page: " + "blue, " * 20 + "or green?"
    desktop.task("colours", f'delay=50ms outcome=question text="{question}"')
    desktop.settled("colours", "NEEDS_INPUT")
    page = desktop.page(path)
    page.set_viewport_size({"width": 1440, "height": 900})
    why = page.locator(".needing .row.task", has_text="colours").locator(".why").first
    assert why.evaluate("one => one.scrollWidth <= one.clientWidth")
    assert "green?" in why.inner_text()


@pytest.mark.parametrize("width", [1_024, 1_280, 1_440])
def test_columns_of_rows_are_as_broad_as_what_stands_in_them(desktop: Desktop, width: int) -> None:
    """Nothing but names and texts is cut, and the rows of a list have the same columns."""
    _paths(desktop)
    desktop.task("says-otherwise", 'delay=50ms cost=0.5 text="I fixed it and added a test."')
    desktop.task("admits", 'delay=50ms cost=0.5 text="I could not run the tests."')
    desktop.settled("says-otherwise", "COMPLETED")
    desktop.settled("admits", "COMPLETED")
    page = desktop.page("/?state=COMPLETED", viewport={"width": width, "height": 900})
    cells = page.locator(".row.task").locator(".chip, .on, .changes, .cost, .took, .stamp")
    cut = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.className + one.innerText)"
    assert cells.evaluate_all(cut) == []
    assert page.locator(".row.task .took").count() > 1
    lefts = "all => [...new Set(all.map(one => Math.round(one.getBoundingClientRect().left)))]"
    assert len(page.locator(".row.task > .name").evaluate_all(lefts)) == 1
    assert len(page.locator(".row.task .changes, .row.task .on").evaluate_all(lefts)) <= 2


@pytest.mark.parametrize("path", ["/?state=FAILED", "/select?marked=all"])
def test_a_reason_can_be_read_on_a_phone(desktop: Desktop, path: str) -> None:
    """It has the width of the screen, and as many lines as it needs."""
    _paths(desktop)
    page = desktop.page(path, viewport=NARROW)
    _settle(page)
    why = page.locator(".row .why", has_text="exited with 2").first
    # All at once, as a refresh may replace the row in between.
    fits = "one.scrollWidth <= one.clientWidth, one.scrollHeight <= one.clientHeight"
    expect(why).to_be_visible()
    of_first = f"([one]) => [{fits}, one.getBoundingClientRect().left < 32]"
    assert why.evaluate_all(of_first) == [True, True, True]


@pytest.mark.parametrize("path", ["/", "/?state=FAILED"])
def test_why_a_task_failed_can_be_read_where_it_is_listed(desktop: Desktop, path: str) -> None:
    _paths(desktop)
    page = desktop.page(path, viewport={"width": 1_280, "height": 900})
    _settle(page)
    failed = page.locator(".row.task:has(> .chip.bad)")
    expect(failed.locator(".why", has_text="exited with 2").first).to_be_visible()
    cut = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.innerText)"
    assert failed.locator(".why, .changes").evaluate_all(cut) == []


@pytest.mark.parametrize("width", [1_024, 1_280])
def test_rows_of_a_list_have_whole_names_and_one_text_each(desktop: Desktop, width: int) -> None:
    """A task that may have stopped early has a reason as well as a result: one would be printed over the other."""
    _paths(desktop)
    desktop.task("a-task-of-some-length", 'delay=50ms cost=0.1 text="It is done, and there was a lot to do for it."')
    desktop.settled("a-task-of-some-length", "COMPLETED")
    page = desktop.page("/?state=COMPLETED", viewport={"width": width, "height": 900})
    _settle(page)
    # What a refresh shows has one text again, and the row that was found is then in no document.
    page.get_by_role("button", name="Pause updates").click()
    doubled = """one => {
        one.before(one.cloneNode(true));
        return [...one.parentElement.querySelectorAll(".why")].map((each) => each.checkVisibility());
    }"""
    why = page.locator(".row.task", has_text="a-task-of-some-length").locator(".why")
    assert why.evaluate(doubled) == [True, False]
    cut = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.innerText)"
    assert page.locator(".row.task .name").evaluate_all(cut) == []


# What a finger is meant for is as high as one, or its place that takes a touch is: a link's own, or a whole row's.
_SMALL = """() => [...document.querySelectorAll("a[href], button, input, select, textarea, summary")].filter((one) => {
    if (!one.checkVisibility() || one.matches(".skip, [type=hidden], svg a")) return false;
    const place = one.matches("[type=checkbox]") ? one.closest("label") ?? one.closest(".row, .choice") : one;
    const [before, after] = ["::before", "::after"].map((part) => getComputedStyle(place, part));
    const heights = [place.getBoundingClientRect().height];
    for (const part of [before, after]) if (part.position === "absolute") heights.push(parseFloat(part.height));
    return Math.max(...heights) < 40;
}).map((one) => one.outerHTML.slice(0, 100))"""


def test_a_finger_can_touch_everything(desktop: Desktop) -> None:
    paths = _paths(desktop)
    page = desktop.page(viewport=NARROW, has_touch=True)
    small = {}
    for name in (
        "front",
        "report",
        "repositories",
        "found",
        "asks",
        "branch",
        "select",
        "new",
        "policy",
        "specialists",
    ):
        page.goto(desktop.url + paths[name])
        small[name] = page.evaluate(_SMALL)
    assert {name: those for name, those in small.items() if those} == {}


def test_the_menu_of_a_narrow_window_opens_and_closes_by_keyboard(desktop: Desktop) -> None:
    page = desktop.page("/report", viewport=NARROW)
    link = page.get_by_role("link", name="Night", exact=True)
    expect(link).to_be_hidden()
    page.get_by_role("button", name="Menu").press("Enter")
    expect(link).to_be_visible()
    expect(page.get_by_role("button", name="Log out")).to_be_visible()
    page.keyboard.press("Escape")
    expect(link).to_be_hidden()
    expect(page.get_by_role("button", name="Menu")).to_be_focused()


def test_what_matters_is_on_the_first_two_screens_of_a_phone(desktop: Desktop) -> None:
    _paths(desktop)
    page = desktop.page(viewport=NARROW)
    _settle(page)
    for section in ("needs-you", "running", "problems"):
        (top,) = page.locator(f"#{section} > h2").evaluate_all("all => all.map(one => one.getBoundingClientRect().y)")
        assert top < 2 * NARROW["height"], section


def test_a_page_is_printed_without_what_is_for_the_screen(desktop: Desktop) -> None:
    paths = _paths(desktop)
    page = desktop.page(paths["branch"])
    page.emulate_media(media="print")
    expect(page.get_by_role("heading", name="Timeline")).to_be_visible()
    for hidden in (".menu", ".standing", ".title-line .actions"):
        expect(page.locator(hidden).first).to_be_hidden()


def test_colour_is_not_all_that_tells_which_runs_failed(desktop: Desktop) -> None:
    page = desktop.page(_paths(desktop)["night"])
    height = "(one, tone) => { one.setAttribute('class', `bar ${tone}`); return one.getBBox().height; }"
    bar = page.locator(".night a > .bar").first
    assert bar.evaluate(height, "good") < bar.evaluate(height, "bad")


def test_what_has_the_focus_is_not_under_the_line_that_stays(desktop: Desktop) -> None:
    _paths(desktop)
    page = desktop.page(viewport={"width": 1_024, "height": 500})
    _settle(page)
    # As a link to a part of the page does. All at once: a refresh puts another row in the place of this one.
    clear = """rows => {
        rows[0].scrollIntoView();
        return rows[0].getBoundingClientRect().top - document.querySelector(".strip").getBoundingClientRect().bottom;
    }"""
    assert page.locator("#needs-you .row:visible").evaluate_all(clear) >= 0


@pytest.mark.parametrize("width", [NARROW["width"], 1_280])
def test_a_reason_of_many_lines_leaves_room_for_the_other_rows(desktop: Desktop, width: int) -> None:
    """Its task's page has all of it."""
    _paths(desktop)
    if "rambles" not in {task.name for task in desktop.daemon.client.all_tasks()}:
        desktop.task("rambles", approval="true")
        desktop.settled("rambles", "NEEDS_INPUT")
        desktop.daemon.client.reject("rambles", RejectRequest(reason="It is too long a story. " * 60))
    page = desktop.page(viewport={"width": width, "height": 900})
    why = page.locator("#problems .row.task", has_text="rambles").locator(".why")
    expect(why.first).to_be_visible()
    assert why.evaluate_all("all => all[0].getBoundingClientRect().height") < 80
