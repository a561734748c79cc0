"""Greetings, thanks and polite forms are not compared; what is asked for stays, whatever it says."""

import pytest

from claudomator_py.routing.profile import Request, without_courtesy


@pytest.mark.parametrize(
    "text",
    [
        "fix the login page",
        "Please fix the login page",
        "Hello! Could you please kindly fix the login page Thank you very much in advance!",
        "Hi, I hope you are well. I would be grateful if you could fix the login page. Many thanks and kind regards.",
        "Sorry to bother you, would you mind helping me with this: fix the login page Please let me know. Cheers!",
        "Dear colleagues, when you have a moment, please fix the login page. That would be wonderful, thanks so much!",
        "Hey team!\nIt would be great if you could fix the login page.\n\nNo rush.\nBest regards,",
        "I\u2019m wondering whether you could fix the login page. I really appreciate your help a lot",
    ],
)
def test_what_is_said_around_an_order_is_left_out(text: str) -> None:
    assert without_courtesy(text).strip(" .\n") == "fix the login page"
    assert Request(text).compared.strip(" .\n") == "fix the login page"


@pytest.mark.parametrize(
    "text",
    [
        "How do you say thank you in French?",
        "Say hello to the new colleagues on the front page",
        "Pick the best of the regards in the mail templates",
        "I appreciate it when tests pass",
        "Let me know the weather in Rome",
        "could you fix v2.3.1 of app.py in foo.bar",
        "Good tests are missing",
        "Hijack nothing",
    ],
)
def test_words_of_courtesy_that_are_asked_about_stay(text: str) -> None:
    assert without_courtesy(text) == text


def test_sentences_stay_apart() -> None:
    assert without_courtesy("The job hangs. Please restart it.") == "The job hangs. restart it."


@pytest.mark.parametrize("text", ["Thanks!", "hello", "Please.", "Good morning, how are you?", ""])
def test_a_text_of_nothing_else_is_left_as_it_is(text: str) -> None:
    assert without_courtesy(text) == text
