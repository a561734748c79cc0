"""Results that say that something was changed, and such that do not."""

import time

import pytest

from claudomator_py.domain.claims import MAX_CHARS, claims_changes, examples
from claudomator_py.risk.reading import languages


@pytest.mark.parametrize("language", examples())
def test_the_examples_of_each_language(language: str) -> None:
    yes, no = examples()[language]
    assert not [text for text in yes if not claims_changes(text)]
    assert not [text for text in no if claims_changes(text)]
    assert len(yes) >= 4
    assert len(no) >= 4


def test_there_are_the_languages_of_the_lexicon() -> None:
    assert set(examples()) == set(languages())


@pytest.mark.parametrize(
    "text",
    [
        "## Summary\n\nAll three flaky tests have been repaired; the suite is green.",
        "I'm done: I\u2019ve renamed `total` to `sum`.",
        "Looked at the logs first.\n* Replaced the regular expression.",
        "Die Abfrage wurde angepasst und ist nun schneller.",
        "FIXED",
        "Il bug è risolto.",
        "Ошибку исправил, тесты проходят.",
        "问题已修复。请查看。",
        "テストを修正しました。すべて通ります。",
    ],
)
def test_other_results_that_say_it(text: str) -> None:
    assert claims_changes(text)


@pytest.mark.parametrize(
    "text",
    [
        "The bug is not yet fixed, as I have no permission to write.",
        "I read everything. No files were changed.",
        "The three slowest queries are these: `select 1`, `updated_at`.",
        "If the index is added, it is fast.",
        "I sent the mail as asked and updated the ticket.",
        "You asked who changed it: ann did, in March.",
        "Es ist nichts zu tun: schon umgesetzt.",
        "Le test n'a pas été ajouté.",
        "まだ修正していません。",
        "x" * MAX_CHARS + " I fixed it.",
    ],
)
def test_other_results_that_do_not(text: str) -> None:
    assert not claims_changes(text)


def test_a_long_result_is_read_quickly() -> None:
    text = "I have looked at the page, which is fast now, and it is not fixed. " * 10_000
    begun = time.process_time()
    claims_changes(text)
    assert time.process_time() - begun < 0.1
