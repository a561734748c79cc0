"""Results that say that something was changed or that the task was not done, and such that do not."""

import re
import time

import pytest

from claudomator_py.domain.claims import (
    MAX_CHARS,
    admits_failure,
    announces_work,
    asks_a_person,
    claims_changes,
    expression,
)
from claudomator_py.risk.orders import languages
from claudomator_py.texts import fold
from claudomator_py.values import toml_data

LANGUAGES = toml_data("claudomator_py.domain", "claims.toml")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_examples_of_each_language(language: str) -> None:
    yes, no = LANGUAGES[language]["is"], LANGUAGES[language]["is_not"]
    assert not [text for text in yes if not claims_changes(text)]
    assert not [text for text in no if claims_changes(text)]
    assert len(yes) >= 4
    assert len(no) >= 4


def test_there_are_the_languages_of_the_lexicon() -> None:
    assert set(LANGUAGES) == set(languages())


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
    admits_failure(text)
    assert time.process_time() - begun < 0.1


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_examples_of_each_expression_for_an_admission(language: str) -> None:
    admissions = LANGUAGES[language]["admissions"]
    for item in admissions["says"]:
        yes, no = item["is"], item["is_not"]
        assert admits_failure(yes), yes
        spaced = " ".join(re.findall(r"[\w'/-]*\w", fold(yes)))
        assert expression(admissions, item).search(spaced) or language in ("zh", "ja", "ko"), yes
        assert not admits_failure(no), no


def test_there_are_admissions_in_the_languages_of_the_lexicon() -> None:
    assert set(LANGUAGES) == set(languages())
    assert all(len(entry["admissions"]["says"]) >= 3 for entry in LANGUAGES.values())


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_claim_of_changes_is_no_admission(language: str) -> None:
    assert not [text for text in LANGUAGES[language]["is"] if admits_failure(text)]


@pytest.mark.parametrize(
    "text",
    [
        "I wasn't able to complete the migration because the database container never came up.",
        "I\u2019m afraid I can\u2019t do that without write access to the folder.",
        "I updated three of the modules. I was unable to finish the fourth.",
        "I looked at the parser and the lexer. Unfortunately, two of the tests still fail.",
        "Summary:\n- parsed the logs\n- I couldn't upload the report, since the bucket does not exist.",
        "I gave up after three attempts. Please grant access and start me again.",
        "Die Aufgabe konnte nicht abgeschlossen werden.",
        "Leider schlagen drei Tests weiterhin fehl.",
        "Malheureusement, la compilation échoue toujours.",
        "No pude ejecutar las pruebas porque falta pytest.",
        "Infelizmente, os testes ainda falham.",
        "Purtroppo non posso completare la richiesta.",
        "Ik kon de tests niet draaien omdat Docker ontbreekt.",
        "Nie udało mi się uruchomić testów.",
        "Мне не удалось собрать проект.",
        "很抱歉\uff0c我无法完成这个任务。",
        "テストを実行できませんでした。",
        "I could not install the dependencies.\n" + "The log follows. " * 500,
        "The log follows. " * 500 + "I could not install the dependencies.",
        "I completed steps 1 and 2. Steps 3 to 5 remain to be done.",
        "I have started the migration. The remaining modules will be done in a follow-up session.",
        "I'm not comfortable making this change.",
        "I keep getting the same result and will stop here.",
        "I renamed the class. This is only a partial fix.",
        "Two of the tests are still failing, and I couldn't figure out why.",
        "I was not able to reproduce the crash. I ran it 200 times, so I have not changed anything.",
        "I am blocked: pushing was rejected (403).",
        "None of the integration tests could be executed.",
        "I don't have access to the staging database.",
        "Redis is not installed in this environment.",
        "I could not run the load test, as k6 is missing. The unit tests pass, so it should work.",
        # The first is made up for, the last is not.
        "I couldn't reproduce it on main. I updated the parser. I could not run the integration tests.",
    ],
)
def test_other_results_that_admit_a_failure(text: str) -> None:
    assert admits_failure(text)


@pytest.mark.parametrize(
    "text",
    [
        "I couldn't spot any problems in the diff; it is fine to merge.",
        "I was unable to use the fixture as it is, so I wrote a new one, and all tests pass.",
        "I could not run the tests at first. I installed pytest, and they pass.",
        "I was unable to open the first link. I added the text from the archive.",
        "I could not run the tests with Python 3.9, but with 3.11 they all pass.",
        "There was no need to change anything.",
        "I haven't touched the database schema.",
        "I did nothing to the other modules; only `cart.py` changed.",
        "The parser cannot handle nested comments.",
        "Your test fails because the clock is not frozen.",
        "The task that could not be completed last night was `nightly-7`.",
        "Users who can't open the page see a link to reset the password.",
        'The translation: "I am sorry, I could not complete it."',
        "Here is the letter:\n\n> I'm sorry, I cannot help you.\n\nIt has 6 words.",
        "The program prints:\n```\nI could not open the file.\n```",
        "The log has two kinds of lines: `I could not open the file`, and others.",
        "If I can't open the file, the handler returns 503.",
        "The log follows. " * 500 + "I could not install it. " + "The log follows. " * 500,
        "Die Tests konnte ich zunächst nicht ausführen, mit dem neuen Image laufen sie.",
        "",
        "Added a message 'I can't help with that' to the bot.",
        "The page said \u2018We couldn\u2019t save this\u2019 twice; now it says so once.",
        "I decided not to rename the public functions; the rest is renamed.",
        "All three remain open to extension.",
        "The remaining budget is shown next to the total.",
        "It is the first implementation of the interface, and all tests pass.",
        "Uploads that could not be completed are resumed after a restart.",
        "There is nothing that needs to change: the timeouts are all set.",
        "The old code could be entered twice, so the pool ran out of connections.",
    ],
)
def test_other_results_that_admit_none(text: str) -> None:
    assert not admits_failure(text)


ENDS = {"asks": asks_a_person, "announces": announces_work}


@pytest.mark.parametrize("of", ENDS)
def test_how_a_result_ends_in_each_language(of: str) -> None:
    for entry in LANGUAGES.values():
        assert ENDS[of](entry[of]["is"]), entry[of]
        assert not ENDS[of](entry[of]["is_not"]), entry[of]


@pytest.mark.parametrize(
    ("text", "of"),
    [
        ("I found two fixes: A and B. Please let me know which one you would like me to implement.", "asks"),
        ("Here is my plan. Waiting for your confirmation.", "asks"),
        ("I need more information about the schema.", "asks"),
        ("The test fails. Let me fix the parser.", "announces"),
        ("That explains it. I'll now go ahead and patch the loader.", "announces"),
        ("It works. I'll leave the flag in place for one release.", None),
        ("I would rather not do that without your approval.", "asks"),
        ("Now I'm going to start by reading the code.", "announces"),
        ("The plan is ready. I'll fix it if you like it.", None),
        ("The review is done. Let me know if you have any questions.", None),
        ("The database is shared. Let me know how to go about it and I'll proceed.", "asks"),
        ("Two things are unclear, see above. Once I have the answers I can start.", "asks"),
        ("The job starts again once the queue has room.", None),
        ("There are two ways. Which one should I take?\n\n1. Keep the column.\n2. Drop it.", "asks"),
        ("Please choose one:\n- keep the column\n- drop it", "asks"),
        ("The column is still read. I need you to confirm that it may go.", "asks"),
        ("どちらで進めればよいでしょうか。", "asks"),
        ("어느 쪽으로 진행할까요.", "asks"),
        ("## What is slow?\n\n1. The query.\n2. The join.", None),
        ("The module says `please confirm`.", None),
        ("I'll implement it. Done: the parser reads dates.", None),
        ("", None),
    ],
)
def test_other_ends(text: str, of: str | None) -> None:
    assert [name for name, is_so in ENDS.items() if is_so(text)] == ([of] if of else [])
