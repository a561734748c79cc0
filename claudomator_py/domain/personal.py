"""Removes personal data from text: e-mail addresses and numbers of payment cards, bank accounts and telephones.

Recognised by shape and check digits, so that a mere long number stays, in digits and letters of any script and in any
grouping. Secrets are handled by ``redaction.py``.
"""

import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Annotated, Final

from pydantic import AfterValidator

from claudomator_py.values import regex

Span = tuple[int, int]

_EMAIL = regex(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[^\W_](?:[\w-]{0,62})\.){1,8}[^\W\d_]{2,24}(?![\w-])")
_PHONE = regex(
    r"(?<![\w+./-])(?:"
    r"\+\d(?:[ ()/.-]{0,2}\d){7,14}"
    r"|\(\d{3}\) ?\d{3}[ .-]\d{4}|\d{3}[ .-]\d{3}[ .-]\d{4}"
    r"|00[1-9]\d{0,2}(?:[ ()/.-]{1,2}\d{1,12}){2,6}"
    r"|0\d{2,5}[ /-]{1,2}\d{3,12}(?:[ -]\d{1,12}){0,4}"
    r")(?![\w-])"
)

_SEPARATOR = r"(?:[ .-]{1,3}|_)"
"""Separator between groups; ``_folded`` maps similar characters to one of these."""
_DIGITS = regex(r"\d+")
_SIGN = regex(r"[@\d]")
"""In ASCII, each of them has one."""
# A search for a digit is fast, one that looks back at each place is not.
_ROW = regex(rf"\d(?<![^\W_]\d)(?<!\+\d)\d*(?:{_SEPARATOR}\d+)*(?![^\W_])")
_MAX_CARD: Final = 19
_ISSUERS: Final = tuple(
    (regex(begins), frozenset(lengths))
    for begins, lengths in (
        (r"4", (13, 16, 19)),  # Visa
        (r"5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720", (16,)),  # Mastercard
        (r"3[47]", (15,)),  # American Express
        (r"30[0-59]|36|3[89]", (14, 16, 19)),  # Diners Club
        (r"35(?:2[89]|[3-8])", range(16, 20)),  # JCB
        (r"60|62|64[4-9]|65", range(16, 20)),  # Discover, UnionPay, RuPay
        (r"220[0-4]", range(16, 20)),  # Mir
        (r"5[06-8]|63|67", range(13, 20)),  # Maestro
    )
)
"""Prefixes and lengths of payment card numbers, from the ranges that issuers publish (ISO/IEC 7812-1)."""

_IBAN_START = regex(rf"(?<![^\W_])([A-Za-z]{{2}}){_SEPARATOR}?\d{_SEPARATOR}?\d(?={_SEPARATOR}?[A-Za-z0-9])")
_IBAN_LETTER = regex(rf"{_SEPARATOR}?([A-Za-z0-9])")
_IBAN_LENGTHS: Final = {
    country: int(length)
    for length, countries in {
        "15": "NO",
        "16": "BE",
        "18": "DK FI FK FO GL NL SD",
        "19": "MK SI",
        "20": "AT BA EE KZ LT LU MN XK",
        "21": "CH HR LI LV",
        "22": "BG BH CR DE GB GE IE ME RS VA",
        "23": "AE GI IL IQ OM SO TL",
        "24": "AD CZ ES MD PK RO SA SE SK TN VG",
        "25": "LY PT ST",
        "26": "IS TR",
        "27": "BI DJ FR GR IT MC MR SM",
        "28": "AL AZ BY CY DO GT HN HU LB NI PL SV",
        "29": "BR EG PS QA UA",
        "30": "JO KW MU YE",
        "31": "MT SC",
        "32": "LC",
        "33": "RU",
    }.items()
    for country in countries.split()
}
"""Length by country, as SWIFT registers it under ISO 13616-1."""


def without_personal(text: str) -> str:
    """Return the text with each piece of personal data replaced by a word such as ``[e-mail]``."""
    if text.isascii() and _SIGN.search(text) is None:  # as most texts
        return text
    text = _EMAIL.sub("[e-mail]", text) if "@" in text else text
    text = _replaced(text, _accounts, "[account]")
    text = _replaced(text, _cards, "[card]")
    return _PHONE.sub("[telephone]", text)


Impersonal = Annotated[str, AfterValidator(without_personal)]
"""Words of people and agents that are stored with a decision and exported with it."""


def _replaced(text: str, find: Callable[[str], Iterator[Span]], word: str) -> str:
    parts, place = list[str](), 0
    for start, end in find(_folded(text)):
        parts += (text[place:start], word)
        place = end
    return "".join((*parts, text[place:])) if parts else text


def _folded(text: str) -> str:
    """The text at its original length, with digits and letters of other scripts and widths as ASCII, and a blank or a
    hyphen for similar characters between groups."""
    if text.isascii():  # the common case: apart from the tab, every ASCII character stands for itself
        return text.replace("\t", " ")
    return text.translate({ord(letter): _fold(letter) for letter in set(text)})


def _fold(letter: str) -> str:
    if letter.isdecimal():
        return str(unicodedata.decimal(letter))
    category = unicodedata.category(letter)
    if letter == "\t" or category in ("Zs", "Cf"):  # blanks of any width, and characters without width
        return " "
    if category == "Pd" or letter == "\N{MINUS SIGN}":
        return "-"
    plain = unicodedata.normalize("NFKC", letter)
    return plain if len(plain) == 1 else letter


def _cards(text: str) -> Iterator[Span]:
    """Spans of payment card numbers: a whole row of digit groups, or part of a row that is grouped like a card
    number."""
    for row in _ROW.finditer(text):
        groups = [match.span() for match in _DIGITS.finditer(text, *row.span())]
        first = 0
        while first < len(groups):
            last = _card_from(text, groups, first)
            if last is not None:
                yield groups[first][0], groups[last][1]
            first = first + 1 if last is None else last + 1


def _card_from(text: str, groups: list[Span], first: int) -> int | None:
    """The last group of the card number that starts with that group; None if none does."""
    start = groups[first][0]
    reach = groups[first : first + _MAX_CARD]
    lengths = _card_lengths("".join(text[slice(*group)] for group in reach[:4])[:4])
    if not lengths or (first > 0 and text[start - 1] == "."):  # of a fraction
        return None
    end, number, sizes = None, "", list[int]()
    for last, group in enumerate(reach, first):
        number, sizes = number + text[slice(*group)], [*sizes, group[1] - group[0]]
        if len(number) > _MAX_CARD:
            break
        whole = (first, last) == (0, len(groups) - 1)
        fraction_follows = last + 1 < len(groups) and text[group[1]] == "."
        if len(number) in lengths and (whole or _grouped_as_a_card(sizes)) and not fraction_follows and _checks(number):
            end = last
    return end


def _grouped_as_a_card(sizes: list[int]) -> bool:
    """True if group sizes look intended: equal except for the last one, or 4-6-rest."""
    equal = len(set(sizes[:-1])) <= 1 and sizes[-1] <= sizes[0]
    return equal or (len(sizes) == 3 and sizes[:2] == [4, 6])


@lru_cache(maxsize=1_000)
def _card_lengths(beginning: str) -> frozenset[int]:
    """Possible lengths of card numbers that start with these four digits."""
    return frozenset().union(*(lengths for begins, lengths in _ISSUERS if begins.match(beginning)))


def _checks(number: str) -> bool:
    """Check by the Luhn algorithm (ISO/IEC 7812-1, annex B)."""
    digits = [int(letter) for letter in number]
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _accounts(text: str) -> Iterator[Span]:
    """Spans of IBANs."""
    place = 0
    while (begun := _IBAN_START.search(text, place)) is not None:
        place = begun.end(1)
        length = _IBAN_LENGTHS.get(begun[1].upper())
        if length is None:
            continue
        number, end = "", begun.start()
        while len(number) < length and (letter := _IBAN_LETTER.match(text, end)) is not None:
            number, end = number + letter[1], letter.end()
        if len(number) == length and not text[end : end + 1].isalnum() and _is_iban(number):
            yield begun.start(), end
            place = end


def _is_iban(number: str) -> bool:
    """Check by the check digits (ISO 13616-1: modulo 97 of ISO/IEC 7064)."""
    return int("".join(str(int(letter, 36)) for letter in number[4:] + number[:4])) % 97 == 1
