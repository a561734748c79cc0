"""The last line by which a run hands its task on."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from claudomator_py.domain.handoff import HANDOFF_MARKER, parse_handoff, without_request
from claudomator_py.domain.outcome import HandoffRequest

LINE = f'{HANDOFF_MARKER} {{"to": "ben"}}'


@pytest.mark.parametrize("text", [LINE, f"done.\n\n{LINE}\n \n", f"```\ncode\n```\n{LINE}", f"~~~\n```\n~~~\n{LINE}"])
def test_it_is_the_last_line(text: str) -> None:
    assert parse_handoff(text) == HandoffRequest(to="ben")


@pytest.mark.parametrize(
    "text",
    ["", "done", f"{LINE}\ndone", f"> {LINE}", f"    {LINE}", f"```\n{LINE}", f"```\n{LINE}\n```", f"so: {LINE}"],
)
def test_elsewhere_it_means_nothing(text: str) -> None:
    assert parse_handoff(text) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [(LINE, None), (f" \n{LINE}", None), (f"done.\n\n{LINE}\n", "done."), (f"{LINE}\nno\n{LINE}", f"{LINE}\nno")],
)
def test_a_message_says_what_stands_before_its_request(text: str, message: str | None) -> None:
    assert without_request(text) == message


@pytest.mark.parametrize("text", ["ben", "{}", '{"to": ""}', '{"to": "b", "tier": "powerful"}', '{"to": ["b"]}', ""])
def test_what_cannot_be_read_is_an_error(text: str) -> None:
    with pytest.raises(ValidationError):
        parse_handoff(f"{HANDOFF_MARKER} {text}")


@given(st.text(max_size=200), st.text(max_size=50), st.text(min_size=1, max_size=50))
def test_whatever_an_agent_says_can_be_stored(before: str, left: str, to: str) -> None:
    handoff_request = parse_handoff(f"{before}\n{HANDOFF_MARKER} {json.dumps({'to': to, 'left': left})}")
    if handoff_request is not None:
        handoff_request.model_dump_json().encode()
        assert "\0" not in handoff_request.left
