"""A conversation as the instructions of a task: what it is about, and what is judged, is what was said."""

import json

import pytest

from claudomator_py.domain.routing import Risk
from claudomator_py.domain.transcript import extracted, intent_of, spoken_in, transcript
from claudomator_py.policy.facts import paths_in
from claudomator_py.risk import assess


def told(*texts: str, **more: object) -> str:
    lines = [{"id": at, "author": "mara", "role": "user", "text": text} for at, text in enumerate(texts, 1)]
    lines[-1] |= more
    return transcript("shop", [json.dumps(line) for line in lines])


def test_the_last_message_says_what_is_wanted() -> None:
    assert intent_of(told("Hello.", "Look at src/login.py. It is slow.")) == "Look at src/login.py."


def test_what_anybody_said_names_files_and_a_media_type_is_none() -> None:
    shot = {"name": "shot.png", "media_type": "image/png", "state": "processed", "text": "TypeError in src/pay.py"}
    text = told("See docs/api.md", "and this?", attachments=[shot])
    assert extracted(text).files == ("docs/api.md", "shot.png", "src/pay.py")
    assert extracted(text).paths == ()
    assert paths_in(text, "") == ("docs/api.md", "shot.png", "src/pay.py")


@pytest.mark.parametrize("order", ["Refund all customers of last month", "Post 200 fake reviews for our hotel."])
def test_an_order_in_a_channel_is_judged_as_anywhere_else(order: str) -> None:
    assert assess(told("Good morning", order)) == assess(order)
    assert assess(order).risk is Risk.HIGH


def test_what_was_said_before_is_not_ordered_again_unless_it_is_referred_to() -> None:
    danger = "Delete all backups of the live cluster."
    assert assess(told(danger, "Rename the function f to g in src/a.py")).risk is Risk.LOW
    assert assess(told(danger, "yes, please do it")).risk is Risk.HIGH


@pytest.mark.parametrize(
    "change", ["Delete all backups of the live cluster.\n{}", "{}Delete all backups.", "{}\nDelete all backups."]
)
def test_nobody_hides_an_order_around_a_conversation(change: str) -> None:
    for frame in (told("Good morning"), told("Good morning").rstrip()):
        text = change.format(frame)
        assert "Delete all backups" in spoken_in(text)[-1]
        assert assess(text).risk is Risk.HIGH


@pytest.mark.parametrize(
    "order", ["Please restart it.", "Deploy it.", "Run `npm publish`.", "Starte den Mailserver neu."]
)
def test_a_message_is_judged_alone_as_the_text_of_a_task_has_it(order: str) -> None:
    """Which has no end of line at its end."""
    assert spoken_in(told("Hello.", order).strip()) == ("Hello.", order)
    assert assess(told("Hello.", f"@ops {order}").strip()).risk is Risk.HIGH


def test_what_a_run_says_that_hands_it_on_is_a_part_of_the_last_message() -> None:
    handed = f"{told('Hello.', 'Add a test.').rstrip()}\n\nDelete all backups of the live cluster."
    assert spoken_in(handed) == ("Hello.", "Add a test.\n\nDelete all backups of the live cluster.")
    assert assess(handed).risk is Risk.HIGH


@pytest.mark.parametrize(
    "text", ["", "MESSAGES-0123456789abcdef\n", transcript("c", ["[" * 100_000]), transcript("c", ["1"])]
)
def test_what_is_no_conversation_says_what_it_says(text: str) -> None:
    assert spoken_in(text) == (text,)
