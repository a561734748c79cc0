"""An agent that hangs or dies at any step of the protocol: real processes, the client's clock made faster."""

import io
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from claudomator_py.agents.acp_client import TurnOrder
from claudomator_py.agents.acp_client.main import ending
from claudomator_py.agents.acp_client.peer import Message, Peer
from claudomator_py.agents.acp_client.session import CANCEL_S, AcpSession
from claudomator_py.agents.client_output import End, Output
from tests.fakes import acp

FASTER = 100.0
AGENT = Path(acp.__file__)
MODES = {"modes": {"currentModeId": "auto", "availableModes": [{"id": "auto"}, {"id": "ask"}]}}
OPTIONS = {
    "configOptions": [
        {"id": "mode", "currentValue": "auto", "options": [{"value": "auto"}, {"value": "ask"}]},
        {"id": "model", "currentValue": "a", "options": [{"value": "a"}, {"value": "b"}]},
    ]
}
LOADS = {"initialized": {"agentCapabilities": {"loadSession": True}}}
STEPS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "initialize": ({}, {}),
    "session/new": ({}, {}),
    "session/resume": ({}, {"session": "s-1"}),
    "session/load": (LOADS, {"session": "s-1"}),
    "session/set_mode": ({"session": MODES}, {}),
    "session/set_config_option": ({"session": OPTIONS}, {"model": "b"}),
    "session/prompt": ({}, {}),
}


class Hurried(Peer):
    """An agent's process, of which answers are waited for a hundredth of the time."""

    def receive(self, wait_s: float) -> Message | None:
        return super().receive(wait_s / FASTER)


def came(place: Path, step: str, fault: str) -> End:
    """How a run ends whose agent has that fault at that step."""
    script, order = STEPS[step]
    (place / "script.json").write_text(json.dumps({**script, "faults": {step: fault}}))
    command = (sys.executable, "-I", "-S", str(AGENT), str(place / "script.json"), str(place / "heard"))
    peer = Hurried(command)
    try:
        session = AcpSession(
            peer,
            TurnOrder(command, silence_s=300.0, **order),
            "Do it.",
            Output(io.BytesIO()),
            clock=lambda: time.monotonic() * FASTER,
        )
        return ending(session, peer)
    finally:
        peer.end(0.1, 0.5)


@pytest.mark.parametrize("step", STEPS)
def test_a_hang_at_a_step_ends(tmp_path: Path, step: str) -> None:
    began = time.monotonic()
    end = came(tmp_path, step, "hang")
    assert (time.monotonic() - began) * FASTER > CANCEL_S
    if step == "session/prompt":
        assert end.outcome == "silent"
        assert "session/cancel" in (tmp_path / "heard").read_text()
    else:
        assert end.outcome == "no_answer"
        assert step in (end.error or "")
        assert "session/prompt" not in (tmp_path / "heard").read_text()


@pytest.mark.parametrize("step", STEPS)
def test_a_death_at_a_step_is_told(tmp_path: Path, step: str) -> None:
    end = came(tmp_path, step, "die")
    assert (end.outcome, end.fields["exit_code"]) == ("gone", 7)
