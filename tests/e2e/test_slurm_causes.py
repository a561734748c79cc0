"""What a cluster does to runs beside carrying them: each has a reason of its own, and tasks go on where they may."""

import pytest

from claudomator_py.resources.runs import RunView
from tests.e2e.daemon import Daemon
from tests.e2e.on_cluster import on_cluster, start, starts
from tests.e2e.scenarios_support import document, ended, in_state, last_run, started
from tests.e2e.site import Site
from tests.patience import wait_until
from tests.slurm import NODES, Cluster, ask

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.usefixtures("slurm_cluster")]

GRACE = {"grace": "500ms"}
MOVED_S = 240.0
"""More than twice the time after which a run that waits for drained nodes is given up."""


def interrupted(site: Site, daemon: Daemon, *command: str, trap: str = "trap '' TERM") -> list[RunView]:
    """Run a task on the cluster, do that to its job, and return the task's runs. Only its first one is endless.

    trap: with linuxproc, Slurm's signal reaches the agent as well, and its end would come before its supervisor's.
    """
    once = f"do: [ -e {site.work}/begun ] || {{ {trap}; touch {site.work}/begun; sleep 600; }}"
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


@pytest.mark.parametrize("trap", ["trap '' TERM", "true"], ids=["the supervisor ends", "the agent ends"])
def test_a_run_whose_job_is_cancelled_in_slurm_is_not_tried_again(site: Site, trap: str) -> None:
    on_cluster(site, limits=GRACE)
    daemon = start(site)
    (only,) = interrupted(site, daemon, "scancel", "JOB", trap=trap)
    assert only.outcome is not None
    assert only.outcome.reason == "interrupted"
    assert "cancelled in Slurm" in (only.outcome.detail or "")


def test_a_run_may_have_a_longer_timeout_than_the_partition_allows(site: Site) -> None:
    on_cluster(site, limits=GRACE)
    daemon = start(site)
    ask("scontrol", "update", "PartitionName=agents", "MaxTime=5")
    try:
        site.drop("only.yaml", document(None, "do: true", timeout="2h"))
        assert ended(daemon, "only").state == "COMPLETED"
    finally:
        ask("scontrol", "update", "PartitionName=agents", "MaxTime=UNLIMITED")


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


def test_runs_that_wait_for_drained_nodes_are_given_up_and_go_elsewhere_or_wait_with_the_reason(site: Site) -> None:
    on_cluster(site, "cluster", "local")
    daemon = start(site)
    for host in ("cluster", "local"):  # As many on each, so that the next run goes to the first by name.
        site.drop(f"{host}.yaml", document(None, f"do: while [ ! -e {site.work}/go ]; do sleep 0.1; done", host=host))
    started(site, 2)
    for node in NODES:
        ask("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=a new disk")
    try:
        site.drop("anywhere.yaml", document(None, "do: true"))
        in_state(daemon, "anywhere", "RUNNING")
        site.drop("there.yaml", document(None, "do: true", host="cluster"))
        in_state(daemon, "there", "RUNNING")
        wait_until(lambda: "waits for cluster: " in (daemon.client.task("anywhere").reason_text or ""))
        assert ended(daemon, "anywhere", MOVED_S).state == "COMPLETED"
        assert last_run(daemon, "anywhere").host == "local"
        in_state(daemon, "there", "QUEUED", deadline_s=MOVED_S)
        reason = daemon.client.task("there").reason_text or ""
        assert "cluster has no node that takes runs: n1 drain" in reason
        assert "(a new disk)" in reason
        assert "no node that takes runs" in (daemon.client.hosts()[1].problem or "")
        jobs = ask("squeue", "--noheader", "--format=%j").split()
        assert [daemon.client.task(host).state for host in ("cluster", "local")] == ["RUNNING"] * 2
        assert jobs == [f"cl-{last_run(daemon, 'cluster').id}-0"]
    finally:
        for node in NODES:
            ask("scontrol", "update", f"NodeName={node}", "State=RESUME")
    assert ended(daemon, "there", MOVED_S).state == "COMPLETED"
    assert last_run(daemon, "there").host == "cluster"
    (site.work / "go").touch()
    assert [ended(daemon, host).state for host in ("cluster", "local")] == ["COMPLETED"] * 2
    assert daemon.client.hosts()[1].problem is None
    for name in ("anywhere", "there"):
        assert [run.state for run in daemon.client.runs(name)] == ["revoked", "ended"]
    assert set(starts(site).values()) == {1}


def test_a_node_that_does_not_see_the_folder_gets_no_more_runs(site: Site, slurm_cluster: Cluster) -> None:
    on_cluster(site)
    slurm_cluster.restart_node("n1", without=site.root / "shared")
    ask("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=a new disk")
    try:
        daemon = start(site)
        site.drop("only.yaml", document(None, "do: true"))
        in_state(daemon, "only", "RUNNING")
        said = "has not begun on cluster, where its job has ended on n1: FAILED"
        wait_until(lambda: said in (daemon.client.task("only").reason_text or ""))
        ask("scontrol", "update", "NodeName=n2", "State=RESUME")
        assert ended(daemon, "only", MOVED_S).state == "COMPLETED"
        (node,) = daemon.client.hosts()[1].unusable
        assert (node.name, node.state) == ("n1", "avoided")
        assert f"does the node have {site.root}/shared and " in (node.reason or "")
    finally:
        ask("scontrol", "update", "NodeName=n2", "State=RESUME")
        slurm_cluster.restart_node("n1")
    assert [run.state for run in daemon.client.runs("only")] == ["revoked", "ended"]
    assert set(starts(site).values()) == {1}


def test_a_suspended_run_can_be_cancelled(site: Site) -> None:
    on_cluster(site, limits=GRACE)
    daemon = start(site)
    site.drop("only.yaml", document(None, "do: sleep 600"))
    started(site)
    ask("scontrol", "suspend", ask("squeue", "--noheader", "--states=running", "--format=%i").strip())
    wait_until(lambda: "has suspended its job" in (daemon.client.task("only").reason_text or ""))
    daemon.client.cancel("only")
    assert ended(daemon, "only").state == "CANCELLED"
    outcome = last_run(daemon, "only").outcome
    assert outcome is not None
    assert "scancel" not in (outcome.detail or "")


def test_a_held_job_of_a_run_that_is_over_is_cancelled_and_that_of_another_stays(site: Site) -> None:
    on_cluster(site, host={"licenses": {"sh": "single"}})
    daemon = start(site)

    def job(name: str, form: str = "%i") -> str:
        return ask("squeue", "--noheader", f"--name=cl-{last_run(daemon, name).id}-0", f"--format={form}").strip()

    long = f"do: while [ ! -e {site.work}/NAME ]; do sleep 0.1; done"
    site.drop("over.yaml", document(None, long.replace("NAME", "over")))
    started(site)
    number = job("over")
    ask("scontrol", "update", f"JobId={number}", "Requeue=1")
    (site.work / "over").touch()
    assert ended(daemon, "over").state == "COMPLETED"
    for name in ("lives", "waits"):
        site.drop(f"{name}.yaml", document(None, long.replace("NAME", "go")))
        in_state(daemon, name, "RUNNING")
    started(site, 2)
    wait_until(lambda: ask("scontrol", "requeuehold", number) == "" and job("over", "%T") == "PENDING")
    wait_until(lambda: job("over") == "", "the end of the job")
    assert sorted(job(name, "%T") for name in ("lives", "waits")) == ["PENDING", "RUNNING"]
    (site.work / "go").touch()
    assert [ended(daemon, name).state for name in ("lives", "waits")] == ["COMPLETED"] * 2
    assert set(starts(site).values()) == {1}


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
