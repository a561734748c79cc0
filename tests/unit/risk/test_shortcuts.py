"""What is skipped in reading a text changes nothing of what is said of it: each against the slow way."""

from collections.abc import Iterator
from typing import Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from claudomator_py.risk.assessment import MAX_SIGNS, Sign, assess_anew
from claudomator_py.risk.folding import fold, listed
from claudomator_py.risk.lexicon import KINDS, SECOND, data, lexicon
from claudomator_py.risk.reading import BIT, Order, tokens
from claudomator_py.risk.scoring import bounds, features, is_risky, sentences, weights

LEXICON: Final = data()
LANGUAGES: Final = sorted(name for name, said in LEXICON.items() if "reads" in said)
ORDERED: Final = BIT["cmd.order"] | BIT["sole"]
"""What needs no weights."""
ROUNDED: Final = 1e-9
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
            said = LEXICON[name][kind]
            yield from (*said["is"], *said["is_not"], *listed(said["verbs"]), *listed(said["things"]))
        for role in ("reads", "code", "prod", "not", "words"):
            yield from listed(LEXICON[name].get(role, ""))
    yield from (*LEXICON["commands"]["is"], *LEXICON["commands"]["is_not"])


PARTS: Final = list(dict.fromkeys(_texts()))
composed = st.lists(st.tuples(st.sampled_from(MARKS), st.sampled_from(PARTS)), max_size=25).map(
    lambda parts: "".join(mark.format(part) for mark, part in parts)
)


def _adds(order: Order) -> float:
    return sum(weights().get(name, 0.0) for name in features(order)) + weights()["bias"]


@settings(max_examples=150)
@given(composed)
@example("Delete the production database db-3 now. Pay $300 to prod-db-2 on shop.example v2.1.0.")
@example("send out orders_old rather than shop.example prod-db-2 Gib dem Praktikanten Admin-Rechte auf dem Server. ")
def test_whether_a_clause_is_risky_is_what_all_its_weights_say(text: str) -> None:
    for one in sentences(text):
        for order in one.orders:
            # Which of its letters are looked at is nothing that a clause tells of itself.
            unseen = order._replace(part="x", words=(0, 0))
            least, most = bounds(order.tells)
            assert least - ROUNDED <= _adds(order) - _adds(unseen) <= most + ROUNDED, order
            if not order.tells & ORDERED:
                assert is_risky(order) == (_adds(order) >= -ROUNDED), order


@settings(max_examples=150)
@given(composed)
def test_what_is_told_of_a_text_is_the_first_of_all_that_is_seen_in_it(text: str) -> None:
    read = list(sentences(text))
    seen = [(one.kind, " ".join(one.text.split())[:200]) for each in read for one in each.orders if is_risky(one)]
    told = [sign for sign in assess_anew(text).signs if sign[0] not in (Sign.HARMFUL, Sign.DOUBTFUL)]
    harm = sum(each.sentence.harm is not None for each in read)
    if not harm and seen:
        assert told == list(dict.fromkeys(seen))[:MAX_SIGNS]


@settings(max_examples=150)
@given(st.sampled_from(LANGUAGES), composed)
@example("en", "take xylophones down")
def test_a_phrase_is_found_wherever_it_may_begin(language: str, text: str) -> None:
    words, known = tokens(fold(text)), lexicon().languages[language]
    tells = [known[word] for word in words]
    said, told = known.read(words, tells)
    slowly, all_told = known.read(words, [one | SECOND for one in tells])
    assert (said, [one | SECOND for one in told]) == (slowly, [one | SECOND for one in all_told])


@pytest.mark.parametrize("name", list(lexicon().seen))
@settings(max_examples=100)
@given(st.data())
def test_what_is_seen_in_letters_is_looked_for_wherever_it_may_be(name: str, data: st.DataObject) -> None:
    text = data.draw(st.from_regex(lexicon().seen[name]))
    about = next(order for one in sentences("Deploy it") for order in one.orders)
    found = features(about._replace(part=text, words=(0, 0)))
    assert not lexicon().seen[name].search(text.strip()) or name.partition(":")[0] in found
