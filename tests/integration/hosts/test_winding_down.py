"""A run that has had its last word and stays: the daemon says so, and the shim ends it, with no daemon there."""

import sys
from pathlib import Path

import pytest

from claudomator_py.domain.run import WindDown
from claudomator_py.hosts.local.directory import RunDirectory
from tests.integration.hosts.rig import COMPUTES, LIMITS, Rig, Shim, ended
from tests.patience import wait_until

LAST_WORD = "done\n"
STAYS = "echo done; exec sleep 60"
BUSY = f"exec {sys.executable} -I -S -c 'while True: pass'"


def begun(rig: Rig, script: str) -> tuple[Path, Shim]:
    path = rig.prepare(("sh", "-c", script), limits=LIMITS)
    shim = rig.shim(path)
    shim.output(LAST_WORD)
    return path, shim


def asked(path: Path, *, after_ms: int, idle: bool = False, stdout: int = len(LAST_WORD)) -> None:
    RunDirectory(path).wind_down(WindDown(stdout, after_ms, idle))


def test_a_program_that_stays_is_ended(rig: Rig) -> None:
    path, shim = begun(rig, STAYS)
    asked(path, after_ms=100)
    shim.wait()
    assert (ended(path).exit.exit_code, ended(path).exit.ended_by) == (-15, "wind_down")


def test_one_that_exits_by_then_has_ended_by_itself(rig: Rig) -> None:
    path, shim = begun(rig, "echo done; sleep .3; exit 0")
    asked(path, after_ms=60_000)
    shim.wait()
    assert (ended(path).exit.exit_code, ended(path).exit.ended_by) == (0, None)


@pytest.mark.parametrize("more", ["echo '{}'", "echo more; echo '[{}]'", "printf '{'", "seq 20000"])
def test_what_may_be_an_event_makes_the_request_void(rig: Rig, more: str) -> None:
    path, shim = begun(rig, f"echo done; sleep .2; {more}; sleep 1; exit 0")
    asked(path, after_ms=500)
    shim.wait()
    assert (ended(path).exit.exit_code, ended(path).exit.ended_by) == (0, None)


@pytest.mark.parametrize("line", ["log line", "50 % ...", "", "[info] still here"])
def test_a_program_that_goes_on_chattering_is_ended(rig: Rig, line: str) -> None:
    path, shim = begun(rig, f"echo done; while :; do sleep .1; echo '{line}'; done")
    asked(path, after_ms=500)
    shim.wait()
    assert ended(path).exit.ended_by == "wind_down"


def test_what_was_asked_for_last_counts(rig: Rig) -> None:
    path, shim = begun(rig, STAYS)
    asked(path, after_ms=60_000)
    asked(path, after_ms=100, stdout=3)
    asked(path, after_ms=100)
    shim.wait()
    assert ended(path).exit.ended_by == "wind_down"


def test_a_server_that_nobody_uses_is_ended(rig: Rig) -> None:
    path, shim = begun(rig, "sleep 1000 & echo done; wait")
    asked(path, after_ms=400, idle=True)
    shim.wait()
    assert ended(path).exit.ended_by == "wind_down"


def test_a_build_in_the_background_that_computes_is_not_cut(rig: Rig) -> None:
    path, shim = begun(rig, f'{sys.executable} -I -S -c "{COMPUTES}" & echo done; wait')
    asked(path, after_ms=900, idle=True)
    shim.wait()
    assert (ended(path).exit.exit_code, ended(path).exit.ended_by) == (0, None)


def test_a_program_that_spins_after_its_last_word_is_ended(rig: Rig) -> None:
    path, shim = begun(rig, f"echo done; {BUSY}")
    asked(path, after_ms=200)
    shim.wait()
    assert ended(path).exit.ended_by == "wind_down"


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"stdout": "5", "after_ms": 1, "idle": false}', "\0"])
def test_what_is_no_request_is_none(rig: Rig, text: str) -> None:
    path, shim = begun(rig, "echo done; sleep .6")
    (path / "wind-down.json").write_text(text)
    shim.wait()
    assert (ended(path).exit.exit_code, ended(path).exit.ended_by) == (0, None)


def test_a_shim_that_takes_over_keeps_to_it(rig: Rig) -> None:
    path, shim = begun(rig, STAYS)
    wait_until((path / "agent.json").exists)
    shim.process.kill()
    shim.wait()
    asked(path, after_ms=300)
    rig.shim(path).wait()
    assert (ended(path).exit.exit_code, ended(path).exit.ended_by) == (None, "wind_down")


def test_a_timeout_holds_as_ever(rig: Rig) -> None:
    path = rig.prepare(("sh", "-c", STAYS), limits=LIMITS.__class__(600, None, 300, 1 << 20))
    shim = rig.shim(path)
    shim.output(LAST_WORD)
    asked(path, after_ms=60_000)
    shim.wait()
    assert ended(path).exit.ended_by == "timeout"
