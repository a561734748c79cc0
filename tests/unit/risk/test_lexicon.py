"""The lexicon of risk: each entry is read as its examples say."""

import re
from collections.abc import Iterator, Mapping

import pytest

from claudomator_py.domain.routing import Risk, Sign
from claudomator_py.risk import assess
from claudomator_py.risk.lexicon import KINDS, SPACELESS, data
from claudomator_py.risk.orders import languages, orders, sentences
from claudomator_py.texts import listed

LEAST = 0.6
"""The share of its examples that are held, in each language."""
LEXICON = data()
LANGUAGES = {name: text for name, text in LEXICON.items() if "reads" in text}


def examples(name: str) -> Iterator[tuple[str, str, str]]:
    for language, message in LANGUAGES.items():
        for kind in KINDS:
            for text in message[kind][name]:
                yield language, kind, text


def test_each_language_has_each_class_with_examples_that_are_and_that_are_not() -> None:
    assert set(LANGUAGES) == {"en", "de", "fr", "es", "pt", "it", "nl", "pl", "ru", "zh", "ja", "ko"}
    assert set(LEXICON["classes"]) == set(KINDS) <= {sign.value for sign in Sign}
    for text in LANGUAGES.values():
        for kind in KINDS:
            assert all(text[kind][name] for name in ("verbs", "things", "is", "is_not"))


def lists(name: str) -> Iterator[tuple[str, list[str]]]:
    for part in (LANGUAGES[name], *(LANGUAGES[name][kind] for kind in KINDS)):
        yield from ((role, listed(text)) for role, text in part.items() if isinstance(text, str))


def stands_for(name: str, role: str, entry: str, other: str) -> bool:
    """Whether an entry of a list makes another one of it idle: its plural in English, what begins like it elsewhere."""
    if name == "en":
        forms = {f"{entry}s"} if " " in entry else {f"{entry}s", f"{entry}es", re.sub("y$", "ies", entry)}
        return role in ("things", "code", "outside") and other in forms
    is_stem = name not in SPACELESS and len(entry) > 3 and entry.isalpha()
    return is_stem and role in ("verbs", "things", "code") and other.startswith(entry) and other.isalpha()


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_entry_of_a_list_is_idle(language: str) -> None:
    for role, entries in lists(language):
        assert len(entries) == len(set(entries)), role
        idle = [
            (entry, other)
            for entry in entries
            for other in entries
            if entry != other and stands_for(language, role, entry, other)
        ]
        assert idle == [], role


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_strong_verb_is_a_verb_of_a_class(language: str) -> None:
    """A word that is only strong would hide the verb within it: "push force" was no order, though "push" is."""
    table = data()[language]
    verbs = {entry for kind in KINDS for role in ("verbs", "done") for entry in listed(table[kind].get(role, ""))}
    assert [entry for entry in listed(table.get("strong", "")) if entry.strip("$") not in verbs] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_most_examples_that_are_are_held_and_none_that_are_not(language: str) -> None:
    """What words of a class mean together is weighed, so not each of the examples is certain."""
    is_held = [assess(text).risk is Risk.HIGH for name, _, text in examples("is") if name == language]
    assert sum(is_held) / len(is_held) >= LEAST
    assert [text for name, _, text in examples("is_not") if name == language and assess(text).risk is Risk.HIGH] == []


@pytest.mark.parametrize(("language", "kind", "text"), list(examples("is")))
def test_the_verbs_of_each_class_are_found_in_its_examples(language: str, kind: str, text: str) -> None:
    assert any(kind in order.verbs for sentence in sentences(text) for order in orders(sentence))


@pytest.mark.parametrize(
    "text",
    [
        "Coupe l'accès de l'agence au VPN.",
        "Coupe l\u2019accès de l\u2019agence au VPN.",
        "Togli l'accesso all'utente Rossi.",
    ],
)
def test_an_article_that_is_written_together_with_a_noun_does_not_hide_it(text: str) -> None:
    assert assess(text).risk is Risk.HIGH


@pytest.mark.parametrize("text", LEXICON["commands"]["is"])
def test_what_has_a_command_run_that_acts_on_others_is_held(text: str) -> None:
    assert assess(text).risk is Risk.HIGH


@pytest.mark.parametrize("text", LEXICON["commands"]["is_not"])
def test_what_only_speaks_of_a_command_is_not(text: str) -> None:
    assert assess(text).risk is not Risk.HIGH


@pytest.mark.parametrize("entry", LEXICON["harm"], ids=lambda entry: entry["does"])
def test_what_asks_for_harm_is_refused_or_asked_about(entry: Mapping[str, object]) -> None:
    for text in list(entry["is"]):  # type: ignore[call-overload]
        assessment = assess(text)
        assert assessment.risk is Risk.HIGH, text
        assert assessment.harmful or not entry.get("refuse", True), text
    for text in list(entry["is_not"]):  # type: ignore[call-overload]
        assert not {sign for sign, _ in assess(text).signs} & {Sign.HARMFUL, Sign.DOUBTFUL}, text


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("Empty the shared drives now.", "shared drives"),
        ("Delete the merged branches on origin.", "merged branches"),
        # "kick off the build" is one as well, which here it does not become.
        ("Kick off the payout.", "Kick off"),
    ],
)
def test_a_phrase_is_one_word_in_the_plural_too_and_where_a_longer_one_ends(text: str, phrase: str) -> None:
    (sentence,) = sentences(text)
    assert phrase in [word.text for word in sentence.language.joined(sentence.words) if word.tags]


def test_what_is_quoted_in_many_words_only_names_something() -> None:
    words = languages()["en"].read('Keep "all old production backups" of pg-old-backup.')[1]
    assert [word.text for word in words if "number" in word.tags] == ['"all old production backups"']
