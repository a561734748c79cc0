"""What another user of the machine can read, reach and signal while a daemon and its runs are alive: nothing."""

import http.client
import os
import signal
import socket
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

import pytest

from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import document, ended, started
from tests.e2e.security.second_user import as_second_user, open_to_all
from tests.e2e.site import Site, open_site
from tests.patience import wait_until
from tests.warm.starter import WarmStarter

pytestmark = pytest.mark.needs_root

# Random, so that no checkout of this repository holds them: one may lie in a folder that is searched.
PASSED = f"passed-on-{token_hex(4)}"
OF_TASK = f"of-the-task-{token_hex(4)}"
ASKED = "the-prompt-7Lm2kD6y"
NAME = "name-2cf8"


@dataclass(frozen=True)
class Living:
    """A site with a daemon and a run that holds secrets, both alive."""

    site: Site
    daemon: Daemon
    processes: dict[int, str]
    secrets: list[str]


@pytest.fixture(scope="module")
def living(warm: WarmStarter) -> Iterator[Living]:
    with open_to_all() as folder, open_site(folder / "site", warm=warm) as site:
        site.configure(agents={"sh": {"kind": "command", "command": site.ledger.agent, "pass_env": ["PASSED_KEY"]}})
        daemon = site.start(PASSED_KEY=PASSED).ready()
        go_on = site.root / "go-on"
        os.mkfifo(go_on)
        # It prints what it has, so that the secrets stand in its output too.
        lines = (
            ASKED,
            'do: echo "$PASSED_KEY $TASK_KEY"; echo "$PASSED_KEY" >&2',
            "do: echo begun",
            f"do: read _ < {go_on}",
        )
        old = os.umask(0o077)
        try:
            site.drop("task.yaml", document(NAME, *lines, env={"TASK_KEY": OF_TASK}))
        finally:
            os.umask(old)
        run_id = started(site)[0]
        stdout = site.state / "runs" / run_id / "stdout.jsonl"
        wait_until(lambda: stdout.exists() and b"begun" in stdout.read_bytes(), "the run to have printed")
        token = (site.state / "token").read_text().strip()
        yield Living(site, daemon, site.processes(), [PASSED, OF_TASK, token])
        go_on.write_text("go on\n")
        assert ended(daemon, NAME).state == "COMPLETED"


def opened(paths: list[str]) -> list[str]:
    """Those of the files that can be opened, to read or to write, and of the folders that can be listed."""
    results = []
    for path in paths:
        for flags in (os.O_RDONLY, os.O_WRONLY):
            try:
                os.close(os.open(path, flags | os.O_NONBLOCK))
            except OSError:
                continue
            results.append(path)
    return results


def test_no_file_of_the_state_folder_can_be_opened(living: Living) -> None:
    """By name: whoever asks knows all of them."""
    state = living.site.state
    paths = [str(path) for path in (state, *state.rglob("*")) if not path.is_symlink()]
    assert any(path.endswith("stdout.jsonl") for path in paths)
    assert as_second_user(opened, paths) == []


def test_no_file_of_the_state_folder_depends_on_the_folder_alone(living: Living) -> None:
    """Should somebody open the folder itself, what is in it stays closed."""
    state = living.site.state
    results = {path: stat.S_IMODE(path.lstat().st_mode) for path in state.rglob("*") if not path.is_symlink()}
    assert {str(path.relative_to(state)): oct(mode) for path, mode in results.items() if mode & 0o077} == {}


def of_processes(pids: list[int], secrets: list[str]) -> list[str]:
    """What /proc lets out: every file of those processes that can be read and is not world's, and every secret."""
    results = []
    for pid in pids:
        for name in ("environ", "mem", "maps", "auxv", "stack", "syscall", "fd", "cwd", "exe", "root", "map_files"):
            path = f"/proc/{pid}/{name}"
            try:
                if name in ("cwd", "exe", "root"):
                    Path(path).readlink()
                elif name in ("fd", "map_files"):
                    list(Path(path).iterdir())
                elif not Path(path).read_bytes():
                    continue
                results.append(path)
            except OSError:
                continue
        for name in ("cmdline", "comm", "status", "limits", "mountinfo"):
            try:
                text = Path(f"/proc/{pid}/{name}").read_text(errors="replace")
            except OSError:
                continue
            results += [f"{secret} in {name} of {pid}" for secret in secrets if secret in text]
    return results


def test_proc_tells_nothing_of_the_daemon_the_shims_and_the_agents(living: Living) -> None:
    assert len(living.processes) >= 3, living.processes
    assert as_second_user(of_processes, list(living.processes), [*living.secrets, ASKED]) == []


def test_the_same_looks_find_everything_with_the_rights_of_the_daemon(living: Living) -> None:
    """Without that, finding nothing would prove nothing."""
    assert str(living.site.state / "token") in opened([str(path) for path in living.site.state.iterdir()])
    results = of_processes(list(living.processes), [])
    assert {f"/proc/{living.daemon.pid}/{name}" for name in ("environ", "maps", "fd", "cwd")} <= set(results)


def signalled(pids: list[int]) -> list[int]:
    """Those that take a signal."""
    results = []
    for pid in pids:
        for number in (0, signal.SIGCONT, signal.SIGTERM):
            try:
                os.kill(pid, number)
            except OSError:
                continue
            results.append(pid)
    return results


def test_no_process_takes_a_signal(living: Living) -> None:
    assert as_second_user(signalled, list(living.processes)) == []


def unix_sockets() -> list[tuple[str, bool]]:
    """Every named Unix socket of the machine, and whether it can be connected to."""
    results = []
    for line in Path("/proc/net/unix").read_text(errors="replace").splitlines()[1:]:
        name = line.split(maxsplit=7)[7] if len(line.split(maxsplit=7)) > 7 else ""
        if not name:
            continue
        address = "\0" + name[1:] if name.startswith("@") else name
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(2)
            try:
                connection.connect(address)
                results.append((name, True))
            except OSError:
                results.append((name, False))
    return results


def test_no_unix_socket_of_the_daemon_takes_a_connection(living: Living) -> None:
    """Neither one below its folders nor an abstract one, which has no permissions."""
    own = _inodes_of(living)
    names = [words[7] for words in _unix_table() if len(words) > 7 and words[6] in own]
    assert not [name for name in names if name.startswith("@")]
    connected = {name for name, taken in as_second_user(unix_sockets) if taken}
    assert not connected & set(names)


def test_the_socket_of_the_command_line_is_there_and_takes_no_connection(living: Living) -> None:
    path = str(living.site.state / "api.sock")
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
    taken = dict(as_second_user(unix_sockets))
    assert taken[path] is False


def _unix_table() -> list[list[str]]:
    return [line.split(maxsplit=7) for line in Path("/proc/net/unix").read_text().splitlines()[1:]]


def _inodes_of(living: Living) -> set[str]:
    """The inodes of all sockets that those processes have open."""
    links = [link for pid in living.processes for link in Path(f"/proc/{pid}/fd").iterdir()]
    targets = (str(link.readlink()) for link in links if link.is_symlink())
    return {target[len("socket:[") : -1] for target in targets if target.startswith("socket:[")}


def answers(host: str, port: int, requests: list[tuple[str, str]]) -> list[tuple[str, str, int, str]]:
    """What the API answers to somebody without credentials."""
    results = []
    for method, path in requests:
        connection = http.client.HTTPConnection(host, port, timeout=120)  # names of this file mean nothing there
        connection.request(method, path)
        answer = connection.getresponse()
        results.append((method, path, answer.status, answer.read().decode(errors="replace")))
        connection.close()
    return results


OPEN_PATHS = {"/livez", "/readyz", "/login", "/.well-known/agent-card.json"}


def test_the_api_says_nothing_to_whoever_has_no_token(living: Living) -> None:
    assert living.site.endpoint is not None
    host, _, port = living.site.endpoint.removeprefix("http://").rpartition(":")
    paths = ["/v1/status", "/v1/tasks", "/v1/events", "/v1/agents", "/metrics", "/openapi.json", "/", "/tasks/any"]
    requests = [("GET", path) for path in [*paths, *OPEN_PATHS]]
    requests += [("POST", "/v1/tasks"), ("POST", "/v1/login-codes"), ("POST", "/v1/drain")]
    second_user = as_second_user(answers, host, int(port), requests)
    whole = "\n".join(body for _, _, _, body in second_user)
    assert [secret for secret in (*living.secrets, ASKED, NAME, str(living.site.root)) if secret in whole] == []
    assert {path for method, path, status, _ in second_user if status < 300} <= OPEN_PATHS, second_user
    assert not any(status >= 500 for _, _, status, _ in second_user)


def test_the_api_does_not_tell_whether_a_task_exists(living: Living) -> None:
    assert living.site.endpoint is not None
    host, _, port = living.site.endpoint.removeprefix("http://").rpartition(":")
    pairs = [
        (path.format(NAME), path.format("none-2cf8")) for path in ("/v1/tasks/{}", "/v1/tasks/{}/why", "/tasks/{}")
    ]
    for there, not_there in pairs:
        second_user = as_second_user(answers, host, int(port), [("GET", there), ("GET", not_there)])
        (_, _, first, body), (_, _, second, other) = second_user
        assert (first, body.replace(NAME, "none-2cf8")) == (second, other)


def lying_about(folders: list[str], secrets: list[str], since: float) -> list[str]:
    """Files of late in those folders that can be read and hold a secret."""
    results = []
    for folder in folders:
        for where, names, files in os.walk(folder):
            # Sites of tests that run at the same time have nothing of this one.
            names[:] = [name for name in names if os.access(f"{where}/{name}", os.R_OK | os.X_OK)]
            for name in files:
                path = f"{where}/{name}"
                try:
                    seen = os.lstat(path)
                    if not stat.S_ISREG(seen.st_mode) or seen.st_mtime < since or seen.st_size > 2**20:
                        continue
                    text = Path(path).read_text(errors="replace")
                except OSError:
                    continue
                results += [f"{secret} in {path}" for secret in secrets if secret in text]
    return results


def test_nothing_secret_lies_about_in_temporary_folders(living: Living) -> None:
    since = living.site.config_file.stat().st_mtime
    assert as_second_user(lying_about, ["/tmp", "/var/tmp", "/dev/shm"], living.secrets, since) == []
