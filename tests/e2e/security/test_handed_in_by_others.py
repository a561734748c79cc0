"""Another user of the machine hands in tasks, or prepares the folders of the daemon: nothing of it is obeyed."""

import errno
import os
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.scenarios_support import document, ended
from tests.e2e.security.second_user import NOBODY, as_second_user, open_to_all
from tests.e2e.site import Site, open_site
from tests.patience import PATIENCE_S, wait_until
from tests.warm.starter import WarmStarter

pytestmark = pytest.mark.needs_root


@contextmanager
def umask(mask: int) -> Iterator[None]:
    former = os.umask(mask)
    try:
        yield
    finally:
        os.umask(former)


def hand_in(folder: str, name: str, text: str) -> str:
    """What came of it: nothing if it worked."""
    try:
        Path(folder, name).write_text(text)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return ""


def test_tasks_of_another_user_are_refused_wherever_they_get_in(site: Site) -> None:
    """One daemon, three inboxes: of its user alone, of all, and of all with the sticky bit."""
    with open_to_all() as folder:
        closed, wide, sticky = (folder / name for name in ("closed", "wide", "sticky"))
        for path, mode in ((closed, 0o755), (wide, 0o777), (sticky, 0o1777)):
            path.mkdir()
            path.chmod(mode)
        site.configure(inbox={"paths": list(map(str, (closed, wide, sticky)))})
        attack = document("attack", f"do: touch {site.root / 'obeyed'}")
        assert as_second_user(hand_in, str(closed), "attack.yaml", attack) == "EACCES"
        assert as_second_user(hand_in, str(wide), "attack.yaml", attack) == ""
        assert as_second_user(hand_in, str(sticky), "attack.yaml", attack) == ""
        daemon = site.start().ready()
        (closed / "good.yaml").write_text(document("good"))
        assert ended(daemon, "good").state == "COMPLETED"
        checks = {check.detail: check for check in daemon.client.readiness().checks if check.name == "inbox"}
        for path, text in ((wide, "0777"), (sticky, "1777")):
            check = checks[f"{path}: every user can write to it (mode {text})"]
            assert (check.ok, check.remedy) == (False, f"run `chmod go-w {path}`")

        # Closed to others, the folder is read; what they have left in it is not obeyed.
        wide.chmod(0o755)
        refused = wait_until(lambda: daemon.client.status().inbox, "the refusal")
        assert [problem.path for problem in refused] == [str(wide / "attack.yaml")]
        assert "belongs to nobody, who is not trusted" in refused[0].problems[0].message
        assert (wide / "attack.yaml").exists()
        assert "belongs to nobody" in (wide / "attack.yaml.error.txt").read_text()
        (wide / "own.yaml").write_text(document("own"))
        assert ended(daemon, "own").state == "COMPLETED"
        assert {task.name for task in daemon.client.all_tasks()} == {"good", "own"}
        assert not (site.root / "obeyed").exists()


def test_a_trusted_user_may_hand_in(site: Site) -> None:
    with open_to_all() as folder:
        shared = folder / "shared"
        shared.mkdir()
        os.chown(shared, -1, NOBODY)
        shared.chmod(0o2770)
        site.configure(inbox={"paths": [str(shared)], "trusted_groups": [NOBODY]})
        daemon = site.start().ready()
        assert as_second_user(hand_in, str(shared), "theirs.yaml", document("theirs")) == ""
        assert ended(daemon, "theirs").state == "COMPLETED"


def test_the_daemon_of_root_leaves_a_state_folder_of_somebody_else_alone(tmp_path: Path, warm: WarmStarter) -> None:
    with open_site(tmp_path / "site", warm=warm, new=True) as site:
        site.state.mkdir(mode=0o755)
        site.state.chmod(0o755)
        victim = site.root / "victim"
        victim.write_text("precious")
        (site.state / "daemon.lock").symlink_to(victim)
        assert site.start().wait(PATIENCE_S) == 1
        assert f"{site.state}/daemon.lock is a symbolic link, and none is followed there" in site.log_text()
        assert victim.read_text() == "precious"
        (site.state / "daemon.lock").unlink()
        os.chown(site.state, NOBODY, -1)
        assert site.start().wait(PATIENCE_S) == 1
        assert f"{site.state} belongs to nobody, and this is root; run as nobody" in site.log_text()
        assert stat.S_IMODE(site.state.stat().st_mode) == 0o755
        assert list(site.state.iterdir()) == []


def test_a_configuration_that_others_can_write_to_commands_no_daemon(tmp_path: Path, warm: WarmStarter) -> None:
    """One that somebody else owns commands none either, unless the user names it."""
    with open_site(tmp_path / "site", warm=warm, new=True) as site:
        site.config_file.chmod(0o666)
        assert site.start().wait(PATIENCE_S) == 1
        text = f"{site.config_file}: could have been written by other users: every user can write to it (mode 0666); "
        assert f"{text}look through it, and run `chmod go-w {site.config_file}`" in site.log_text()
        site.config_file.chmod(0o644)
        os.chown(site.config_file, NOBODY, -1)
        completed = site.command("serve")
        assert (completed.returncode, "it belongs to nobody, who is not trusted" in completed.stderr) == (1, True)
        daemon = site.start().ready()
        # A reload is as strict, and the former configuration stays in force.
        site.config_file.chmod(0o666)
        daemon.send(signal.SIGHUP)

        def refused() -> bool:
            return any(
                "could have been written by other users" in check.detail for check in daemon.client.status().trouble
            )

        wait_until(refused, "the configuration to be refused")


def test_the_daemon_is_private_and_its_runs_are_as_open_as_the_user_has_it(tmp_path: Path) -> None:
    with open_site(tmp_path / "site") as site:
        with umask(0o002):
            daemon = site.start().ready()
        work = site.root / "work"
        checked = f"sh -c 'touch {work}/checked'"
        site.drop("a.yaml", document("a", "do: touch made; mkdir folder", working_dir=str(work), check=[checked]))
        assert ended(daemon, "a").state == "COMPLETED"
        modes = {path.name: f"{stat.S_IMODE(path.stat().st_mode):04o}" for path in work.iterdir()}
        assert modes == {"made": "0664", "folder": "0775", "checked": "0664"}
        open_to_others = [path for path in site.state.rglob("*") if path.lstat().st_mode & 0o077]
        assert open_to_others == []
