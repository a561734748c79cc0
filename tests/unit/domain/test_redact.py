"""Secrets are found wherever they stand, and however the text is cut."""

import base64
import itertools
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from claudomator_py.domain.redaction import _TOKENS, MARK, Redactor

VALUE = 'pa"ss wörd/with\\everything'
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow/IBAAK+CAQEA\nabcd==\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r"
SHAPES = [
    "sk-ant-api03-abcdefghijklmnop",
    "sk-proj-ABCDEFGHIJKLMNOPQRST",
    "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "github_pat_11ABCDEFG0abcdefghijklm",
    "xoxb-123456789012-abcdefghijkl",
    "AKIAIOSFODNN7EXAMPLE",
    "cmt_Zk3Jx0vQ9yq3nWQ1cT8mB2rL6pS4dF7hG5aE",
    "cmr_5c1f1f0e-3e0b-5d8e-9a51-0b7f4a0f2c11_9f86d081884c7d659a2feaa0c55ad015",
    JWT,
    PEM,
    PEM.replace("\n", "\\n"),
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXkt\nand it was never finished",
]


@pytest.mark.parametrize("secret", SHAPES)
@pytest.mark.parametrize(
    "around", ["key {} end!", '{{"key":"{}"}}', "KEY={}\n", "a\\n{}", "{}", "({})", "url?key={}&b"]
)
def test_what_looks_like_a_secret_is_taken_out(secret: str, around: str) -> None:
    shown = Redactor().redact(around.format(secret))
    assert MARK in shown
    assert secret not in shown
    assert secret[15:] not in shown


@given(
    st.lists(
        st.sampled_from([*SHAPES[:9], "sk-", "\\n", "n", "\\", "_", "task-", " ", "\u0130", "BEARER ", "a1" * 10]),
        max_size=5,
    )
)
def test_a_key_is_found_wherever_the_whole_pattern_finds_one(parts: list[str]) -> None:
    """What tells at little cost that there is none is never wrong about that."""
    text = "".join(parts)
    assert Redactor().finds(text) == (_TOKENS.search(text) is not None)


def test_the_word_before_a_bearer_token_stays() -> None:
    assert Redactor().redact("Authorization: Bearer abc.def-ghi_123\n") == f"Authorization: Bearer {MARK}\n"
    assert Redactor().redact('{"authorization":"bearer abcdefgh12"}') == f'{{"authorization":"bearer {MARK}"}}'


def test_a_key_that_follows_what_announces_a_token_is_taken_out_whole() -> None:
    assert Redactor().redact(f"Bearer {PEM} end") == f"Bearer {MARK} end"


@pytest.mark.parametrize(
    "text",
    [
        "task-force risk-averse",
        "the bearer of news",
        "sk-short",
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZI\n-----END PUBLIC KEY-----",
        "eyJ.no.jwt",
        "commit 3a5c0b6de7c1d5f438a0f2f1f5f9d7e02aa11bb2",
        "",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert Redactor(["hunter22"]).redact(text) == text


@pytest.mark.parametrize("written", [VALUE, json.dumps(VALUE)[1:-1], quote(VALUE, safe="")])
def test_a_known_value_is_found_as_it_is_and_as_json_or_a_url_writes_it(written: str) -> None:
    assert Redactor([VALUE]).redact(f"a{written}b") == f"a{MARK}b"


@pytest.mark.parametrize("before", ["", "a", "ab", "user:"])
@pytest.mark.parametrize("after", ["", "z", "\n", ":x"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_known_value_is_found_in_base64_wherever_it_begins(
    before: str, after: str, encode: Callable[[bytes], bytes]
) -> None:
    value = "pass?>word~~8"
    written = encode(f"{before}{value}{after}".encode()).decode()
    shown = Redactor([value]).redact(f"Basic {written} end")
    assert MARK in shown
    assert all(written[start : start + 8] not in shown for start in range(4, len(written) - 12))


def test_a_known_value_is_found_as_a_page_writes_it() -> None:
    assert Redactor(["a<b>&c\"d'e"]).redact("<p>a&lt;b&gt;&amp;c&#34;d&#39;e</p>") == f"<p>{MARK}</p>"


@pytest.mark.parametrize("url", ["https://me:{}@host/repo.git", "postgresql://u:{}@h:5432/db", "redis://:{}@h"])
def test_the_password_of_a_url_is_a_secret_that_nobody_has_to_know(url: str) -> None:
    assert Redactor().redact(f"fatal: '{url.format('s3cr?t')}' is gone") == f"fatal: '{url.format(MARK)}' is gone"


def test_each_long_line_of_a_known_value_is_a_secret() -> None:
    assert Redactor(["first-line-of-it-all\nsecond-line-of-it-all"]).redact("> second-line-of-it-all") == f"> {MARK}"


def test_a_value_that_is_too_short_to_be_one_is_left_alone() -> None:
    assert Redactor(["1", "true", "", "  "]).redact("1 true 1") == "1 true 1"


def test_a_value_that_contains_another_is_taken_out_whole() -> None:
    redactor = Redactor(["abcdefgh", "abcdefghijkl", "xabcdefgh"])
    assert redactor.redact("abcdefghijkl abcdefgh xabcdefghijkl") == f"{MARK} {MARK} {MARK}"


pieces = ["sk-", "Bearer ", "eyJabcdefghi", "-----BEGIN ", "https://", "://a:b@", "://me:hunter", "hunter2"]
words = st.sampled_from([*SHAPES, *pieces, VALUE, "hunter22 two", " ", "\n", "\\n", ".", ":", "@"])
texts = st.lists(words | st.text("ab-_. \n=\\:/", max_size=4), max_size=8).map("".join)


@given(text=texts, cuts=st.lists(st.integers(0, 400), max_size=6))
@example(text="x hunter22 two y", cuts=[5, 9, 12])
@example(text=f"a\\n{SHAPES[0]} b", cuts=[2, 3, 4, 10])
@example(text=f"{JWT} and {PEM}.", cuts=[3, 30, 60, 90, 150, 200])
@example(text=f"Bearer {PEM}", cuts=[18])
@example(text=f"Bearer {SHAPES[3]}{PEM}", cuts=[])
@example(text=f"Bearer {SHAPES[6]}Bearer ", cuts=[])
def test_a_secret_is_found_in_whatever_parts_it_comes(text: str, cuts: list[int]) -> None:
    redactor = Redactor(["hunter22 two", VALUE])
    shown, held = "", ""
    for start, end in itertools.pairwise(sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})):
        held += text[start:end]
        safe_length = redactor.safe_length(held)
        shown, held = shown + redactor.redact(held[:safe_length]), held[safe_length:]
    assert shown + redactor.redact(held) == redactor.redact(text)


@pytest.mark.parametrize("text", ["plain words ", "line\n", "Continue? [y/N] ", "....", "100%"])
def test_text_that_begins_no_secret_is_not_held_back(text: str) -> None:
    assert Redactor(["hunter22 two"]).safe_length(text) == len(text)


def test_what_is_held_back_has_an_end() -> None:
    assert Redactor().safe_length("x" * 100_000) == 100_000
    assert Redactor().safe_length("-----BEGIN PRIVATE KEY-----" + "A" * 100_000) == 100_027


@pytest.mark.parametrize(
    "piece", ["eyJ", "eyJa.", "-----BEGIN PRIVATE KEY-----", "Bearer ", "sk-", "-----BEGIN A PRIVATE KEY----- !"]
)
def test_hostile_text_takes_no_long_time(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    redactor = Redactor(["hunter22 two"])
    redactor.redact(text)
    redactor.safe_length(text)
