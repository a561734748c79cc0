"""Folders that a task names, exchanged after it was accepted: no agent is started with what they have become."""

from pathlib import Path

from tests.e2e.scenarios_support import document, ended, in_state
from tests.e2e.site import Site
from tests.patience import wait_until


def test_a_folder_that_became_a_link_to_the_state_folder_is_noticed_at_the_start(site: Site) -> None:
    daemon = site.start().ready()
    folder, shared, other = (site.work / name for name in ("here", "shared", "other"))
    for path in (folder, shared, other):
        path.mkdir()
    first = {"agent": "simulated", "depends_on": "first"}
    site.drop("inside.yaml", document("inside", "x", working_dir=str(folder), **first))
    site.drop("beside.yaml", document("beside", "x", working_dir=str(other), add_dirs=[str(shared)], **first))
    for name in ("inside", "beside"):
        in_state(daemon, name, "WAITING")
    for path in (folder, shared):
        path.rmdir()
        path.symlink_to(site.state)
    site.drop("first.yaml", document("first", "x", agent="simulated"))

    for name in ("inside", "beside"):
        task = ended(daemon, name)
        assert (task.state, task.reason) == ("FAILED", "setup_failed"), name
        assert f"contains or lies in {site.state.resolve()}" in (task.reason_text or "")


def test_a_file_that_names_our_own_or_the_systems_folder_is_refused_with_the_place(site: Site) -> None:
    site.start().ready()
    (site.root / "link").symlink_to(site.state)
    ways = [site.root / name for name in ("state", "state/runs", "tasks", "link", ".")]
    for number, path in enumerate([*ways, Path("/proc/self/cwd")]):
        task = document(None, "x", agent="simulated", working_dir=str(site.work), add_dirs=[str(site.work), str(path)])
        error = site.drop(f"task-{number}.yaml", task).with_name(f"task-{number}.yaml.error.txt")
        wait_until(error.exists, f"the refusal of {path}")
        assert "add_dirs[1]" in error.read_text()
