"""What happened, as people read it: in words, without what only programs need."""

import pytest

from claudomator_py.resources.events import event_detail, event_title


@pytest.mark.parametrize(
    ("kind", "data", "text"),
    [
        ("state", {"state": "RUNNING", "phase": "starting", "event": "Started"}, "Starting"),
        ("state", {"state": "NEEDS_INPUT"}, "Needs input"),
        ("restart_requested", {}, "Restart requested"),
        ("of_a_later_version", {}, "Of a later version"),
    ],
)
def test_titles(kind: str, data: dict[str, object], text: str) -> None:
    assert event_title(kind, data) == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"event": "Retrying", "generation": 1, "attempt": 1, "until": 1795788659207, "reason": "backoff"}, "backoff"),
        ({"generation": 3, "attempt": 2, "agent": "codex"}, "after restart 2, attempt 2, agent codex"),
        ({"note_of": "0e95b395-4ba4-5fc8-9944-d0b8c0ba6495"}, "note of 0e95b395"),
        ({"restart": {"agent": "codex", "tier": "fast"}, "holds": [], "by": "ann"}, "restart agent codex, tier fast"),
        ({"restart": {"revision": 2, "force": False, "resume": True, "model": None}}, "restart resume"),
        ({"restart": {"revision": 1, "force": False, "resume": False}, "reason": "ready"}, "ready"),
        ({"specialist": "writer", "risk": "low", "constraints": '{"agents":["a"]}'}, "specialist writer, risk low"),
        ({"agent": "codex", "bucket": "codex", "provenance": "operator"}, "agent codex, operator"),
        ({"agent": "codex", "bucket": "openai", "provenance": "reported"}, "agent codex, held openai, reported"),
        ({"base": "9369e9e12d08e95bd0d19670a09fafa5394954fe"}, "base 9369e9e12d"),
        ({"base": "9369e9e12d08e95bd0d19670a09fafa5" * 2, "of": "9369e9e1"}, "base 9369e9e12d, of 9369e9e1"),
        ({"restart": {"note_of": "0e95b395-4ba4-5fc8-9944-d0b8c0ba6495"}}, "restart note_of 0e95b395"),
        ({"constraints": '{"default_reach":"network","role_adds":true}'}, ""),
    ],
)
def test_details_have_no_whole_ids_and_no_milliseconds(data: dict[str, object], text: str) -> None:
    assert event_detail(data) == text
