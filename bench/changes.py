"""What the record of changes costs a run in a repository of 50,000 files: the same runs with and without it, in turns,
from the order to spawn to the report of the end."""

import statistics
import subprocess
import sys
import tempfile
import time
from itertools import count
from pathlib import Path

from bench.shims import ENVIRONMENT, LIMITS
from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.redaction import replaced
from claudomator_py.domain.run import LaunchRequest, RunFate, RunSpec
from claudomator_py.domain.task import TaskSpec
from claudomator_py.environment.secrets import Secrets
from claudomator_py.hosts.git.changes import ChangeRecorder
from claudomator_py.hosts.local import LocalRunHost
from claudomator_py.hosts.local.launcher import Launcher
from claudomator_py.resources.branches.page import patches_of

FOLDERS, FILES = 1_000, 50
ROUNDS = 15
CHANGED = 2_000
SCRIPTS = {
    "nothing": "true",
    "a file": "date +%N > d0001/new",
    "a commit": "date +%N > d0001/f1; git -c user.name=n -c user.email=n@example.org commit -q -a -m one",
}
"""What the runs change."""


def measure() -> None:
    """Print the median of the runs' time for each of what they change, without the record and with it."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "shop"
        environ = {**ENVIRONMENT, "HOME": folder}
        _make(place, environ)
        launcher = Launcher()
        recorder = ChangeRecorder(environ)
        ways = {
            "without": LocalRunHost(Path(folder) / "without", launcher, grace_ms=100, kinds=AGENT_KINDS),
            "with": LocalRunHost(Path(folder) / "with", launcher, grace_ms=100, kinds=AGENT_KINDS, recorder=recorder),
        }
        numbers = count(1)
        try:
            for name, script in SCRIPTS.items():
                taken: dict[str, list[float]] = {way: [] for way in ways}
                for _ in range(ROUNDS):
                    for way, host in ways.items():
                        taken[way].append(_run(host, f"run{next(numbers)}", script, place, environ))
                        subprocess.run(["git", "-C", str(place), "clean", "-fdq"], env=environ, check=True)
                without, with_it = (statistics.median(taken[way]) for way in ("without", "with"))
                least = min(taken["with"]) - min(taken["without"])
                sys.stdout.write(
                    f"  {name:<9} without {without:4.0f} ms  with {with_it:4.0f} ms"
                    f"  the record: {with_it - without:4.0f} ms (of the fastest: {least:.0f} ms)\n"
                )
            sys.stdout.write(_read(ways["with"], place, environ))
        finally:
            for host in ways.values():
                host.close()
            launcher.close()


def _read(host: LocalRunHost, place: Path, environ: dict[str, str]) -> str:
    """Return how long it takes to read the record of a run that changed many files, as `diff` and the page do."""
    folders = f"$(seq -f d%04g 0 {CHANGED // FILES - 1})"
    script = f"for d in {folders}; do for f in $d/f*; do echo more >> $f; done; done"
    _run(host, "many", script, place, environ)
    redactor = Secrets(["sk-ant-api03-" + "Zq7" * 20]).redactor({}, "many")
    taken = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        record = host.changes("many")
        patch = redactor.redact(host.patch("many"))
        if record is None or len(patches_of(patch)) < replaced(record, redactor.redact).file_count:
            raise ValueError("the record has not all files")
        taken.append((time.perf_counter() - begun) * 1000)
    middle, most = statistics.median(taken), max(taken)
    return f"  the record of {CHANGED:,} files is read in {middle:.0f} ms (at most {most:.0f} ms)\n"


def _make(place: Path, environ: dict[str, str]) -> None:
    for number in range(FOLDERS):
        (folder := place / f"d{number:04}").mkdir(parents=True)
        for file in range(FILES):
            (folder / f"f{file}").write_text(f"{number} {file}\n")
    who = ("-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "gc.auto=0")
    for words in (("init", "-q", "-b", "main"), ("add", "--all"), (*who, "commit", "-q", "-m", "files")):
        subprocess.run(["git", "-C", str(place), *words], env=environ, check=True)
    time.sleep(1.1)
    subprocess.run(["git", "-C", str(place), "update-index", "-q", "--refresh"], env=environ, check=True)


def _run(host: LocalRunHost, run_id: str, script: str, place: Path, environ: dict[str, str]) -> float:
    """Milliseconds of one run."""
    task = TaskSpec(name="t", instructions="x")
    request = LaunchRequest(run_id, AgentSpec(name="a", kind="command"), task, "", None, "c")
    host.prepare(RunSpec(run_id, (("sh", "-c", script),), str(place), (), tuple(environ), "", LIMITS))
    begun = time.perf_counter()
    host.spawn(run_id, environ)
    while (status := host.reconcile(run_id)).fate is not RunFate.ENDED:
        time.sleep(0.001)
    while host.report(request, status.exit) is None:
        time.sleep(0.001)
    return (time.perf_counter() - begun) * 1000
