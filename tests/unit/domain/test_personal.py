"""Data of persons, which leave with no decision and no handoff."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.domain.outcome import HandoffRequest
from claudomator_py.domain.personal import without_personal

_CARDS = (
    *("4111111111111111", "4222222222222", "5555555555554444", "2223003122003222", "378282246310005"),
    *("30569309025904", "6011111111111117", "3530111333300000", "6200000000000005", "6304000000000000"),
)
_ACCOUNTS = (
    *("DE89370400440532013000", "GB82WEST12345698765432", "NO9386011117947", "FR1420041010050500013M02606"),
    *("NL91ABNA0417164300", "MT84MALT011000012345MTLCAST001S"),
)
_SEPARATORS = (
    "",
    " ",
    "  ",
    "-",
    " - ",
    "_",
    "\t",
    "\N{NO-BREAK SPACE}",
    "\N{NARROW NO-BREAK SPACE}",
    "\N{EN DASH}",
    "\N{NON-BREAKING HYPHEN}",
)
_ZEROS = ("0", "\N{FULLWIDTH DIGIT ZERO}", "\N{ARABIC-INDIC DIGIT ZERO}", "\N{DEVANAGARI DIGIT ZERO}")


def _written(number: str, size: int, separator: str, zero: str) -> str:
    number = "".join(chr(ord(zero) + int(letter)) if letter.isdigit() else letter for letter in number)
    return separator.join(number[start : start + size] for start in range(0, len(number), size))


@pytest.mark.parametrize("zero", _ZEROS)
@pytest.mark.parametrize("separator", _SEPARATORS)
@pytest.mark.parametrize(("numbers", "word"), [(_CARDS, "[card]"), (_ACCOUNTS, "[account]")])
def test_cards_and_accounts_go_however_they_are_written(
    numbers: tuple[str, ...], word: str, separator: str, zero: str
) -> None:
    for number in numbers:
        for size in (4, 2):
            written = _written(number, size, separator, zero)
            for before, after in (("pay ", "."), ("12 ", " 12/29"), ("n:", ", AND SO ON"), ("(", ")")):
                assert without_personal(f"{before}{written}{after}") == f"{before}{word}{after}"


def test_an_account_may_be_written_small_and_a_card_in_its_own_groups() -> None:
    assert without_personal("de89 3704 0044 0532 0130 00 and 3782 822463 10005") == "[account] and [card]"
    assert (
        without_personal("\N{FULLWIDTH LATIN CAPITAL LETTER D}\N{FULLWIDTH LATIN CAPITAL LETTER E}89370400440532013000")
        == "[account]"
    )


@given(st.integers(0, 9), st.sampled_from(_CARDS))
def test_a_number_whose_check_digit_is_another_stays(last: int, number: str) -> None:
    other = f"{number[:-1]}{last}"
    assert (without_personal(other) == "[card]") == (other == number)


def test_what_a_run_leaves_is_kept_without_them_and_without_growing() -> None:
    request = HandoffRequest(
        to="clerk",
        reason="x" * 989 + " a@b.co, so",
        done="Charged 4111-1111-1111-1111.",
        left="Refund DE89 3704 0044 0532 0130 00.",
        files=("export/4111111111111111.csv",),
    )
    assert request.done == "Charged [card]."
    assert request.left == "Refund [account]."
    assert request.files == ("export/[card].csv",)
    assert HandoffRequest.model_validate(request.model_dump()) == request


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
        ("call 0049-30-1234567", "1234567"),
        ("call 0043 1 234567", "234567"),
        ("write to anna@m\N{LATIN SMALL LETTER U WITH DIAERESIS}ller.de", "anna"),
        ("write to ann@\u4f8b\u3048.\u30c6\u30b9\u30c8 now", "ann@"),
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
        "0.4111111111111111 and 2.5555555555554444 of 1",
        "1763915999000123",
        "IMEI 490154203237518",
        "ISBN 9780306406157",
        "550e8400-e29b-41d4-a716-446655440000",
        "a4111111111111111, 4111111111111111f",
        "py39-black-isort-flake8-mypy-docs",
        "XX89370400440532013000",
        "00123456789",
        "pip install a@1.2.3 and b@file.py_x",
    ],
)
def test_other_numbers_stay(text: str) -> None:
    assert without_personal(text) == text


@pytest.mark.parametrize(
    "unit", ["4 ", "4-", "4_", "4 - ", "a@a.", "00 ", "4111 ", "0", "1.", "DE89 ", "de", "\N{ARABIC-INDIC DIGIT FOUR} "]
)
def test_long_rows_of_numbers_are_read_in_time(unit: str) -> None:
    without_personal(unit * 5_000)


@given(st.text(st.sampled_from("4 1\t-.:,/@DEaw" + "".join(map(chr, range(128)))), max_size=60))
@pytest.mark.parametrize("held", ["", "\t4111\t1111\t1111\t1111\t", "\tDE89\t3704 0044-0532.0130 00\t"])
def test_text_of_ascii_alone_is_read_like_any_other(held: str, text: str) -> None:
    other = " \N{SNOWMAN}"
    assert without_personal(f"{text}{held}") == without_personal(f"{text}{held}{other}").removesuffix(other)
