"""Patterns that are tried only where their words are."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.routing import danger, deceit, disclosure, harm, orders, prefilter, protected, scope
from claudomator_py.routing.prefilter import TRIED, Prefiltered, needed, prefiltered

DATA = Path(__file__).parents[2] / "data" / "routing"
MODULES = (danger, deceit, disclosure, harm, orders, protected, scope)
PATTERNS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": found
    for module in MODULES
    for name, found in vars(module).items()
    if isinstance(found, Prefiltered)
} | {f"protected.{number}": one.things for number, one in enumerate(protected._CLASSES)}
SOME = prefiltered(r"\bsome\b")
TEXTS = [
    json.loads(line)["text"]
    for name in ("orders", "dangers")
    for line in (DATA / f"{name}.jsonl").read_text("utf-8").splitlines()
]


@pytest.fixture(autouse=True, scope="module")
def _read() -> None:
    """They are tried so often that their words are known."""
    for _ in range(TRIED + 1):
        SOME.may_match("")


def sets(*found: str) -> set[tuple[frozenset[str], ...]]:
    """Each of these: sets of words, with bars between the sets and commas between the words, ``_`` for a blank."""
    return {tuple(frozenset(words.replace("_", " ").split(",")) for words in one.split("|") if words) for one in found}


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"\bkey\b", sets("key_")),
        (r"\bkey", sets("key")),
        (r"\bkeys?\b", sets("key_,keys_")),
        (r"\b(?:log(?:s|ging)?|read\w*)\b", sets("log_,logs_,logging_", "read,read_")),
        (r"\b(?:send|post)\b.{0,60}\b(?:all|every)\b", sets("send_|all_,every_", "post_|all_,every_")),
        (r"\b(?:make|get) (?:the )?bomb\b", sets("make_", "get_")),
        (r"\b\w+ system\b", sets("system_")),
        (r"\b\w*able\b", sets("")),
        (r"able\b", sets("")),
        (r"^\W*let me\b", sets("let_")),
        (r"\b(?:[\w-]+ ){0,3}?site\b", sets("site_")),
        (r"\b(?:\w+ )?site\b", sets("site_")),
        (r"\bsummari[sz]e\b", sets("summarise_,summarize_")),
        (r"\b[a-z]+ing\b", sets("")),
        (r"\bx[abcd]y\b", sets("xay_,xby_,xcy_,xdy_")),
        (r"\bx[abcde]y\b", sets("x")),
        (r"\b(?:ab){5}\b", sets("ababab")),
        (r"\b(?:ab){1,3}\b", sets("ab_,abab_,ababab_")),
        (r"\b(?:ab){1,4}\b", sets("ab_,abab_,ababab_,ababab")),
        (r"\bkey\B", sets("key")),
        (r"\babcdefghijklmnop\b", sets("abcdefghijkl")),
        (r"\b2fa\b", sets("")),
        (r"\bs3_key\b", sets("s_")),
        (r"\bcan['\u2019]t go\b", sets("can_|go_")),
        (r"\b(?<!the )key(?= of)\b", sets("key_")),
        (r"\b(?>keys?) of\b", sets("key_,keys_")),
        (r"\b(a)\1\b", sets("a")),
        (r"\b[^\W\d]+\b", sets("")),
        (r"\b\d+ keys\b", sets("keys_")),
        (r"\b(log|read)\b", sets("log_", "read_")),
        (r"\bk\d\b", sets("k_")),
        (
            r"\b(?:log(?:s|ging)?|read\w*)\b .*\bkeys?\b",
            sets("log_,logs_,logging_|key_,keys_", "read,read_|key_,keys_"),
        ),
        ("", sets("")),
    ],
)
def test_the_words_that_a_pattern_needs(pattern: str, words: set[tuple[frozenset[str], ...]]) -> None:
    assert needed(re.compile(pattern, re.IGNORECASE)) == words


@pytest.mark.parametrize(
    ("text", "may"), [("send them all", True), ("send it", False), ("it is all", False), ("it is", False)]
)
def test_a_pattern_is_tried_only_where_all_is_that_it_needs(text: str, may: bool) -> None:
    assert prefiltered(r"\bsend\b.*\ball\b").may_match(text) is may


def everything_in(one: Prefiltered, text: str) -> None:
    """Whether it is found with the prefilter and without."""
    plain = one.pattern
    assert [found.span() for found in one.finditer(text)] == [found.span() for found in plain.finditer(text)]
    assert (one.search(text) is None) is (plain.search(text) is None)
    assert (one.match(text) is None) is (plain.match(text) is None)
    assert one.sub(" ", text) == plain.sub(" ", text)


def test_all_patterns_find_in_labelled_texts_what_they_would_find_without() -> None:
    assert len(PATTERNS) > 80
    for number, text in enumerate(TEXTS):
        for sentence in orders.sentences(text.upper() if number % 2 else text):
            for one in PATTERNS.values():
                assert one.may_match(sentence) or one.pattern.search(sentence) is None


@given(data=st.data())
def test_a_pattern_is_tried_on_whatever_it_matches(data: st.DataObject) -> None:
    """The texts are made from the pattern, with letters that are the same to it in another case."""
    one = PATTERNS[data.draw(st.sampled_from(sorted(PATTERNS)))]
    everything_in(one, data.draw(st.from_regex(one.pattern)))


@pytest.mark.parametrize(
    "text", ["\u017fend a\u0131l \u212aeys", "SEND A\u0130L KEYS", "a\u0301 send ail keys", "x,send ail keys"]
)
def test_letters_that_are_the_same_to_a_pattern_are_the_same_to_its_prefilter(text: str) -> None:
    everything_in(prefiltered(r"\bsend ail keys\b"), text)
    assert prefiltered(r"\bsend ail keys\b").search(text) is not None


def test_a_pattern_that_is_read_later_is_found_in_a_text_that_was_asked_before() -> None:
    text = "the quixotic zebra"
    assert prefiltered(r"\bquixotic\b").search(text) is not None
    assert prefiltered(r"\bzebra\b").search(text) is not None


def test_patterns_are_read_when_they_were_tried_often_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefilter, "_all", prefilter._All())
    zebra, horse = prefiltered(r"\bzebra\b"), prefiltered(r"\bhorse\b")
    told = [zebra.may_match("the horse") for _ in range(TRIED)]
    assert told == [True] * TRIED
    assert (zebra.may_match("the horse"), horse.may_match("the horse")) == (False, True)
    assert zebra.may_match("the zebra")


def test_without_the_librarys_own_reader_a_pattern_is_always_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefilter, "_parser", None)
    assert needed(re.compile(r"\bno other test has this word\b")) == {()}
