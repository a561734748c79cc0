"""What a task's text names, without data of persons and secrets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.domain.extraction import LONGEST_INTENT, extracted, intent_of
from claudomator_py.domain.personal import without_personal
from claudomator_py.domain.redaction import Redactor

TEXT = """# Fix the **login** in `src/app/login.py`. It redirects twice!

See https://jane:pw@example.com/a/b?token=1#x, ABC-12 and #77. Run `npm run test` in ./web/ and edit Makefile,
/etc/nginx and e.g. this/that.

    $ make test
"""


def test_what_it_wants_is_its_first_sentence_without_decoration() -> None:
    assert intent_of(TEXT) == "Fix the login in src/app/login.py."
    assert intent_of("\n---\n\n1. do   it") == "do it"
    assert intent_of("---") == ""
    assert len(intent_of("word " * 1_000)) == LONGEST_INTENT


def test_what_it_names() -> None:
    found = extracted(TEXT)
    assert found.files == ("src/app/login.py", "Makefile")
    assert found.paths == ("./web/", "/etc/nginx", "this/that")
    assert found.commands == ("npm run test", "make test")
    assert found.tickets == ("ABC-12", "#77")
    assert found.urls == ("https://example.com/a/b",)


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("write to jane.doe+x@mail.example.org!", "jane.doe"),
        ("pay with 4111 1111 1111 1111 today", "4111"),
        ("card 378282246310005", "378282"),
        ("to DE89 3704 0044 0532 0130 00.", "3704"),
        ("to GB82WEST12345698765432", "WEST"),
        ("call +49 30 1234567", "1234567"),
        ("call (555) 123-4567", "4567"),
        ("call 030 123456-78", "123456"),
    ],
)
def test_data_of_persons_is_taken_out(text: str, gone: str) -> None:
    assert gone not in without_personal(text)
    assert "[" in without_personal(text)


@pytest.mark.parametrize(
    "text",
    [
        "version 1.2.3 of 2026-11-23 12:30",
        "4111 1111 1111 1112",
        "DE00370400440532013000",
        "see @types/node and git@",
        "10.0.0.1:8080",
        "1763915999000",
        "build 20261123-0042",
    ],
)
def test_other_numbers_stay(text: str) -> None:
    assert without_personal(text) == text


@pytest.mark.parametrize("cut", [1, 7, 8, 14])
def test_no_part_of_a_secret_is_extracted_where_a_long_text_is_cut(cut: int) -> None:
    text = "./a\n" * 25_000
    text = f"{text[: 100_000 - cut - 5]}/srv/hunter2-hunter2/a.py"
    assert "hunter" not in extracted(text, Redactor(["hunter2-hunter2"])).model_dump_json()
    assert "hunter" not in intent_of(text.replace("\n", " "), Redactor(["hunter2-hunter2"]))


def test_no_secret_and_no_person_is_extracted() -> None:
    text = "Read /home/jane@example.org/keys.txt and /srv/hunter2-hunter2/a.py, then `curl -H hunter2-hunter2 x`"
    found = extracted(text, Redactor(["hunter2-hunter2"])).model_dump_json()
    assert "hunter2" not in found
    assert "jane" not in found


@given(st.text(max_size=2_000))
def test_any_text_can_be_read_and_the_same_gives_the_same(text: str) -> None:
    assert extracted(text) == extracted(text)
    assert len(intent_of(text)) <= LONGEST_INTENT
    assert "\n" not in intent_of(text)


@pytest.mark.parametrize(
    "unit",
    [
        "\n",
        "+",
        "0",
        "a/",
        "1 ",
        "012-1",
        "`",
        "DE89 ",
        "a.",
        "://a",
        "http://",
        "$ ",
        "@",
        "[ ",
        "**",
        "+1 ",
        "-",
        "'",
    ],
)
def test_long_texts_of_one_thing_are_read_in_time(unit: str) -> None:
    """What would be tried again and again from each place would take hours."""
    for text in (unit * 20_000, f"012-{unit * 20_000}a"):
        assert len(intent_of(text)) <= LONGEST_INTENT
        assert len(extracted(text).files) <= 20
