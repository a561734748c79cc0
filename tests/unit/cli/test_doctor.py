"""Finding out what keeps it from working: each finding with a verdict and a remedy."""

import json
import os
import re
import socket
import time
from pathlib import Path

import pytest

from claudomator_py.cli.doctor import Finding, Severity, daemon, folders, machine
from claudomator_py.cli.doctor.command import _all
from claudomator_py.cli.doctor.daemon import same_time
from claudomator_py.cli.units import Manager, unit
from claudomator_py.domain.host import SLURM_COMMANDS
from claudomator_py.schema.settings import Settings
from tests.fakes.command import Command
from tests.fakes.daemon import Daemon
from tests.fakes.prepared import PreparedService

Check = dict[str, str | None]


def _checks(command: Command, *arguments: str, **environ: str) -> dict[str, Check]:
    result = json.loads(command("doctor", "-o", "json", *arguments, **environ).stdout)
    return {check["name"]: check for check in result}


def _problems(checks: dict[str, Check]) -> list[str]:
    return [name for name, check in checks.items() if check["verdict"] == "problem"]


def _program(folder: Path, name: str) -> str:
    """A PATH with that program in front."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_where_all_is_well(command: Command, prepared: PreparedService) -> None:
    prepared.add_agent("claude")
    (command.home / ".claude").mkdir()
    (command.home / ".claude/.credentials.json").write_text("{}")
    done = command("doctor", HOME=str(command.home))
    assert done.returncode == 0
    checks = _checks(command, HOME=str(command.home))
    expected = {"configuration", "state folder", "disk space", "file system", "inbox", "daemon", "daemon: store"}
    expected |= {
        "daemon's clock",
        "daemon: drain",
        "agent claude",
        "login claude",
        "service",
        "git",
        "clock",
        "time server",
        "inotify",
    }
    assert set(checks) == expected | {"open files", "SQLite"}
    assert _problems(checks) == []
    assert "not verified against the service" in str(checks["login claude"]["detail"])


def test_every_finding_that_is_not_ok_has_a_remedy(offline: Command, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    done = offline("doctor", PATH=str(tmp_path / "bin"))
    assert done.returncode == 1
    for name in ("daemon", "agents", "git"):
        assert f"{name}: " in done.stderr
    checks = _checks(offline, PATH=str(tmp_path / "bin"))
    assert _problems(checks) == ["git"], "neither is wrong on a machine where it was never started"
    assert str(checks["agents"]["detail"]).startswith("no agent found on PATH: none of claude, gemini, ")
    assert str(checks["agents"]["detail"]).endswith(f" is in {tmp_path / 'bin'}")
    assert all(bool(check["remedy"]) == (check["verdict"] != "ok") for check in checks.values())


def test_the_daemon_is_asked_about_agents(command: Command, prepared: PreparedService) -> None:
    prepared.add_agent("codex", problem="codex is not on the daemon's PATH")
    prepared.ready = False
    checks = _checks(command)
    assert checks["agent codex"]["detail"] == "codex is not on the daemon's PATH"
    assert (checks["daemon"]["verdict"], checks["daemon: database"]["remedy"]) == (
        "problem",
        "Stop the other process.",
    )


def test_a_daemon_that_should_be_there_is_a_problem(offline: Command) -> None:
    (offline.home / "claudomator.yaml").write_text("state_dir: state\n")
    state = offline.home / "state"
    state.mkdir(mode=0o700)
    assert _checks(offline)["daemon"]["verdict"] == "warn"
    for name, content in {"endpoint": "http://127.0.0.1:9", "token": "t" * 32}.items():
        (state / name).touch(mode=0o600)
        (state / name).write_text(f"{content}\n")
    assert _checks(offline)["daemon"]["verdict"] == "problem"


def test_agents_are_found_on_the_path(offline: Command, tmp_path: Path) -> None:
    path = _program(tmp_path / "bin", "claude")
    assert _checks(offline, PATH=path)["agent claude"]["detail"] == str(tmp_path / "bin" / "claude")
    (tmp_path / "claudomator.yaml").write_text("agents: {lint: {kind: command, command: [no-such-program]}}\n")
    lint = _checks(offline, PATH=path)["agent lint"]
    assert (lint["verdict"], lint["detail"]) == ("problem", "no-such-program is not on PATH")


def test_a_cluster_without_folder_and_commands_and_one_that_does_not_answer(offline: Command, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    hosts = f"hosts: {{lab: {{kind: slurm, root: {shared}}}}}\n"
    (offline.home / "claudomator.yaml").write_text(hosts)
    checks = _checks(offline, PATH="/usr/bin:/bin")
    assert ", ".join(SLURM_COMMANDS) in str(checks["host lab: commands"]["detail"])
    assert str(checks["host lab: folder"]["detail"]) == f"{shared} does not exist"
    shared.mkdir()
    for name in SLURM_COMMANDS:
        _program(tmp_path / "bin", name)
    checks = _checks(offline, PATH=f"{tmp_path / 'bin'}:/usr/bin:/bin")
    assert checks["host lab: folder"]["verdict"] == "ok"
    assert checks["host lab: cluster"]["verdict"] == "problem"
    assert list(shared.iterdir()) == []


@pytest.mark.parametrize(
    ("listen", "kind", "mcp", "says"),
    [
        ("0.0.0.0:8484", "claude", "{}", "0.0.0.0:8484, which nodes find as the loopback address: "),
        ("'[::]:8484'", "claude", "{}", "[::]:8484, which nodes find as the loopback address: "),
        ("0:8484", "claude", "{}", "0:8484, which nodes find as the loopback address: "),
        ("127.0.0.1:8484", "claude", "{}", "127.0.0.1:8484: "),
        ("192.0.2.7:8484", "claude", "{}", None),
        ("0.0.0.0:8484", "claude", "{enabled: false}", None),
        ("0.0.0.0:8484", "aider", None, None),
    ],
)
def test_an_address_that_nodes_do_not_reach_is_named_where_runs_have_tools(
    listen: str, kind: str, mcp: str | None, says: str | None, offline: Command, tmp_path: Path
) -> None:
    """A node finds the daemon's address in the state folder, where one for all addresses stands as loopback."""
    tools = "" if mcp is None else f", mcp: {mcp}"
    (offline.home / "claudomator.yaml").write_text(
        f"http: {{listen: {listen}}}\nhosts: {{lab: {{kind: slurm, root: {tmp_path}}}}}\n"
        f"agents: {{writer: {{kind: {kind}, hosts: [local, lab]{tools}}}, here: {{kind: claude}}}}\n"
    )
    check = _checks(offline, PATH="/usr/bin:/bin").get("host lab: tools")
    if says is None:
        assert check is None
    else:
        assert check is not None
        detail = f"http.listen is {says}on other machines, tools of writer do not reach it"
        assert (check["verdict"], check["detail"]) == ("warn", detail)
        assert "http.listen" in str(check["remedy"])


def test_a_munged_that_is_missing_or_dead_is_named(offline: Command, tmp_path: Path) -> None:
    """Slurm's commands hang without it."""
    (offline.home / "claudomator.yaml").write_text(f"hosts: {{lab: {{kind: slurm, root: {tmp_path}}}}}\n")
    for name in SLURM_COMMANDS:
        _program(tmp_path / "bin", name)
    path, conf, listening = f"{tmp_path / 'bin'}:/usr/bin:/bin", tmp_path / "slurm.conf", tmp_path / "munge"

    def munge(text: str) -> tuple[object, object]:
        conf.write_text(text)
        results = _checks(offline, PATH=path, SLURM_CONF=str(conf)).get("host lab: munge", {})
        return results.get("verdict"), results.get("detail")

    named = f"AuthType=auth/munge\nAuthInfo=ttl=60,socket={listening}\n"
    assert munge(named) == ("problem", f"munged does not run: there is no {listening}")
    with socket.socket(socket.AF_UNIX) as munged:
        munged.bind(str(listening))
        munged.listen()
        assert munge(named) == ("ok", f"munged listens on {listening}")
    assert munge(named) == ("problem", f"munged has died: nobody listens on {listening}")
    assert munge("AuthType=auth/slurm\n") == (None, None)


def test_a_broken_configuration_is_told_and_the_rest_is_looked_at(offline: Command) -> None:
    (offline.home / "claudomator.yaml").write_text("inbox: {pathes: [x]}\n")
    checks = _checks(offline)
    assert checks["configuration"]["verdict"] == "problem"
    assert "claudomator.yaml:1" in str(checks["configuration"]["detail"])
    assert "did you mean `paths`?" in str(checks["configuration"]["detail"])
    assert "git" in checks
    (offline.home / "claudomator.yaml").write_text("inbox: {pathes: [x]}\nreach: networks\n")
    shown = offline("doctor")
    assert re.search(r"^problem +configuration +\S+yaml:1: .* \(and 1 more\)$", shown.stdout, re.MULTILINE)
    assert "claudomator.yaml:2: reach" in shown.stderr
    assert "claudomator.yaml:2: reach" in str(_checks(offline)["configuration"]["detail"])


def test_a_state_folder_that_is_open_or_none(offline: Command) -> None:
    (offline.home / "claudomator.yaml").write_text("state_dir: state\n")
    state = offline.home / "state"
    state.mkdir(mode=0o755)
    assert f"chmod 700 {state}" in str(_checks(offline)["state folder"]["remedy"])
    state.chmod(0o700)
    token = state / "token"
    token.touch(mode=0o644)
    assert f"chmod 600 {token}" in str(_checks(offline)["state files"]["remedy"])
    token.chmod(0o600)
    assert "state files" not in _checks(offline)
    token.unlink()
    state.rmdir()
    state.write_text("")
    assert "not a folder" in str(_checks(offline)["state folder"]["detail"])


def test_a_state_folder_that_cannot_even_be_looked_at(offline: Command) -> None:
    done = offline("doctor", "--state-dir", f"/{'x' * 300}/y")
    assert done.returncode == 1
    assert "/y cannot be created: / is not writable" in done.stdout or "will be created" in done.stdout


def test_an_inbox_that_others_can_write_to(offline: Command) -> None:
    tasks = offline.home / "tasks"
    tasks.mkdir()
    tasks.chmod(0o777)
    inbox = _checks(offline)["inbox"]
    assert (inbox["verdict"], inbox["detail"], inbox["remedy"]) == (
        "problem",
        f"{tasks} is not read: every user can write to it (mode 0777)",
        f"Run `chmod go-w {tasks}`.",
    )
    tasks.chmod(0o700)
    assert _checks(offline)["inbox"]["verdict"] == "ok"
    (offline.home / "claudomator.yaml").write_text("inbox: {trusted_users: [no-such-user]}\n")
    done = offline("doctor")
    assert "unknown users or groups: no-such-user" in done.stderr


def test_the_folder_where_it_is_typed_is_no_inbox_of_a_running_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claudomator_py.client.discovery.state_in_use", lambda *_: tmp_path)
    monkeypatch.setattr("claudomator_py.cli.doctor.daemon.daemon_findings", lambda *_: ([], []))
    file = tmp_path / "claudomator.yaml"
    file.write_text("{}")
    for path, is_inbox in ((None, False), (file, True)):
        findings = _all(Settings(), path, tmp_path, None, None)
        assert ("inbox" in {finding.name for finding in findings}) is is_inbox


def test_a_configuration_that_others_could_have_written(offline: Command) -> None:
    config = offline.home / "claudomator.yaml"
    config.write_text("")
    offline.home.chmod(0o777)
    configuration = _checks(offline, "--config", str(config))["configuration"]
    assert (configuration["verdict"], configuration["remedy"]) == (
        "problem",
        f"Look through it, and run `chmod go-w {offline.home}`.",
    )
    offline.home.chmod(0o755)
    assert _checks(offline)["configuration"]["verdict"] == "ok"


def test_a_state_folder_that_others_could_exchange(offline: Command) -> None:
    (offline.home / "claudomator.yaml").write_text("state_dir: above/state\n")
    (offline.home / "above/state").mkdir(mode=0o700, parents=True)
    (offline.home / "above").chmod(0o777)
    results = _checks(offline)["state folder"]
    assert (results["verdict"], results["remedy"]) == (
        "problem",
        f"Run `chmod go-w {offline.home / 'above'}`, or choose another state_dir.",
    )
    (offline.home / "above").chmod(0o755)
    (offline.home / "above/state/runs").symlink_to("elsewhere")
    assert "runs is a symbolic link" in str(_checks(offline)["state folder"]["detail"])


@pytest.mark.needs_root
def test_the_folders_of_another_users_daemon_are_judged_as_that_user_s(offline: Command) -> None:
    (offline.home / "claudomator.yaml").write_text("state_dir: state\n")
    for name in ("state", "tasks"):
        (offline.home / name).mkdir(mode=0o700)
        os.chown(offline.home / name, 65534, -1)
    checks = _checks(offline)
    assert (checks["state folder"]["verdict"], checks["inbox"]["verdict"]) == ("warn", "ok")
    os.chown(offline.home / "state", 0, -1)
    assert "belongs to" in str(_checks(offline)["inbox"]["detail"])


def test_a_full_disk(offline: Command) -> None:
    (offline.home / "claudomator.yaml").write_text("limits: {min_free: 1TiB}\n")
    results = _checks(offline)["disk space"]
    assert results["verdict"] == "problem"
    assert "limits.min_free (1TiB)" in str(results["remedy"])


def test_a_disk_that_is_shared_with_other_machines(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    lines = ["22 1 8:1 / / rw - ext4 /dev/sda1 rw", f"30 22 0:40 / {tmp_path} rw shared:1 - nfs4 server:/x rw"]
    mounts.write_text("\n".join(lines))
    state = tmp_path / "state"
    file_system = [folders.file_system(state, sqlite=sqlite, mounts=mounts) for sqlite in (True, False)]
    assert [finding.verdict for finding in file_system] == [Severity.PROBLEM, Severity.WARN]
    mounts.write_text("\n".join([*lines, f"31 30 8:2 / {tmp_path} rw - xfs /dev/sdb rw"]))
    assert folders.file_system(state, sqlite=True, mounts=mounts).detail == "xfs"
    assert folders.file_system(state, sqlite=True, mounts=tmp_path / "none").verdict is Severity.OK


def test_a_clock_that_cannot_be_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 0.0)
    finding = machine.clock()
    assert (finding.verdict, finding.detail[:4]) == (Severity.PROBLEM, "1970")


def test_a_daemon_whose_clock_differs(daemon: Daemon) -> None:
    with daemon.client() as client:
        server_time = client.server_time()
    assert server_time is not None
    assert same_time(server_time, time.time()).verdict is Severity.OK
    ahead = same_time(server_time + 3600, server_time)
    assert (ahead.verdict, ahead.detail) == (Severity.WARN, "is 3600 s ahead of this machine's")


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [("yes", Severity.OK), ("no", Severity.WARN), ("", Severity.OK)],
    ids=["yes", "no", "unknown"],
)
def test_what_timedatectl_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, verdict: Severity) -> None:
    path = _program(tmp_path / "bin", "timedatectl")
    (tmp_path / "bin/timedatectl").write_text(f"#!/bin/sh\necho {answer}\n")
    monkeypatch.setenv("PATH", path)
    assert machine.synchronised().verdict is verdict


def test_what_the_kernel_allows(tmp_path: Path) -> None:
    (tmp_path / "max_user_watches").write_text("100\n")
    (tmp_path / "max_user_instances").write_text("128\n")
    few = machine.inotify(tmp_path)
    assert few.verdict is Severity.WARN
    assert "sysctl fs.inotify.max_user_watches=524288" in str(few.remedy)
    assert machine.inotify(tmp_path / "none").verdict is Severity.OK
    assert [machine.open_files(soft).verdict for soft in (256, 4096, -1)] == [Severity.WARN, Severity.OK, Severity.OK]
    assert [machine.sqlite(version).verdict for version in ("3.31.1", "3.45.0")] == [Severity.PROBLEM, Severity.OK]


# --- logins -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The unit of a user, as shipped, in a home."""
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    folder = tmp_path / "home/.config/systemd/user"
    folder.mkdir(parents=True)
    monkeypatch.setenv("PATH", _program(tmp_path / "agents", "claude"))
    written = unit(Manager.USER, folder, Path("/etc/claudomator/claudomator.yaml"))
    written.path.write_text(written.content)
    return written.path


def _service(tmp_path: Path) -> dict[str, Finding]:
    findings = daemon.service_findings(tmp_path / "home", tmp_path / "root", "anna")
    return {finding.name: finding for finding in findings}


def test_no_service_is_no_problem(tmp_path: Path) -> None:
    service = _service(tmp_path)
    assert (service["service"].verdict, set(service)) == (Severity.OK, {"service"})


def test_a_unit_as_shipped_that_ends_with_the_login(tmp_path: Path, installed: Path) -> None:
    service = _service(tmp_path)
    assert (service["service"].verdict, service["service"].detail) == (Severity.OK, str(installed))
    assert (service["linger"].verdict, service["linger"].remedy) == (Severity.WARN, "Run: loginctl enable-linger anna")
    linger = tmp_path / "root/var/lib/systemd/linger"
    linger.mkdir(parents=True)
    (linger / "anna").touch()
    assert _service(tmp_path)["linger"].verdict is Severity.OK


def test_a_unit_that_was_changed(tmp_path: Path, installed: Path) -> None:
    installed.write_text(installed.read_text().replace("KillMode=process", "KillMode=mixed"))
    finding = _service(tmp_path)["service"]
    assert finding.verdict is Severity.WARN
    assert "claudomator init --systemd user --force" in str(finding.remedy)
    assert "`systemctl --user edit claudomator`" in str(finding.remedy)


def test_a_unit_on_whose_path_there_is_no_agent(tmp_path: Path, installed: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    lines = [
        f'Environment="PATH={programs}"' if "PATH=" in line else line for line in installed.read_text().split("\n")
    ]
    installed.write_text("\n".join(lines))
    finding = _service(tmp_path)["service PATH"]
    assert (finding.verdict, finding.detail.endswith(f" is in {programs}")) == (Severity.WARN, True)
    assert "`systemctl --user edit claudomator`" in str(finding.remedy)
    elsewhere = _program(tmp_path / "others", "codex")
    drop_in = installed.with_name(f"{installed.name}.d") / "path.conf"
    drop_in.parent.mkdir()
    drop_in.write_text(f"[Service]\nEnvironment=PATH={elsewhere}\n")
    assert "service PATH" not in _service(tmp_path)
