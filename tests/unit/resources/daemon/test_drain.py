"""/v1/drain and /v1/undrain."""

from tests.fakes.daemon import Daemon
from tests.fakes.prepared import PreparedService


def test_drain_and_undrain(daemon: Daemon, prepared: PreparedService) -> None:
    assert daemon.ask("GET", "/v1/drain").json() == {"drained": False, "since": None, "reason": None, "running": 0}
    drained = daemon.ask("POST", "/v1/drain", json_body={"reason": "a new disk"})
    assert (drained.status, drained.json()["drained"], drained.json()["reason"]) == (200, True, "a new disk")
    assert daemon.ask("POST", "/v1/drain").json() == drained.json()
    assert prepared.world.daemon.drain_state().drained
    assert daemon.ask("POST", "/v1/undrain").json()["drained"] is False


def test_a_wrong_body_drains_nothing(daemon: Daemon, prepared: PreparedService) -> None:
    for body in ({"why": "a typo"}, {"reason": 5}, {"reason": "x" * 2_001}):
        answer = daemon.ask("POST", "/v1/drain", json_body=body)
        assert (answer.status, answer.json()["code"]) == (422, "invalid")
    assert daemon.ask("POST", "/v1/drain", body=b"reason=x").status == 415
    assert daemon.ask("GET", "/v1/drain", headers={"Authorization": None}).status == 401
    assert not prepared.world.daemon.drain_state().drained
