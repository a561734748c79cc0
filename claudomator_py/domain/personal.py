"""Data of persons taken out of text: e-mail addresses, numbers of payment cards, bank accounts and telephones.

By shape and check digits, so that what is only a long number stays. Secrets are the business of ``redaction.py``.
"""

import re

_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w-])")
_CARD = re.compile(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-]|\.\d)")
_IBAN = re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}(?!\w)")
_PHONE = re.compile(
    r"(?<![\w+./-])(?:"
    r"\+\d(?:[ ()/.-]{0,2}\d){7,14}"
    r"|\(\d{3}\) ?\d{3}[ .-]\d{4}|\d{3}[ .-]\d{3}[ .-]\d{4}"
    r"|0\d{2,5}[ /-]{1,2}\d{3,12}(?:[ -]\d{1,12}){0,4}"
    r")(?![\w-])"
)


def without_personal(text: str) -> str:
    """The text with a word for each of them in its place, such as ``[e-mail]``."""
    text = _EMAIL.sub("[e-mail]", text)
    text = _IBAN.sub(lambda found: "[account]" if _is_iban(found[0]) else found[0], text)
    text = _CARD.sub(lambda found: "[card]" if _is_card(found[0]) else found[0], text)
    return _PHONE.sub("[telephone]", text)


def _is_card(number: str) -> bool:
    """By the Luhn algorithm (ISO/IEC 7812-1, annex B)."""
    digits = [int(letter) for letter in number if letter.isdigit()]
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return any(digits) and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_iban(number: str) -> bool:
    """By its check digits (ISO 13616-1: modulo 97 of ISO/IEC 7064)."""
    compact = number.replace(" ", "")
    return int("".join(str(int(letter, 36)) for letter in compact[4:] + compact[:4])) % 97 == 1
