"""Results that say that a part of the task is not done, and such that do not."""

import time

import pytest

from claudomator_py.domain.progress import MAX_LEFT, UNFINISHED_MARKER, is_partial, left_undone
from claudomator_py.values import toml_data

NOTHING = (
    *("none", "no", "No.", "Nothing left.", "N/A", "(none)", "- nichts", "\u65e0", ""),
    *("Nothing is left undone.", "None - everything is complete.", "nothing, all tests pass"),
)
LANGUAGES = toml_data("claudomator_py.domain", "progress.toml")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_examples_of_each_language(language: str) -> None:
    entry = LANGUAGES[language]
    yes = [*entry["is"], *[item["is"] for item in entry["says"]]]
    no = [*entry["is_not"], *[item["is_not"] for item in entry["says"]]]
    assert not [text for text in yes if not is_partial(text)]
    assert not [text for text in no if is_partial(text)]
    assert len(yes) >= 4
    assert len(no) >= 4


def test_there_are_the_languages_of_the_claims() -> None:
    assert set(LANGUAGES) == set(toml_data("claudomator_py.domain", "claims.toml"))


@pytest.mark.parametrize(
    "text",
    [
        "I converted five of the nine templates. I stopped there because the session was long.",
        "Converted: header, footer, cart. Not yet converted: checkout, account.",
        "Progress: 60/140 strings translated. Continue with `settings.po`.",
        "Status:\n\n1. Parser \u2014 done\n2. Checker \u2014 done\n3. Code generation \u2014 not started",
        "Done so far:\n- \u2705 users\n- \u2705 orders\n- \u23f3 invoices",
        "I finished the API. The page is not implemented yet.",
        "I added the rule and fixed most of the 400 warnings; about 60 remain.",
        "Result: 117 passed, 4 failed. The failures come from the new cache.",
        "Typed it all.\n\nRun: 512 passed, 37 failed, 4 errors. They need a pass.\n\nA.\nB.\nC.",
        "Typed it all.\n```\n====== 2 failed, 88 passed in 3.21s ======\n```\nSee above.\nBye.\nHi.",
        "Typed it all.\n\nTests run: 40, Failures: 3, Errors: 0, Skipped: 1\n\nI looked at it.\nIt is late.\nBye.",
        "J'ai tout typé.\n\nFAILED (failures=2, errors=1)\n\nVoilà.\nC'est fait.\nBonne nuit.",
        "Before: 100 passed. Then I moved it.\n\nTest Suites: 1 failed, 12 passed, 13 total\n\nA.\nB.\nC.",
        "Moved the models.\n\n### Still to do\n- admin views\n- commands\n\nAll tests pass.",
        "Moved the models.\n\n**Not done:** the admin views.\n\nAll tests pass.",
        "I skipped the second item, as it needs a licence.",
        "Of the 40 handlers, I moved 9.",
        "I ported three of the nine schemas; the others need no change. I moved 3 of the 7 handlers.",
        "The server starts now, but the client does not yet.",
        "Done so far:\n- \u2705 users\n- \u274c invoices",
        "Ich habe 12 von 30 Dateien umgestellt, der Rest folgt demselben Muster.",
        "Der Filter wirkt noch nicht auf die Summe.",
        "J'ai traduit douze fichiers sur vingt.",
        "30ファイル中12ファイルを翻訳しました。",
    ],
)
def test_other_results_that_say_it(text: str) -> None:
    assert is_partial(text)


@pytest.mark.parametrize(
    "text",
    [
        "All 12 handlers are converted. Two of them had a wrong status code, which is fixed as well.",
        "Only 3 of the 17 call sites passed the argument, so I changed those and added a default.",
        "Bumped 14 of 20 dependencies; the rest is already at the newest version.",
        "45 of 48 tests pass. The three others fail without my changes, too.",
        "I ported three of the nine schemas; the others need no change. All 7 handlers are moved.",
        "Tests: 40 passed, 0 failed.",
        "Before: 3 failed, 97 passed. The fixture was stale.\n\nNow: 100 passed.",
        "88 passed, 2 failed. Both fail on main, too.",
        "It was 2 failed on the first run; once mended: 12 passed",
        "The tests run before the server is up. Then 11 tests fail; now they wait for it.",
        "Tests run: 40, Failures: 0, Errors: 0",
        "test result: ok. 266 passed; 0 failed; 4 ignored",
        "The retry is tested: 3 errors, then success.",
        "The test is fixed: it failed in 3 of 50 runs before, and in none of 500 now.",
        "Done. The other two callers still pass `None`, which the function accepts.",
        "Fixed on 3/12, released today.",
        "Fixed the race.\n\n## Test plan\n- [x] `pytest`\n- [ ] Watch the queue on staging",
        "The importer reports each row.\n\n```\n- row 1: done\n- row 2: pending\n```",
        "It returns:\n- `status`: pending until the job ends, then done\n- `url`: where it is",
        "Sorted them:\n1. XSS in search \u2014 fixed\n2. open redirect \u2014 fixed",
        "Added dark mode.\n\n### Not done\n- Nothing; all criteria are met.",
        "| file | before | after |\n|---|---|---|\n| a.py | 12 | 0 |\n| b.py | 3 | 0 |",
        "| state | meaning |\n|---|---|\n| pending | not paid |\n| done | paid |",
        "He añadido la prueba. No queda nada pendiente.",
        "Hecho; no hizo falta tocar el servidor.",
        "All endpoints are described now, except that one is in the guide as before.",
        "I skipped the network in the tests by using a fake server.",
        "It says which features are not yet implemented.",
        "The cache is almost always hit now.",
        "They mention that one browser does not support it yet.",
        "",
    ],
)
def test_other_results_that_do_not(text: str) -> None:
    assert not is_partial(text)


def test_a_long_result_is_read_quickly() -> None:
    text = "| a | done |\n- item: x (y), and 3 of the many\n" * 10_000
    begun = time.process_time()
    assert not is_partial(text)
    assert time.process_time() - begun < 0.2


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"Ported it.\n\n{UNFINISHED_MARKER} the docs,\nfor want of time.", "the docs, for want of time"),
        (f"**{UNFINISHED_MARKER}**\n- the docs\n- the tests\n", "- the docs - the tests"),
        (f"{UNFINISHED_MARKER} None of the tests were run.", "None of the tests were run"),
        (f"{UNFINISHED_MARKER} Keine Zeit für die Doku.", "Keine Zeit für die Doku"),
        (f"{UNFINISHED_MARKER} {'x' * 2 * MAX_LEFT}", "x" * (MAX_LEFT - 3) + "..."),
        *[(f"All done.\n\n{UNFINISHED_MARKER} {no}", None) for no in NOTHING],
        (f"{UNFINISHED_MARKER} the \x1b[31mred\x1b[0m one\u202e", "the red one"),
        *[
            (f"{UNFINISHED_MARKER} {left}.", left)
            for left in ("Everything", "No tests were run", "None of it was tried")
        ],
        (f"**{UNFINISHED_MARKER} the docs**", "the docs"),
        (f"I read of `{UNFINISHED_MARKER} all of it`.", None),
        (f"```\n{UNFINISHED_MARKER} the docs\n```\nThat is what it printed.", None),
        (f"> {UNFINISHED_MARKER} the docs", None),
        ("CLAUDOMATOR FINISHED: the docs", None),
    ],
)
def test_an_agent_says_what_it_leaves_undone(text: str, left: str | None) -> None:
    assert left_undone(text) == left
