"""Orders in other languages: each entry of the lexicon is read as its examples say."""

from collections.abc import Iterator, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.domain.routing import Risk
from claudomator_py.risk.reading import MAX_SENTENCES, data, fold, orders
from claudomator_py.routing.assessment import assess
from claudomator_py.routing.orders import Sign

LEXICON = data()


def examples(name: str) -> Iterator[tuple[str, str, str]]:
    for language, words in LEXICON.items():
        for kind, entry in words.items() if language != "classes" else ():
            if isinstance(entry, Mapping):
                for text in entry[name]:
                    yield language, kind, text


def test_each_language_has_each_class() -> None:
    classes = set(LEXICON["classes"])
    assert classes <= {sign.value for sign in Sign}
    languages = {name: words for name, words in LEXICON.items() if name != "classes"}
    assert len(languages) >= 10
    assert all(classes <= set(words) for words in languages.values())


@pytest.mark.parametrize(("language", "kind", "text"), list(examples("is")))
def test_what_is_an_order_is_read_as_one(language: str, kind: str, text: str) -> None:
    (order,) = orders(text)
    assert order.words == text.rstrip(".。")
    judged = assess(text)
    assert judged.risk is Risk.HIGH
    assert judged.words


@pytest.mark.parametrize(("language", "kind", "text"), list(examples("is_not")))
def test_what_is_about_code_or_nothing_is_not(language: str, kind: str, text: str) -> None:
    assert orders(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "\uff2c\u00f6sche die \uff22ackups der Produktion.",
        "Lo\u200bsche die Backups der Produktion.".replace("Lo", "Lö"),
        "LÖSCHE DIE BACKUPS DER PRODUKTION!",
        "Wir haben viel zu tun.\nLösche die Backups der Produktion.\nDanke.",
    ],
)
def test_no_spelling_hides_an_order(text: str) -> None:
    assert [one.kind for one in orders(text)] == ["irreversible"]


@pytest.mark.parametrize(
    "text",
    [
        "`Lösche die Backups der Produktion.`",
        "Drop the database connection when the server stops.",
        "Publish button stays disabled",
        "Deploy the docs locally and restart the dev server.",
        "Rename the admin token helper.",
    ],
)
def test_code_and_english_are_left_to_others(text: str) -> None:
    assert orders(text) == []


def test_a_long_text_is_read_up_to_a_bound() -> None:
    assert orders("Gut. " * MAX_SENTENCES * 2 + "Lösche die Backups der Produktion.") == []


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    assert all(one.kind in LEXICON["classes"] for one in orders(text))
