"""What a task's text names, without data of persons and secrets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.domain.handoff import MAX_INTENT_LENGTH
from claudomator_py.domain.redaction import Redactor
from claudomator_py.domain.transcript import extracted, intent_of

TEXT = """# Fix the **login** in `src/app/login.py`. It redirects twice!

See https://jane:pw@example.com/a/b?token=1#x, ABC-12 and #77. Run `npm run test` in ./web/ and edit Makefile,
/etc/nginx and e.g. this/that.

    $ make test
"""


def test_what_it_wants_is_its_first_sentence_without_decoration() -> None:
    assert intent_of(TEXT) == "Fix the login in `src/app/login.py`."
    assert intent_of("\n---\n\n1. do   it") == "do it"
    assert intent_of("---") == ""
    assert intent_of(f"{'-' * 3_000}\n\n Do it. {'Then stop. ' * 500}") == "Do it."
    account = "DE89 3704 0044 0532 0130 00"
    assert all("3704" not in intent_of(f"Pay {'to ' * number}{account}") for number in range(0, 400, 3))
    assert len(intent_of("word " * 1_000)) == MAX_INTENT_LENGTH


@pytest.mark.parametrize(
    "text",
    [
        "Rename user_id to account_id in src/my_module/__init__.py",
        "Delete *.log, *.tmp and **/build/** but keep *cache* and src/**/*.py",
        "Pass *args and **kwargs on to __call__ and _cache_",
        "Compute 2**3 and a * b * c with char **argv and int *p",
        "Replace `rm -rf *.o` by `find . -name *.o` in the Makefile",
        "Take `__a__ ** b` out of ``x`y`` and of `$(date)`",
        "Copy everything from . and .. to /tmp/x_y_z",
        "Rename is_valid? to valid? and save! to save in user.rb",
    ],
)
def test_names_paths_and_patterns_stay_as_they_are(text: str) -> None:
    assert intent_of(text) == text
    assert intent_of(f"* {text}. Then stop.") == f"{text}."


_WORD = st.from_regex(r"[a-z]{1,8}", fullmatch=True)
_IDENTIFIER = st.from_regex(r"_{0,2}[A-Za-z]{1,6}(?:_{1,2}[A-Za-z0-9]{1,6}){0,3}_{0,2}", fullmatch=True)
_PART = st.one_of(_IDENTIFIER, st.just("**"), st.from_regex(r"\*?[a-z_]{1,5}\*?\.(?:\*|[a-z_]{1,4})", fullmatch=True))
_PATTERN = st.lists(_PART, min_size=1, max_size=3).map("/".join)
_NAME = st.one_of(_IDENTIFIER, _PATTERN, _PATTERN.map(lambda path: f"`{path}`"))


@given(st.lists(st.tuples(_WORD, _NAME), min_size=1, max_size=4))
def test_any_identifier_path_or_pattern_survives(said: list[tuple[str, str]]) -> None:
    text = " ".join(f"{word} {name}" for word, name in said)
    assert intent_of(text) == (text if len(text) <= MAX_INTENT_LENGTH else f"{text[: MAX_INTENT_LENGTH - 3]}...")


@given(st.lists(_WORD, min_size=1, max_size=4).map(" ".join), _NAME)
def test_marks_of_bold_words_go(bold: str, name: str) -> None:
    assert intent_of(f"**{bold}** in {name} (**{bold}**)") == f"{bold} in {name} ({bold})"


def test_what_it_names() -> None:
    result = extracted(TEXT)
    assert result.files == ("src/app/login.py", "Makefile")
    assert result.paths == ("./web/", "/etc/nginx", "this/that")
    assert result.commands == ("npm run test", "make test")
    assert result.tickets == ("ABC-12", "#77")
    assert result.urls == ("https://example.com/a/b",)


def test_names_are_found_whatever_stands_around_them() -> None:
    result = extracted("(README),\tDockerfile.\u00a0LICENSE;a.c ..\n[/srv] x../y but no Mail, word., a@b.org or .")
    assert result.files == ("README", "Dockerfile", "LICENSE", "a.c")
    assert result.paths == ("/srv", "x../y")
    assert extracted("#1 (#5) TT-7, x#4 -AB-9 AB-10-1 aTT-2 T-6 TT-0").tickets == ("#1", "#5", "TT-7")


@pytest.mark.parametrize("cut", [1, 7, 8, 14])
def test_no_part_of_a_secret_is_extracted_where_a_long_text_is_cut(cut: int) -> None:
    text = "./a\n" * 25_000
    text = f"{text[: 100_000 - cut - 5]}/srv/hunter2-hunter2/a.py"
    assert "hunter" not in extracted(text, Redactor(["hunter2-hunter2"])).model_dump_json()
    assert "hunter" not in intent_of(text.replace("\n", " "), Redactor(["hunter2-hunter2"]))


def test_the_underscores_of_an_address_are_its_own() -> None:
    assert extracted("**https://example.org/x.__init__**, see").urls == ("https://example.org/x.__init__",)


def test_no_secret_and_no_person_is_extracted() -> None:
    text = "Read /home/jane@example.org/keys.txt and /srv/hunter2-hunter2/a.py, then `curl -H hunter2-hunter2 x`"
    result = extracted(text, Redactor(["hunter2-hunter2"])).model_dump_json()
    assert "hunter2" not in result
    assert "jane" not in result


@given(st.text(max_size=2_000))
def test_any_text_can_be_read_and_the_same_gives_the_same(text: str) -> None:
    assert extracted(text) == extracted(text)
    assert len(intent_of(text)) <= MAX_INTENT_LENGTH
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
    for text in (unit * 5_000, f"012-{unit * 5_000}a"):
        assert len(intent_of(text)) <= MAX_INTENT_LENGTH
        assert len(extracted(text).files) <= 20
