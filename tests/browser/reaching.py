"""Whether a page can be used by everybody: what the keyboard reaches, and what axe finds."""

from collections.abc import Collection
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect


def tab_to(page: Page, wanted: Locator) -> None:
    """Press Tab until that has the focus. What a page shows again meanwhile may take the focus along: it goes round."""
    expect(wanted).to_be_visible()  # the page is there, and not the one before it
    if page.locator("[data-refresh]").count():
        # With its stream a page shows everything again; on a busy machine that is as late as the focus.
        expect(page.locator("#live")).to_have_text("Live")
    for _ in range(200):
        page.keyboard.press("Tab")
        if wanted.evaluate("element => element === document.activeElement"):
            break
    expect(wanted).to_be_focused()


AXE: str = Axe().axe_script
# Of all that is well it tells only what it looked for.
BRIEFLY = {"resultTypes": ["violations"]}


def violations(page: Page, *, without: Collection[str] = ()) -> list[dict[str, Any]]:
    """What axe finds. without: rules that are left out."""
    if not page.evaluate("'axe' in window"):
        page.add_init_script(AXE)  # for the next pages: the browser takes it from us once
        page.evaluate(AXE)
    left_out = {"rules": {rule: {"enabled": False} for rule in without}}
    response = page.evaluate("options => axe.run(options)", BRIEFLY | left_out)
    assert response["passes"]
    results: list[dict[str, Any]] = response["violations"]
    return results


# Each text with what its contrast follows from: its own style, and what it lies on. Axe judges those that look like
# none that it passed before. No look is known by a text that axe passes over or leaves open. A text left of the page is
# not even shown to it, as the link that skips to the content is until it has the focus.
_CONTRASTS = """async (known) => {
    const paints = new Map();
    const paint = (element) => {
        if (element === null) return "";
        if (!paints.has(element)) {
            const {backgroundColor, backgroundImage, opacity} = getComputedStyle(element);
            const own = [backgroundColor, backgroundImage, opacity].join();
            paints.set(element, paint(element.parentElement) + (own === "rgba(0, 0, 0, 0),none,1" ? "" : `/${own}`));
        }
        return paints.get(element);
    };
    const look = (element) => {
        const {color, fontSize, fontWeight, textShadow} = getComputedStyle(element);
        return [color, fontSize, fontWeight, textShadow, paint(element)].join(" ");
    };
    const texts = [...document.body.querySelectorAll("*")].filter(
        (element) =>
            element.checkVisibility({visibilityProperty: true}) &&
            element.getBoundingClientRect().right > 0 &&
            (element.matches("input, select, textarea") ||
                [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim())));
    const passed = new Set(known);
    const unknown = texts.filter((element) => !passed.has(look(element)));
    if (unknown.length === 0) return {texts: texts.length, weak: [], passed: []};
    const options = {runOnly: ["color-contrast"], elementRef: true};
    const {passes, violations} = await axe.run({include: unknown}, options);
    const nodes = (rules) => rules.flatMap((rule) => rule.nodes);
    return {
        texts: texts.length,
        weak: nodes(violations).map((node) => node.html),
        passed: [...new Set(nodes(passes).map((node) => look(node.element)))],
    };
}"""


def weak_contrasts(page: Page, known: set[str]) -> list[str]:
    """The texts that axe finds weak, once ``violations`` has brought it to the page.

    known: the looks that it has passed; a text of such a look is not judged again.
    """
    result = page.evaluate(_CONTRASTS, list(known))
    assert result["texts"]
    known.update(result["passed"])
    weak: list[str] = result["weak"]
    return weak
