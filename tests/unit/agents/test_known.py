"""What was found of agents' programs is known at the next start, as long as it is still true by all that is seen."""

import os
import stat
from pathlib import Path

import pytest

from claudomator_py.agents import programs
from claudomator_py.agents.programs import KnownHealth, probe
from claudomator_py.domain.agent import AgentHealth, AgentSpec

PATH = "/usr/bin:/bin"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    program = tmp_path / "codex"
    program.write_text("#!/bin/sh\necho 1.0\n")
    return program


@pytest.fixture
def agent(program: Path) -> AgentSpec:
    return AgentSpec(name="codex", kind="codex", command=(str(program),))


def kept(tmp_path: Path, agent: AgentSpec, health: AgentHealth) -> KnownHealth:
    known = KnownHealth(tmp_path / "agents.json", PATH)
    known.keep([agent], {agent.name: health})
    return known


def able(program: Path) -> AgentHealth:
    return AgentHealth(installed=True, program=str(program), version="1.0")


def test_a_program_that_is_as_it_was_is_known(tmp_path: Path, program: Path, agent: AgentSpec) -> None:
    known = kept(tmp_path, agent, able(program))
    other = agent.model_copy(update={"name": "other"})
    assert known.recall([agent, other]) == {"codex": able(program)}
    assert KnownHealth(tmp_path / "agents.json", PATH).recall([agent]) == {"codex": able(program)}


def test_one_that_has_changed_is_not(tmp_path: Path, program: Path, agent: AgentSpec) -> None:
    known = kept(tmp_path, agent, able(program))
    program.write_text("#!/bin/sh\necho 1.0.1\n")
    assert known.recall([agent]) == {}
    program.unlink()
    assert known.recall([agent]) == {}


def test_nor_is_another_command_kind_or_path(tmp_path: Path, program: Path, agent: AgentSpec) -> None:
    known = kept(tmp_path, agent, able(program))
    for change in ({"command": ("other",)}, {"kind": "gemini"}):
        assert known.recall([agent.model_copy(update=change)]) == {}
    assert KnownHealth(tmp_path / "agents.json", "/elsewhere").recall([agent]) == {}


def test_what_could_not_run_is_looked_at_again(tmp_path: Path, program: Path, agent: AgentSpec) -> None:
    broken = able(program).model_copy(update={"problem": "it exited with 1"})
    assert kept(tmp_path, agent, broken).recall([agent]) == {}
    assert kept(tmp_path, agent, AgentHealth(installed=True)).recall([agent]) == {}


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[1]", b'{"path": "/usr/bin:/bin", "programs": {"codex": 1}}', b"\xff"]
)
def test_a_file_that_cannot_be_read_is_nothing_known(tmp_path: Path, agent: AgentSpec, content: bytes) -> None:
    (tmp_path / "agents.json").write_bytes(content)
    assert KnownHealth(tmp_path / "agents.json", PATH).recall([agent]) == {}


def test_the_file_is_private_under_any_umask(tmp_path: Path, program: Path, agent: AgentSpec) -> None:
    (tmp_path / "agents.json").touch(mode=0o644)
    former = os.umask(0)
    try:
        kept(tmp_path, agent, able(program))
    finally:
        os.umask(former)
    assert stat.S_IMODE((tmp_path / "agents.json").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.glob("*agents*")] == ["agents.json"]


@pytest.mark.parametrize(
    ("printed", "version"),
    [("GitHub Copilot CLI 1.0.102.", "1.0.102"), ("v2.0-rc.1+7", "2.0-rc.1+7"), ("codex-cli 0.171.0 (x)", "0.171.0")],
)
def test_a_version_is_no_more_than_that(program: Path, printed: str, version: str) -> None:
    program.write_text(f"#!/bin/sh\necho '{printed}'\n")
    program.chmod(0o700)
    assert probe((str(program),), PATH, "install it").version == version


def test_a_program_that_does_not_answer_is_there(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "PATIENCE_S", 0.1)
    program.write_text("#!/bin/sh\nexec sleep 9\n")
    program.chmod(0o700)
    health = probe((str(program),), PATH, "install it")
    assert health.installed
    assert health.problem == f"{program} --version did not answer within 0.1 s; it is asked again every few minutes"


def test_a_program_that_cannot_be_started_says_why(program: Path) -> None:
    program.write_text("#!/no/such/shell\n")
    program.chmod(0o700)
    health = probe((str(program),), PATH, "install it")
    assert health.problem == f"{program} could not be started: No such file or directory; install it"
