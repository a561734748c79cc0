"""``init --systemd``: the unit of a service, and what it never does."""

import os
import subprocess
from pathlib import Path

import pytest

from claudomator_py.cli.units import Manager, unit
from claudomator_py.schema.configfile import load_config
from tests.fakes.command import Command


def test_the_service_of_a_user(offline: Command) -> None:
    done = offline("init", "--systemd", "user")
    assert done.returncode == 0, done.stderr
    config, written = (Path(line) for line in done.stdout.splitlines())
    assert config == offline.home / ".config/claudomator/claudomator.yaml"
    assert written == offline.home / ".config/systemd/user/claudomator.service"
    assert f" serve --config {config}\n" in written.read_text()
    settings = load_config(config, {"HOME": str(offline.home)}).settings
    assert settings.inbox.paths == (str(offline.home / "claudomator-tasks"),)
    for command in ("systemctl --user daemon-reload", "systemctl --user enable --now claudomator", "enable-linger"):
        assert command in done.stderr


def test_files_that_agents_make_are_as_open_as_the_user_has_it(offline: Command) -> None:
    offline("init", "--systemd", "user")
    text = (offline.home / ".config/systemd/user/claudomator.service").read_text()
    assert not [line for line in text.splitlines() if line.startswith("UMask")]


def test_the_service_of_a_folder(offline: Command) -> None:
    done = offline("init", "here", "--systemd", "user")
    assert [Path(line).name for line in done.stdout.splitlines()] == [
        "claudomator.yaml",
        "hello.yaml",
        "claudomator.service",
    ]
    text = (offline.home / ".config/systemd/user/claudomator.service").read_text()
    assert f"--config {offline.home / 'here/claudomator.yaml'}\n" in text


def test_the_service_of_the_machine(offline: Command) -> None:
    done = offline("init", "--systemd", "system", "--root", "image", "--drop-in", "drain", "--drop-in", "strict")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "image/etc/claudomator/claudomator.yaml",
        "image/etc/systemd/system/claudomator.service",
        "image/etc/systemd/system/claudomator.service.d/drain.conf",
        "image/etc/systemd/system/claudomator.service.d/strict.conf",
    ]
    text = (offline.home / "image/etc/systemd/system/claudomator.service").read_text()
    assert " serve --config /etc/claudomator/claudomator.yaml\n" in text
    settings = load_config(offline.home / "image/etc/claudomator/claudomator.yaml").settings
    assert settings.state_dir == "/var/lib/claudomator/state"


def test_a_unit_that_is_different_is_left_alone(offline: Command) -> None:
    offline("init", "--systemd", "user")
    path = offline.home / ".config/systemd/user/claudomator.service"
    made = path.read_text()
    again = offline("init", "--systemd", "user")
    assert (again.returncode, path.read_text()) == (0, made)
    path.write_text(made + "# mine\n")
    refused = offline("init", "--systemd", "user", "--drop-in", "drain")
    assert (refused.returncode, "--force" in refused.stderr) == (1, True)
    assert "`systemctl --user edit claudomator`" in refused.stderr
    assert path.read_text() == made + "# mine\n"
    assert not path.with_name("claudomator.service.d").exists(), "nothing was written"
    forced = offline("init", "--systemd", "user", "--force")
    assert (forced.returncode, path.read_text()) == (0, made)


def test_an_existing_configuration_is_kept(offline: Command) -> None:
    path = offline.home / ".config/claudomator/claudomator.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("# mine\n")
    assert offline("init", "--systemd", "user").returncode == 0
    assert path.read_text() == "# mine\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--root", "x"), 2),
        (("--force",), 2),
        (("--drop-in", "drain"), 2),
        (("--systemd", "user", "--drop-in", "strict"), 1),
        (("--systemd", "system", "--root", "x", "--drop-in", "confined"), 1),
        (("--systemd", "cluster"), 2),
        (("line\nend", "--systemd", "user"), 1),
    ],
)
def test_what_makes_no_sense_is_refused(offline: Command, arguments: tuple[str, ...], code: int) -> None:
    assert offline("init", *arguments).returncode == code
    assert not (offline.home / ".config/systemd").exists()


def test_odd_paths_are_quoted_as_systemd_reads_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", '/usr/bin:relative:/a "b" 100%:/usr/bin')
    written = unit(Manager.USER, tmp_path, Path('/with space/100%/"$HOME"/c.yaml'))
    assert ' serve --config "/with space/100%%/\\"$$HOME\\"/c.yaml"\n' in written.content
    assert 'Environment="PATH=/usr/bin:/a \\"b\\" 100%%"\n' in written.content


def test_the_command_in_the_unit_runs_from_anywhere(offline: Command, tmp_path: Path) -> None:
    offline("init", "--systemd", "user")
    text = (offline.home / ".config/systemd/user/claudomator.service").read_text()
    line = next(line for line in text.splitlines() if line.startswith("ExecStart="))
    program = line.removeprefix("ExecStart=").partition(" serve ")[0].split()
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run([*program, "--version"], cwd="/", env=environ, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("claudomator ")
