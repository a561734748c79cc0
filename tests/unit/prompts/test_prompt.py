"""What an agent reads: the task, or, in a conversation that goes on, only what is new to it."""

import pytest

from claudomator_py.domain.card import Card
from claudomator_py.prompts import (
    HOW_TO_ASK,
    HOW_TO_END_EARLY,
    as_command,
    as_text,
    compose,
    compose_further,
    compose_next,
    role_of,
)
from tests.fakes.steps import spec

GO_ON = "Continue the task where you left off. "


def test_a_fresh_conversation_is_told_the_task_and_what_to_hand_back() -> None:
    text = compose(spec("t", instructions="Dig.\n", expected_output=" a hole \n"))
    assert text == "Dig.\n\nHand back: a hole\n"


def test_a_model_is_told_how_to_end_and_a_program_is_not() -> None:
    dig = spec("t", instructions="Dig.")
    assert compose(dig) == "Dig.\n"
    assert compose(dig, converses=True) == f"Dig.\n\n{HOW_TO_END_EARLY}\n"
    assert compose(dig, converses=True, may_ask=True) == f"Dig.\n\n{HOW_TO_ASK}\n\n{HOW_TO_END_EARLY}\n"


@pytest.mark.parametrize("text", ["/login page redirects twice.", "\n /init"])
def test_a_heading_stands_before_a_text_that_begins_with_a_slash(text: str) -> None:
    slash = spec("t", instructions=text)
    for message in (as_text(compose(slash)), as_text(compose_next(slash)), as_text(compose_next(slash, again=True))):
        assert f"This is the task:\n\n{text}\n" in message
        assert message.count("This is the task:") == 1
        assert not message.lstrip().startswith("/")


def test_a_text_without_a_slash_gets_no_heading() -> None:
    assert as_text(compose(spec("t", instructions="Dig."))) == "Dig.\n"


def test_a_command_stands_alone() -> None:
    assert as_command(spec("t", instructions="/dig deep\n\n", expected_output="a hole")) == "/dig deep\n"


def test_one_that_replaces_a_lost_one_is_told_what_the_operator_said_to_that() -> None:
    assert compose(spec("t", instructions="Dig."), "Deeper. ") == "Dig.\n\nThe operator adds:\n\nDeeper.\n"


def test_one_that_goes_on_is_not_told_the_task_again() -> None:
    dig = spec("t", instructions="Dig.")
    text = compose_further(dig, dig)
    assert text.startswith(GO_ON)
    assert text.count("\n") == 1
    assert "Dig" not in text


def test_it_is_told_what_changed_and_what_the_operator_adds() -> None:
    dig = spec("t", instructions="Dig.")
    for now in (spec("t", instructions="Fill."), spec("t", instructions="Dig.", expected_output="a hole")):
        text = compose_further(now, dig, "Hurry.")
        assert text.startswith(GO_ON)
        assert text.endswith(f"The task has changed since then. It now reads:\n\n{compose(now, 'Hurry.')}")


def test_what_the_agent_does_not_read_is_no_change() -> None:
    dig = spec("t", instructions="Dig.")
    assert compose_further(spec("t", instructions="Dig.", timeout="5m"), dig, " \n") == compose_further(dig, dig)


def test_a_specialist_is_told_its_role_before_the_task() -> None:
    card = Card.model_validate(
        {
            "id": "digger",
            "name": "Digger",
            "description": "Digs.",
            "system_prompt": "You dig.",
            "skills": [{"id": "deep", "name": "Deep holes", "description": "Five metres."}],
        }
    )
    dig = spec("t", instructions="Dig.")

    preface = "The task below says what to do, and this role how to do it. Where the two differ, do what the task says."
    role = f"# Your role: Digger\n\n{preface}\n\nYou dig.\n\n{{}}# Your task\n\nDig.\n"
    assert compose(dig, role=role_of(card, None, None)) == role.format("")
    assert compose(dig, role=role_of(card, "deep", "acme")) == role.format(
        "You are asked for: Deep holes. Five metres.\n\n"
    )
    assert compose(dig, role=role_of(card.model_copy(update={"system_prompt": ""}), None, None)) == "Dig.\n"
