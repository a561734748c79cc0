"""What is said of a text that says nothing, or of which hardly a word is known."""

import pytest

from claudomator_py.domain.routing import Assessment, Risk, Sign
from claudomator_py.risk import assess
from claudomator_py.risk.lexicon import data

LEXICON = data()


@pytest.mark.parametrize(
    "text",
    [
        "\u00dcretim veritaban\u0131ndaki eski yedekleri sil.",
        "S\u1eeda l\u1ed7i hi\u1ec3n th\u1ecb tr\u00ean trang \u0111\u0103ng nh\u1eadp.",
        "\u0394\u03b9\u03cc\u03c1\u03b8\u03c9\u03c3\u03b5 \u03c4\u03b1 \u03bb\u03ac\u03b8\u03b7.",
        "\u0627\u062d\u0630\u0641 \u062c\u0645\u064a\u0639 \u0627\u0644\u0646\u0633\u062e.",
        "Slet de gamle sikkerhedskopier fra serveren.",
        "Corectează greșelile de pe pagina principală.",
        "Hapus semua cadangan lama di server produksi.",
    ],
)
def test_a_text_of_which_hardly_a_word_is_known_is_not_read(text: str) -> None:
    assessment = assess(text)
    assert assessment.risk is Risk.MEDIUM
    assert assessment.unread
    assert assessment.words


@pytest.mark.parametrize(
    "text",
    [
        "Die Schriftart auf der Startseite ist zu klein.",
        "Ajoute un test pour le module de paiement.",
        "Añade una prueba para el módulo de facturas.",
        "Acrescente um teste ao módulo de faturas.",
        "Aggiungi un test per il modulo delle fatture.",
        "De knop op de startpagina staat scheef.",
        "Napraw test, który nie przechodzi na nowej wersji.",
        "Исправь опечатки в тексте.",
        "首页的按钮颜色不对,请修复。",
        "トップページのボタンの色を修正してください。",
        "첫 페이지의 버튼 색을 수정해 주세요.",
    ],
)
def test_a_text_in_a_language_of_the_lexicon_is_read(text: str) -> None:
    assert assess(text) == Assessment(Risk.LOW)


@pytest.mark.parametrize("text", ["Bump axios", "fix: off by one in pager", "Dark mode"])
def test_a_short_text_is_read(text: str) -> None:
    assert assess(text).risk is Risk.LOW


@pytest.mark.parametrize("text", LEXICON["vague"]["is"])
def test_what_says_nothing(text: str) -> None:
    assert assess(text).vague


@pytest.mark.parametrize("text", LEXICON["vague"]["is_not"])
def test_what_says_little_and_enough(text: str) -> None:
    assert not assess(text).vague


@pytest.mark.parametrize(("words", "vague"), [(30, True), (31, False)])
def test_who_says_much_of_nothing_is_given_the_benefit_of_the_doubt(words: int, vague: bool) -> None:
    assert assess(" ".join(["thing"] * words)).vague is vague


def test_what_was_seen_is_told_by_sign_and_of_harm_in_all_its_words() -> None:
    live, harm, vague = (Sign.LIVE, "drop it in prod"), (Sign.HARMFUL, "secretly"), (Sign.VAGUE, "fix it")
    both = Assessment(Risk.HIGH, (live, harm, live))
    assert (both.harmful, both.vague, both.words) == (True, False, "drop it in prod; secretly")
    assert (both.seen(Sign.HARMFUL), both.seen(Sign.MONEY)) == ("secretly", None)
    assert not Assessment(Risk.HIGH, (live,)).harmful
    nothing = Assessment(Risk.LOW, (vague,))
    assert (nothing.vague, nothing.words, nothing.seen(Sign.VAGUE)) == (True, "", "fix it")
