"""What a cluster does to runs beside carrying them: each has a reason of its own, and tasks go on where they may."""

import pytest

from claudomator_py.resources.runs import RunView
from tests.e2e.daemon import Daemon
from tests.e2e.on_cluster import on_cluster, start, starts
from tests.e2e.scenarios_support import document, ended, in_state, last_run, started
from tests.e2e.site import Site
from tests.patience import wait_until
from tests.slurm import ask

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.usefixtures("slurm_cluster")]

GRACE = {"grace": "500ms"}


def interrupted(site: Site, daemon: Daemon, *command: str) -> list[RunView]:
    """Run a task on the cluster, do that to its job, and return the task's runs. Only its first one is endless."""
    # With linuxproc, Slurm's signal reaches the agent as well, and its end would come first.
    once = f"do: [ -e {site.work}/begun ] || {{ trap '' TERM; touch {site.work}/begun; sleep 600; }}"
    site.drop("only.yaml", document(None, once, retry={"max_attempts": 1, "backoff": "20ms"}))
    started(site)
    assert last_run(daemon, "only").host == "cluster"
    wait_until((site.work / "begun").exists)
    job = ask("squeue", "--noheader", f"--name=cl-{last_run(daemon, 'only').id}-0", "--format=%i").strip()
    ask(*(word.replace("JOB", job) for word in command))
    task = ended(daemon, "only")
    assert set(starts(site).values()) == {1}
    runs = daemon.client.runs("only")
    assert task.state == ("COMPLETED" if len(runs) > 1 else "FAILED")
    return runs


def test_a_preempted_run_says_so_and_its_task_goes_on_elsewhere(site: Site) -> None:
    on_cluster(site, "cluster", "local", limits=GRACE)
    daemon = start(site)
    try:
        first, second = interrupted(
            site,
            daemon,
            "sbatch",
            "--partition=urgent",
            "--nodes=2",
            "--job-name=urgent",
            "--output=/dev/null",
            "--wrap=sleep 600",
        )
    finally:
        ask("scancel", "--name=urgent")
    assert first.outcome is not None
    assert first.outcome.reason == "preempted"
    assert "higher priority" in (first.outcome.detail or "")
    assert second.host == "local"


def test_a_run_whose_job_is_requeued_says_so_and_its_task_goes_on_elsewhere(site: Site) -> None:
    on_cluster(site, "cluster", "local", limits=GRACE)
    daemon = start(site)
    # Slurm refuses that for our jobs, unless their administrator insists.
    requeue = "scontrol update JobId=JOB Requeue=1 && scontrol requeue JOB"
    first, second = interrupted(site, daemon, "sh", "-c", requeue)
    assert first.outcome is not None
    assert first.outcome.reason == "requeued"
    assert second.host == "local"
    wait_until(lambda: "cl-" not in ask("squeue", "--noheader", "--format=%j"), "the end of all jobs")


def test_a_run_whose_job_is_cancelled_in_slurm_is_not_tried_again(site: Site) -> None:
    on_cluster(site, limits=GRACE)
    daemon = start(site)
    (only,) = interrupted(site, daemon, "scancel", "JOB")
    assert only.outcome is not None
    assert only.outcome.reason == "interrupted"
    assert "cancelled in Slurm" in (only.outcome.detail or "")


def test_a_run_that_waits_for_a_licence_says_so(site: Site) -> None:
    on_cluster(site, host={"licenses": {"sh": "single"}})
    daemon = start(site)
    for name in ("first", "second"):
        site.drop(f"{name}.yaml", document(None, f"do: while [ ! -e {site.work}/go ]; do sleep 0.1; done"))
        in_state(daemon, name, "RUNNING")

    def waiting() -> bool:
        words = [daemon.client.task(name).reason_text or "" for name in ("first", "second")]
        return any("all licences are in use (Licenses)" in word for word in words)

    wait_until(waiting)
    assert sum(starts(site).values()) == 1
    (site.work / "go").touch()
    assert [ended(daemon, name).state for name in ("first", "second")] == ["COMPLETED"] * 2


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ({"partition": "nowhere"}, "the cluster has no such `partition`"),
        ({"constraint": "gold"}, "no node has what `constraint` asks for"),
        ({"licenses": {"sh": "none"}}, "the cluster has no such licence as `licenses` names"),
    ],
)
def test_a_host_whose_settings_the_cluster_refuses_gets_no_more_runs(
    site: Site, host: dict[str, object], words: str
) -> None:
    on_cluster(site, "cluster", "local", host=host)
    daemon = start(site)
    site.drop("there.yaml", document(None, "do: true", host="cluster"))
    wait_until(lambda: words in (daemon.client.hosts()[1].problem or ""))
    site.drop("anywhere.yaml", document(None, "do: true"))
    assert ended(daemon, "anywhere").state == "COMPLETED"
    assert last_run(daemon, "anywhere").host == "local"
