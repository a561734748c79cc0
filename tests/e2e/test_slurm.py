"""Tasks on a cluster, from a dropped file to the record of the run, with Slurm's daemons and their deaths."""

import json
import os
import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.on_cluster import on_cluster, reaching, start, starts
from tests.e2e.scenarios_support import document, ended, in_state, last_run, started
from tests.e2e.site import REPOSITORY, Site
from tests.patience import wait_until
from tests.slurm import NODES, Cluster, ask

pytestmark = pytest.mark.slurm

SECRET = "a-key-that-nobody-may-see"


@pytest.mark.usefixtures("slurm_cluster")
def test_a_task_runs_on_a_node_and_ends_with_its_own_exit_code(site: Site) -> None:
    on_cluster(site)
    daemon = start(site)
    nodes = f"do: echo $SLURMD_NODENAME > {site.work}/node; tr '\\0' '\\n' < /proc/$PPID/environ > {site.work}/parent"
    site.drop("good.yaml", document(None, nodes, check=site.ledger.check(0)))
    site.drop("bad.yaml", document(None, "do: exit 7", retry={"max_attempts": 1}))
    assert ended(daemon, "good").state == "COMPLETED"
    assert ended(daemon, "bad").state == "FAILED"
    assert last_run(daemon, "bad").exit_code == 7
    run = last_run(daemon, "good")
    assert (site.root / "shared" / run.id / "submitted").exists()
    parent = (site.work / "parent").read_text()
    assert any(f"SLURMD_NODENAME={node}" in parent for node in NODES)
    assert f"JobName=cl-{run.id}-0" in ask("scontrol", "show", "job", "--details")
    assert set(starts(site).values()) == {1}
    shown = site.command("doctor", "-o", "json", "--probe", **reaching()).stdout
    findings = {finding["name"]: finding for finding in json.loads(shown)}
    works = "locks, exclusive creation, renaming and flushing work"
    assert findings["host cluster: a node"]["detail"].endswith(f"and this machine: {works}")
    assert all(node in findings["host cluster: two nodes"]["detail"] for node in (*NODES, works))
    assert not [*(site.root / "shared").glob(".probe-*")]
    assert findings["host cluster: cluster"]["verdict"] == "ok"
    assert "linuxproc" in findings["host cluster: ends of jobs"]["detail"]


def test_a_key_reaches_the_agent_alone(site: Site, slurm_cluster: Cluster) -> None:
    """Whatever Slurm is given, keeps and shows, while a job waits and while it runs."""
    on_cluster(site)
    heard = site.root / "heard"
    (site.root / "bin").mkdir()
    noting = site.root / "bin" / "sbatch"
    noting.write_text(
        f"#!/bin/sh\nexec 9>>{heard}\nenv >&9\nprintf '%s\\n' \"$@\" >&9\n"
        f'tee -a {heard} | {shutil.which("sbatch")} "$@"\n'
    )
    noting.chmod(0o755)
    there = reaching() | {"PATH": f"{noting.parent}:{os.environ['PATH']}", "SBATCH_COMMENT": SECRET}
    daemon = site.start(**there).ready()
    noted = f"echo $KEY > {site.work}/told; echo $PPID > {site.work}/pid"
    held = f"do: {noted}; while [ ! -e {site.work}/go ]; do sleep 0.1; done"
    ask("scontrol", "update", "PartitionName=agents", "State=DOWN")
    try:
        for name in ("kept", "given-up"):
            site.drop(f"{name}.yaml", document(None, held, env={"KEY": SECRET}))
        keys = [
            f"cl-{last_run(daemon, name).id}-0" for name in ("kept", "given-up") if in_state(daemon, name, "RUNNING")
        ]
        wait_until(lambda: all(key in ask("squeue", "--noheader", "--format=%j") for key in keys), "the jobs")
        shown = kept_and_shown(slurm_cluster)
        files = [site.root / "shared" / last_run(daemon, name).id / "variables.json" for name in ("kept", "given-up")]
        for file in files:
            assert SECRET in file.read_text()
            assert file.stat().st_mode & 0o777 == 0o600
        daemon.client.cancel("given-up")
        assert ended(daemon, "given-up").state == "CANCELLED"
        assert not files[1].exists()
    finally:
        ask("scontrol", "update", "PartitionName=agents", "State=UP")
    started(site)
    pid = site.work / "pid"
    wait_until(lambda: pid.exists() and pid.stat().st_size)
    supervisor = Path("/proc") / pid.read_text().strip()
    assert (site.work / "told").read_text() == f"{SECRET}\n"
    assert not files[0].exists()
    step = supervisor.parent / parent_of(supervisor)
    for process in (supervisor, step):
        shown += (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
    # It needs nothing of the node but Python and that folder.
    assert b"/shared/.supervisor-" in (supervisor / "cmdline").read_bytes()
    assert os.fsencode(REPOSITORY / "claudomator_py") not in (supervisor / "cmdline").read_bytes()
    shown += kept_and_shown(slurm_cluster) + heard.read_bytes()
    (site.work / "go").touch()
    assert ended(daemon, "kept").state == "COMPLETED"
    for key in keys:
        assert key.encode() in shown
    assert b"slurmstepd" in shown
    assert SECRET.encode() not in shown + kept_and_shown(slurm_cluster)
    assert set(starts(site).values()) == {1}


def kept_and_shown(cluster: Cluster) -> bytes:
    """Return what Slurm's daemons have on disk, and what they say of the jobs."""
    files = [
        path
        for place in ("state", *(f"spool-{node}" for node in NODES))
        for path in (cluster.folder / place).rglob("*")
    ]
    kept = b""
    for path in files:
        with suppress(OSError):
            kept += path.read_bytes()
    jobs = ask("scontrol", "show", "job", "--details") + ask("squeue", "--format=%all")
    for job in ask("squeue", "--noheader", "--format=%i").split():
        jobs += ask("scontrol", "write", "batch_script", job, "-")
    return kept + jobs.encode()


def parent_of(process: Path) -> str:
    """Return the id of its parent."""
    return (process / "stat").read_text().rpartition(")")[2].split()[1]


@pytest.mark.usefixtures("slurm_cluster")
def test_a_host_whose_nodes_keep_no_locks_gets_no_run(site: Site) -> None:
    """Nodes on one machine keep them, so the node's Python is one that takes none."""
    python = site.root / "python"
    python.write_text(
        f"#!/bin/sh\nshift 2\nexec {sys.executable} -c "
        "'import fcntl, runpy, sys; fcntl.flock = lambda *_: None; sys.argv = sys.argv[1:];"
        ' runpy.run_path(sys.argv[0], run_name="__main__")\' "$@"\n'
    )
    python.chmod(0o755)
    on_cluster(site, "cluster", "local", is_tried=False, host={"python": str(python)})
    daemon = start(site)
    site.drop("anywhere.yaml", document(None, "do: true"))
    site.drop("there.yaml", document(None, "do: true", host="cluster"))
    assert ended(daemon, "anywhere").state == "COMPLETED"
    assert last_run(daemon, "anywhere").host == "local"
    wait_until(lambda: "can hold the same lock at once" in (daemon.client.task("there").reason_text or ""))
    assert "NFS" in (daemon.client.hosts()[1].problem or "")
    assert daemon.client.runs("there") == []
    # Nodes with a proper one: the configuration has changed, so the host is tried again, and has passed.
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    assert daemon.stop() == 0
    daemon = start(site)
    assert ended(daemon, "there").state == "COMPLETED"
    assert last_run(daemon, "there").host == "cluster"
    assert (site.root / "shared" / ".tried-cluster").exists()


@pytest.mark.usefixtures("slurm_cluster")
def test_a_task_goes_to_the_host_that_it_names_and_others_to_the_idle_one(site: Site) -> None:
    on_cluster(site, "cluster", "local")
    daemon = start(site)
    site.drop("there.yaml", document(None, "do: sleep 3", host="cluster"))
    started(site)
    site.drop("anywhere.yaml", document(None, "do: true"))
    site.drop("here.yaml", document(None, "do: true", host="local"))
    for name, place in (("there", "shared"), ("anywhere", "state/runs"), ("here", "state/runs")):
        assert ended(daemon, name).state == "COMPLETED"
        assert (site.root / place / last_run(daemon, name).id).is_dir()
    site.drop("nowhere.yaml", document(None, "do: true", host="moon"))
    answer = site.inbox / "nowhere.yaml.error.txt"
    wait_until(answer.exists)
    assert "sh does not run on moon" in answer.read_text()


@pytest.mark.usefixtures("slurm_cluster")
def test_runs_outlive_the_daemon_and_can_be_cancelled_by_the_next(site: Site) -> None:
    on_cluster(site)
    daemon = start(site)
    site.drop("long.yaml", document(None, f"do: while [ ! -e {site.work}/go ]; do sleep 0.1; done"))
    site.drop("never.yaml", document(None, "do: sleep 600"))
    started(site, 2)
    daemon.kill()
    daemon = start(site)
    (site.work / "go").touch()
    assert ended(daemon, "long").state == "COMPLETED"
    daemon.client.cancel("never")
    assert ended(daemon, "never").state == "CANCELLED"
    assert set(starts(site).values()) == {1}
    assert "cl-" not in ask("squeue", "--noheader", "--format=%j|%T", "--states=RUNNING,PENDING")


@pytest.mark.slow
def test_no_run_begins_twice_whenever_the_controller_dies(site: Site, slurm_cluster: Cluster) -> None:
    """Each time a little later after the submission. Slurm may kill runs that have begun, whose tasks say that these
    are to be tried again; what it has forgotten before was no attempt."""
    on_cluster(site)
    daemon = start(site)
    for number, pause_s in enumerate((0.0, 0.3, 0.8, 1.5)):
        site.drop(f"t{number}.yaml", document(None, "do: sleep 2", on_lost="retry", retry={"backoff": "1s"}))
        in_state(daemon, f"t{number}", "RUNNING")
        time.sleep(pause_s)
        slurm_cluster.kill_controller()
        slurm_cluster.start_controller()
    for number in range(4):
        task = ended(daemon, f"t{number}")
        began = starts(site)
        *before, last = daemon.client.runs(f"t{number}")
        assert task.state == "COMPLETED", [last, *before]
        assert (last.exit_code, began[last.id]) == (0, 1)
        for run in before:
            if run.state == "revoked":
                assert began[run.id] == 0
            else:
                assert run.outcome is not None
                assert run.outcome.reason in ("lost", "interrupted")
    assert set(starts(site).values()) == {1}


@pytest.mark.slow
@pytest.mark.usefixtures("slurm_cluster")
def test_a_submission_that_is_lost_before_it_begins_is_no_attempt(site: Site) -> None:
    on_cluster(site)
    daemon = start(site)
    ask("scontrol", "update", "PartitionName=agents", "State=DOWN")
    try:
        site.drop("only.yaml", document(None, "do: true", retry={"max_attempts": 1}))
        in_state(daemon, "only", "RUNNING")
        key = f"cl-{last_run(daemon, 'only').id}-0"
        wait_until(lambda: key in ask("squeue", "--noheader", "--format=%j"), "the job")
        ask("scancel", f"--name={key}")
    finally:
        ask("scontrol", "update", "PartitionName=agents", "State=UP")
    assert ended(daemon, "only").state == "COMPLETED"
    lost, run = daemon.client.runs("only")
    assert (lost.state, lost.exit_code) == ("revoked", None)
    assert starts(site) == {run.id: 1}


@pytest.mark.usefixtures("slurm_cluster")
def test_a_run_that_waits_for_a_node_says_why_and_runs_then(site: Site) -> None:
    on_cluster(site)
    daemon = start(site)
    for node in NODES:
        ask("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=a new disk")
    try:
        site.drop("patient.yaml", document(None, "do: true"))
        in_state(daemon, "patient", "RUNNING")
        wait_until(lambda: "waits for cluster: " in (daemon.client.task("patient").reason_text or ""))
        here, there = daemon.client.hosts()
        assert (here.live, there.live, sum(there.waits.values())) == (0, 1, 1)
        assert [(node.name, node.reason) for node in there.unusable] == [(node, "a new disk") for node in NODES]
        shown = site.command("hosts", **reaching()).stdout
        assert "a new disk" in shown
        assert (there.agents, there.cpus, there.cpus_used) == ({"sh": 1}, 8, 0)
        status = site.command("status", **reaching()).stdout
        assert "HOSTS" in status
        assert "1 sh" in status
        wait_until(lambda: 'host_runs{host="cluster",state="waiting"} 1.0' in daemon.client.metrics())
        assert 'claudomator_host_up{host="cluster"} 1.0' in daemon.client.metrics()
    finally:
        for node in NODES:
            ask("scontrol", "update", f"NodeName={node}", "State=RESUME")
    assert ended(daemon, "patient").state == "COMPLETED"
    assert last_run(daemon, "patient").host == "cluster"
    assert daemon.client.hosts()[1].unusable == ()


@pytest.mark.usefixtures("slurm_cluster")
def test_a_node_keeps_what_a_task_needs(site: Site) -> None:
    on_cluster(site, "cluster", "local")
    daemon = start(site)
    noted = f"do: tr '\\0' '\\n' < /proc/$PPID/environ > {site.work}/parent"
    site.drop("large.yaml", document(None, noted, needs={"cpus": 3}))
    assert ended(daemon, "large").state == "COMPLETED"
    assert "SLURM_CPUS_PER_TASK=3\n" in (site.work / "parent").read_text()
    site.drop("impossible.yaml", document(None, "do: true", needs={"cpus": 300}))
    in_state(daemon, "impossible", "RUNNING")
    wait_until(lambda: "no node of the partition has" in (daemon.client.task("impossible").reason_text or ""))
    daemon.client.cancel("impossible")
    assert ended(daemon, "impossible").state == "CANCELLED"


@pytest.mark.slow
@pytest.mark.usefixtures("slurm_cluster")
def test_a_drained_host_finishes_what_it_has_and_gets_nothing_new(site: Site) -> None:
    on_cluster(site, "cluster", "local")
    daemon = start(site)
    site.drop("before.yaml", document(None, f"do: while [ ! -e {site.work}/go ]; do sleep 0.1; done", host="cluster"))
    started(site)
    shown = site.command("drain", "--host", "cluster", "--reason", "a new disk", **reaching()).stdout
    assert "running  1" in shown
    site.drop("anywhere.yaml", document(None, "do: true"))
    site.drop("there.yaml", document(None, "do: true", host="cluster"))
    assert ended(daemon, "anywhere").state == "COMPLETED"
    assert last_run(daemon, "anywhere").host == "local"
    in_state(daemon, "there", "QUEUED")
    wait_until(lambda: "undrain --host cluster" in (daemon.client.task("there").reason_text or ""))
    daemon.kill()
    daemon = start(site)
    assert [host.drained for host in daemon.client.hosts()] == [None, "a new disk"]
    assert daemon.client.runs("there") == []
    (site.work / "go").touch()
    assert ended(daemon, "before").state == "COMPLETED"
    assert "no" in site.command("undrain", "--host", "cluster", **reaching()).stdout
    assert ended(daemon, "there").state == "COMPLETED"
    assert last_run(daemon, "there").host == "cluster"
    assert site.command("drain", "--host", "moon", **reaching()).returncode != 0


@pytest.mark.usefixtures("slurm_cluster")
def test_a_sample_of_a_host_says_what_the_cluster_has(site: Site) -> None:
    folder = site.root / "new"
    site.command("init", "new", "--host", "slurm", **reaching())
    text = (folder / "claudomator.yaml").read_text()
    assert "#   agents (default): 2 nodes of 4 CPUs" in text
    assert "#     partition: agents " in text
    begin = text.index("# hosts:")
    entry = [line.removeprefix("# ") for line in text[begin:].splitlines() if line != "#"]
    (folder / "runs").mkdir()
    plain = "\n".join(line for line in entry if not line[:1].isupper()).replace("/srv/claudomator", str(folder))

    def checked(text: str) -> dict[str, str]:
        (folder / "claudomator.yaml").write_text(text)
        shown = site.command("doctor", "--config", str(folder / "claudomator.yaml"), "-o", "json", **reaching()).stdout
        return {finding["name"]: finding["verdict"] for finding in json.loads(shown)}

    findings = checked(plain)
    assert findings["host cluster: folder"] == "ok"
    assert findings["host cluster: cluster"] == "problem", "its nodes have no features, and the sample demands one"
    assert checked(plain.replace("constraint:", "# constraint:"))["host cluster: cluster"] == "ok"
    again = site.command("init", "new", "--host", "slurm", **reaching())
    assert "# hosts:" in again.stdout
    assert "not changed" in again.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("slurm_cluster")
def test_rules_say_where_a_task_may_run(site: Site) -> None:
    rules = [
        {"name": "heavy", "when": "'heavy' in task.tags", "hosts": ["cluster"]},
        {"name": "private", "when": "'private' in task.tags", "exclude_hosts": ["cluster"]},
    ]
    on_cluster(site, "cluster", "local", policy=rules)
    daemon = start(site)
    for number in range(2):
        site.drop(f"heavy-{number}.yaml", document(None, "do: sleep 1", tags=["heavy"]))
        site.drop(f"private-{number}.yaml", document(None, "do: sleep 1", tags=["private"]))
    site.drop("torn.yaml", document(None, "do: true", tags=["private"], host="cluster"))
    for name, host in (("heavy", "cluster"), ("private", "local")):
        for number in range(2):
            assert ended(daemon, f"{name}-{number}").state == "COMPLETED"
            assert last_run(daemon, f"{name}-{number}").host == host
    torn = in_state(daemon, "torn", "QUEUED")
    wait_until(lambda: "none of its hosts (cluster)" in (daemon.client.task(torn.id).reason_text or ""))
    assert "private (exclude_hosts)" in site.command("why", "torn").stdout
