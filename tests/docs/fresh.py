"""A fresh Debian machine for a page that installs packages: this one's files in an overlay, with processes, mounts and
a host name of its own. What is done there is gone with it."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from tests.docs.terminal import HOME, Terminal, ends_with_parent
from tests.patience import PATIENCE_S

USER: Final = Path(HOME).name
NAME: Final = "desk"
_ISOLATED: Final = ("unshare", "--mount", "--pid", "--uts", "--fork")

# Its first process reaps what ends there, and all of it ends with that one.
_BOOT = """
set -e
mount -t tmpfs -o size=4g fresh {folder}
mkdir {folder}/upper {folder}/work {folder}/root
mount -t overlay fresh -o lowerdir=/,upperdir={folder}/upper,workdir={folder}/work {folder}/root
cd {folder}/root
hostname {name}
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs run run
mount -t tmpfs tmp tmp
chmod 1777 tmp
echo "127.0.0.1 localhost {name}" > etc/hosts
exec chroot . /bin/bash -c 'echo ready; while :; do sleep 1; done'
"""
_SETUP = """
set -e
apt-get update -qq
apt-get install -qq -y --no-install-recommends sudo
useradd --create-home --shell /bin/bash {user}
echo "{user} ALL=(ALL) NOPASSWD: ALL" > /etc/sudoers.d/{user}
tar --extract --directory={home} --no-same-owner
chown --recursive {user}: {home}
"""
_VARIABLES = {"LANG": "C.UTF-8", "TERM": "dumb", "DEBIAN_FRONTEND": "noninteractive"}
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class FreshTerminal(Terminal):
    """A terminal of that machine's user, in a checkout."""

    def write(self, path: str, text: str, *, append: bool) -> None:
        """Write a file, relative to the shell's folder, as that user."""
        super().write(path, text, append=append)
        owner = self.root.stat()
        os.chown(Path(self.folder(), path), owner.st_uid, owner.st_gid)

    def start(self, command: str) -> None:
        """Start a daemon there, in the folder of its shell and with its PATH."""
        line = self.run('printf \'cd %q; export PATH=%q; echo $$ > ~/.daemon.pid; exec\' "$PWD" "$PATH"').strip()
        super().start(f"bash -c {shlex.quote(f'{line} {command}')}")

    def stop(self) -> None:
        """End the daemon as Ctrl-C does."""
        assert self._daemon is not None, "no daemon runs"
        self.run("kill -INT $(cat ~/.daemon.pid)")
        self._daemon.wait(PATIENCE_S)
        self._daemon = None

    def close(self) -> None:
        """Wait for the end of its shell and daemon, which the machine takes with it."""
        self._shell.communicate()
        if self._daemon is not None:
            self._daemon.wait()


def obstacle() -> str | None:
    """Return why there can be no such machine here; None: there can."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None or "bookworm" not in Path("/etc/os-release").read_text():
        return "a fresh machine needs root, and Debian 12"
    if subprocess.run([*_ISOLATED, "true"], check=False).returncode != 0:
        return "namespaces cannot be made"
    return None


@contextmanager
def fresh_machine(folder: Path, checkout: Path) -> Iterator[FreshTerminal]:
    """Have one for a while, in that folder, which must not exist. Its user is in a copy of the checkout."""
    folder.mkdir()
    first = subprocess.Popen(
        [*ends_with_parent(), *_ISOLATED, "--kill-child", "sh", "-c", _BOOT.format(folder=folder, name=NAME)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    groups, ended = set(_groups()), ExitStack()
    try:
        assert first.stdout is not None
        assert first.stdout.readline() == b"ready\n"
        pid = int(Path(f"/proc/{first.pid}/task/{first.pid}/children").read_text())
        files = subprocess.run(["git", "archive", "HEAD"], cwd=checkout, capture_output=True, check=True).stdout
        subprocess.run(
            [*_shell(pid, "root", "/root"), "-c", _SETUP.format(user=USER, home=HOME)],
            input=files,
            check=True,
            timeout=300,
        )
        terminal = FreshTerminal(Path(f"/proc/{pid}/root{HOME}"), {}, _shell(pid, USER, HOME))
        ended.callback(terminal.close)
        yield terminal
    finally:
        first.kill()  # and with it, all that is there
        first.communicate()
        ended.close()
        for group in set(_groups()) - groups:
            for place, _, _ in os.walk(group, topdown=False):
                Path(place).rmdir()


def _shell(pid: int, user: str, home: str) -> Sequence[str]:
    """Return the command of a shell there, before its arguments."""
    variables = {"HOME": home, "USER": user, "PATH": _PATH, **_VARIABLES}
    there = ["nsenter", f"--target={pid}", "--mount", "--pid", "--uts", "--root", f"--wdns={home}"]
    as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"] if user != "root" else []
    return [*there, *as_user, "env", "-i", *(f"{name}={value}" for name, value in variables.items()), "bash"]


def _groups() -> list[Path]:
    """Return the control groups of Slurm's nodes."""
    return [*Path("/sys/fs/cgroup").glob("*/slurm*")]
