"""What a person, a shell or a CI has set reaches no test."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests import environment

REPOSITORY = Path(__file__).parents[2]
# Stands alone, and shows what a program finds that is started then.
SHOWN = """
import json, os, subprocess, sys
from tests.environment import stand_alone
place = stand_alone()
place.base.mkdir()
shown = "import json, os, time; print(json.dumps([dict(os.environ), time.tzname, os.umask(0)]))"
environ, zone, umask = json.loads(subprocess.check_output([sys.executable, "-c", shown]))
json.dump([environ, zone, umask, str(place.base)], sys.stdout)
place.remove()
"""
SET = {
    "CI": "true",
    "GIT_CONFIG_COUNT": "x",
    "HOME": "/missing",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "LC_ALL": "C",
    "PYTHONWARNINGS": "error",
    "TZ": "Asia/Kathmandu",
    "XDG_CONFIG_HOME": "/missing",
}


@pytest.mark.parametrize("deep", [False, True], ids=["a short TMPDIR", "a long one"])
def test_of_the_environment_only_path_is_left(tmp_path: Path, deep: bool) -> None:
    folder = tmp_path / ("deep" * 50 if deep else "")
    folder.mkdir(exist_ok=True)
    given = {**SET, "PATH": os.environ["PATH"], "TMPDIR": str(folder)}
    command = ["sh", "-c", 'umask 077; exec "$@"', "sh", sys.executable, "-c", SHOWN]
    shown = subprocess.run(command, cwd=REPOSITORY, env=given, capture_output=True, text=True, check=True).stdout
    environ, zone, umask, base = json.loads(shown)
    place = str(Path(base).parent)
    assert environ.pop("LC_CTYPE", "C.UTF-8") == "C.UTF-8", "Python itself sets it"
    assert environ == {
        "HOME": f"{place}/home",
        "LANG": "C.UTF-8",
        "PATH": given["PATH"],
        "TMPDIR": place,
        "TZ": "UTC",
        "XDG_RUNTIME_DIR": f"{place}/run",
    }
    assert (zone, umask) == (["UTC", "UTC"], 0o022)
    assert len(base) < 60
    assert not Path(place).exists()


def test_it_is_the_environment_of_this_test() -> None:
    # As this process began: a command that a test calls in it may set variables for numpy.
    began = Path("/proc/self/environ").read_text().split("\0")
    names = {entry.partition("=")[0] for entry in began if entry and not entry.startswith("PYTEST_")}
    names -= {"CLAUDOMATOR_CHAOS_SEED", "LC_CTYPE"}
    assert names == {"HOME", "LANG", "PATH", "TMPDIR", "TZ", "XDG_RUNTIME_DIR"}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, "memory"),
        ({"TMPDIR": "/"}, "disk"),
        ({"_MIN_FREE_BYTES": 1 << 60}, "disk"),
        ({"_MIN_MEMORY_BYTES": 1 << 60}, "disk"),
        ({"_IN_MEMORY": "/missing"}, "disk"),
    ],
)
def test_a_run_is_in_memory_where_there_is_room_and_nobody_has_named_a_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, changed: dict[str, str | int], expected: str
) -> None:
    (tmp_path / "memory").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "disk"))  # what Python has found
    known = {"_IN_MEMORY": str(tmp_path / "memory"), "_MIN_FREE_BYTES": 0, "_MIN_MEMORY_BYTES": 0}
    for name, value in {**known, "_MAX_PARENT_BYTES": 1_000, **changed}.items():
        if name.startswith("_"):
            monkeypatch.setattr(environment, name, value)
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(name, str(changed.get(name, "")))
    assert environment._parent() == str(tmp_path / expected)


@pytest.mark.parametrize(("is_worker", "made"), [(True, 1), (False, 2)])
def test_what_workers_need_is_made_once_a_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_worker: bool, made: int
) -> None:
    if is_worker:
        monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    else:
        monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    calls: list[dict[str, list[int]]] = []

    def make() -> dict[str, list[int]]:
        calls.append({"a": [1]})
        return calls[-1]

    assert [environment.made_once("made.json", make) for _ in range(2)] == [{"a": [1]}] * 2
    assert len(calls) == made


def test_what_could_not_be_made_is_made_by_the_next_worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ZeroDivisionError):
        environment.made_once("made.json", lambda: 1 // 0)
    assert environment.made_once("made.json", lambda: "made") == "made"
