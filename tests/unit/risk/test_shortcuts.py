"""What is skipped in reading a text changes nothing of what is said of it: each against the slow way."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from claudomator_py.domain.routing import Sign
from claudomator_py.risk import MAX_SIGNS, MAX_TEXT, assess_anew
from claudomator_py.risk.harm import harm_in
from claudomator_py.risk.lexicon import KINDS, data
from claudomator_py.risk.orders import is_risky, orders, sentences
from claudomator_py.texts import cut_line, listed

LEXICON: Final = data()
LANGUAGES: Final = sorted(name for name, text in LEXICON.items() if "reads" in text)
MARKS: Final = [
    *(
        "{}. ",
        "{}, ",
        "{} and ",
        "{}\n",
        "- {}\n",
        "`{}` ",
        "({}) ",
        '"{}" ',
        "{}: ",
        "> {}\n",
        "don't {} ",
        "a {} ",
        "{} ",
    ),
    *("prod-db-2 {} ", "{} $300 ", "{} orders_old ", "{} shop.example ", "{} v2.1.0 ", "the live {} "),
]


def _texts() -> Iterator[str]:
    for name in LANGUAGES:
        for kind in KINDS:
            text = LEXICON[name][kind]
            yield from (*text["is"], *text["is_not"], *listed(text["verbs"]), *listed(text["things"]))
        for role in ("reads", "code", "prod", "not", "words"):
            yield from listed(LEXICON[name].get(role, ""))
    yield from (*LEXICON["commands"]["is"], *LEXICON["commands"]["is_not"])


PARTS: Final = list(dict.fromkeys(_texts()))
composed = st.lists(st.tuples(st.sampled_from(MARKS), st.sampled_from(PARTS)), max_size=25).map(
    lambda parts: "".join(mark.format(part) for mark, part in parts)
)


@settings(max_examples=150)
@given(composed)
@example("Delete the production database db-3 now. Pay $300 to prod-db-2 on shop.example v2.1.0.")
@example("send out orders_old rather than shop.example prod-db-2 Gib dem Praktikanten Admin-Rechte auf dem Server. ")
def test_a_sentence_without_words_that_act_orders_nothing(text: str) -> None:
    for sentence in sentences(text):
        acting = [replace(word, acts=True) for word in sentence.words]
        slow = orders(sentence._replace(words=acting))
        assert [order.features for order in orders(sentence)] == [order.features for order in slow]


@settings(max_examples=150)
@given(composed)
def test_what_is_told_of_a_text_is_the_first_of_all_that_is_seen_in_it(text: str) -> None:
    read = list(sentences(text))
    given = [order for sentence in read if not sentence.pasted for order in orders(sentence)]
    risky = [order for order in given if is_risky(order.features)]
    seen = [(entry.kind, cut_line(entry.text, MAX_TEXT)) for entry in risky]
    messages = [sign for sign in assess_anew(text).signs if sign[0] not in (Sign.HARMFUL, Sign.DOUBTFUL)]
    harm = any(harm_in(sentence.text, [word.keys for word in sentence.words]) for sentence in read)
    if not harm and seen:
        assert messages == list(dict.fromkeys(seen))[:MAX_SIGNS]


@settings(max_examples=150)
@given(composed)
@example("Roześlij newsletter.")
@example("Envia newsletter.")
@example("Keep `read_header()`.")
def test_a_sentence_without_words_of_another_language_is_english(text: str) -> None:
    read = [(sentence.language, sentence.words) for sentence in sentences(text)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("claudomator_py.risk.orders._is_foreign", lambda word: True)
        assert [(sentence.language, sentence.words) for sentence in sentences(text)] == read
