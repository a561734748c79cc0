#!/usr/bin/env bash
# prometheus_client 0.26.0 (PyPI), PROMETHEUS_MULTIPROC_DIR: the metrics of a service include those of every program
# that it starts, and that uses prometheus_client, too.
#
# The variable is how the workers of one service share their metrics, and it is inherited like any other. A runner that
# is served that way hands it to agents, and these to the tests of a project. Each of them then writes files of its own
# to the service's folder, and /metrics adds up whatever is there: counters of the same name are summed, gauges by their
# mode, metrics that the service has never had appear, and none has a label that tells them apart. The program below
# sees only its own numbers. What it has counted stays when it has ended, until the folder is emptied.
# Where both are the same project, as when an agent works on the runner and runs its tests, five runs of a test are five
# runs in production. The service's own alarm and bill are made of such sums. Nothing is logged on either side.
# Remove the variable from the environment of what is started.
# Source: https://prometheus.github.io/client_python/multiprocess/, which tells only to empty the folder between runs.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check prometheus-client==0.26.0 2>/dev/null
cd "$folder"
mkdir metrics
cat >service.py <<'PYTHON'
"""A service that counts one run, has two in its queue, and starts the tests of a project in between."""
import os, subprocess, sys

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.multiprocess import MultiProcessCollector

Counter("runs", "Runs").inc()
Gauge("queue", "Runs that wait", multiprocess_mode="livesum").set(2)
Gauge("oldest", "Seconds that the oldest run has waited", multiprocess_mode="max").set(3)
names = ["runs_total", "queue", "oldest", "cost_total"]


def scrape():
    """What /metrics of the service tells at this moment."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry)
    return [registry.get_sample_value(name) for name in names]


def test(**variables):
    started = subprocess.run([sys.executable, "test.py"], env=variables, stdout=-1, text=True, check=True)
    return [float(word) for word in started.stdout.split()]


without = {name: value for name, value in os.environ.items() if name != "PROMETHEUS_MULTIPROC_DIR"}
seen = {"at first": scrape()}
test(**without)
seen["after tests that were started without the variable"] = scrape()
below = test(**os.environ)
seen["after the same tests, which inherited it"] = scrape()
print("the tests saw:", below)
for when, values in seen.items():
    print(f"{when}:", *(f"{name} {value}" for name, value in zip(names, values) if value is not None))
first, apart, inherited = seen.values()
assert first == apart == [1.0, 2.0, 3.0, None] and below == [5.0, 40.0], "it has changed"
assert inherited == [6.0, 42.0, 900.0, 2.5], "it has changed"
PYTHON
cat >test.py <<'PYTHON'
from prometheus_client import REGISTRY, Counter, Gauge

runs = Counter("runs", "Runs")
for _ in range(5):
    runs.inc()
Gauge("queue", "Runs that wait", multiprocess_mode="livesum").set(40)
Gauge("oldest", "Seconds that the oldest run has waited", multiprocess_mode="max").set(900)
Counter("cost", "Dollars").inc(2.5)
print(REGISTRY.get_sample_value("runs_total"), REGISTRY.get_sample_value("queue"))
PYTHON
env -i PATH="$PATH" PROMETHEUS_MULTIPROC_DIR="$folder/metrics" timeout 60 venv/bin/python service.py
# Seen with Python 3.11, twice, 2026-11:
# the tests saw: [5.0, 40.0]
# at first: runs_total 1.0 queue 2.0 oldest 3.0
# after tests that were started without the variable: runs_total 1.0 queue 2.0 oldest 3.0
# after the same tests, which inherited it: runs_total 6.0 queue 42.0 oldest 900.0 cost_total 2.5
