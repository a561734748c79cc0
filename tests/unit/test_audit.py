"""The audit of what is locked, with databases that answer, know nothing, or are out of reach."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

AUDIT = Path(__file__).parents[2] / ".ci/audit.py"
PINS = """\
# Made by hand.
first==1.0 \\
    --hash=sha256:{0}
second==2.0 ; python_version >= '3.11' \\
    --hash=sha256:{0}
""".format("0" * 64)
ADVISORY = {"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": ["1.1", "2.0"], "description": "…"}
# Says what its folder holds for the service, of as many packages as it is asked about.
PIP_AUDIT = """#!{python} -IS
import json, sys, time
from pathlib import Path
words = sys.argv[1:]
service = words[words.index("--vulnerability-service") + 1]
asked = Path(words[words.index("--requirement") + 1]).read_text()
with open("{folder}/asked", "a") as file:
    file.write(json.dumps([service, asked]) + "\\n")
said = Path("{folder}/" + service)
if not said.exists():
    sys.exit("ConnectionError: no such host")
packages = json.loads(said.read_text())
if packages == "silent":
    time.sleep(60)
print(json.dumps({{"dependencies": [one for one in packages if one["name"] in asked], "fixes": []}}))
"""


def audited(folder: Path, *arguments: str, **databases: object) -> "subprocess.CompletedProcess[str]":
    """The audit of two packages. databases: what each reports; one that is left out cannot be reached."""
    (folder / "lock").write_text(PINS)
    fake = folder / "pip-audit"
    fake.write_text(PIP_AUDIT.format(python=sys.executable, folder=folder))
    fake.chmod(0o755)
    for service, packages in databases.items():
        (folder / service).write_text(json.dumps(packages))
    return subprocess.run(
        [sys.executable, AUDIT, "--lock", folder / "lock", "--pip-audit", fake, *arguments],
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


class Osv(BaseHTTPRequestHandler):
    """OSV's way to be asked about one package at a time."""

    def do_POST(self) -> None:
        query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = query["package"]["name"]
        fixed = [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2.1"}]}]
        affected = [{"package": {"name": name, "ecosystem": "PyPI"}, "ranges": fixed}]
        known = {"id": "GHSA-1", "affected": affected, "modified": "2026-01-01T00:00:00Z", "details": "bad"}
        body = json.dumps({"vulns": [known] if name == "second" else []}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_the_real_pip_audit_is_understood(tmp_path: Path) -> None:
    """Against a database on loopback; PyPI's is out of reach."""
    wrapper = tmp_path / "wrapper"
    with HTTPServer(("127.0.0.1", 0), Osv) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/v1/query"
        real = Path(sys.executable).with_name("pip-audit")
        wrapper.write_text(f'#!/bin/sh\ncase "$*" in *pypi*) exit 1; esac\nexec {real} "$@" --osv-url {url}\n')
        wrapper.chmod(0o755)
        done = audited(tmp_path, "--pip-audit", str(wrapper), "--seconds", "50", "--osv")
        server.shutdown()
    assert (done.returncode, done.stdout) == (1, "second 2.0: GHSA-1, fixed in 2.1\n"), done.stderr


def package(name: str, *advisories: object) -> dict[str, object]:
    return {"name": name, "version": "1.0", "vulns": list(advisories)}


def skipped(name: str) -> dict[str, object]:
    return {"name": name, "skip_reason": f"Dependency not found on PyPI and could not be audited: {name}"}


def asked(folder: Path) -> list[tuple[str, int]]:
    """Which services were asked, and about how many packages."""
    lines = [json.loads(line) for line in (folder / "asked").read_text().splitlines()]
    return [(service, pins.count("==")) for service, pins in lines]


def test_what_nothing_is_known_against_passes(tmp_path: Path) -> None:
    done = audited(tmp_path, pypi=[package("first"), package("second")])
    assert (done.returncode, done.stdout) == (0, "audited: PyPI knows nothing against 2 packages\n")


def test_an_advisory_fails_with_package_id_and_fixed_versions(tmp_path: Path) -> None:
    done = audited(tmp_path, pypi=[package("first"), package("second", ADVISORY)])
    assert (done.returncode, done.stdout) == (1, "second 1.0: PYSEC-1, fixed in 1.1, 2.0\n")


def test_another_database_is_asked_only_when_it_is_wanted(tmp_path: Path) -> None:
    audited(tmp_path, osv=[package("first"), package("second")])
    assert asked(tmp_path) == [("pypi", 1)]
    done = audited(tmp_path, "--osv", osv=[package("first", {**ADVISORY, "fix_versions": []}), package("second")])
    assert (done.returncode, done.stdout) == (1, "first 1.0: PYSEC-1, fixed in no version\n")


def test_out_of_reach_is_said_and_passes(tmp_path: Path) -> None:
    done = audited(tmp_path)
    assert (done.returncode, done.stdout) == (0, "not audited: no advisory database could be reached\n")


def test_an_index_without_advisories_is_no_database_and_is_asked_about_one_package_only(tmp_path: Path) -> None:
    done = audited(tmp_path, pypi=[skipped("first"), skipped("second")])
    assert (done.returncode, done.stdout) == (0, "not audited: no advisory database could be reached\n")
    assert asked(tmp_path) == [("pypi", 1)]


def test_a_silent_database_is_not_waited_for(tmp_path: Path) -> None:
    done = audited(tmp_path, "--seconds", "0.5", pypi="silent")
    assert (done.returncode, done.stdout) == (0, "not audited: no advisory database could be reached\n")


def test_a_package_that_the_database_does_not_know_is_named(tmp_path: Path) -> None:
    done = audited(tmp_path, pypi=[package("first"), skipped("second")])
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "PyPI does not know second",
        "audited: PyPI knows nothing against 1 packages",
    ]


def test_a_broken_audit_is_no_passed_one(tmp_path: Path) -> None:
    done = audited(tmp_path, "--pip-audit", str(tmp_path / "not-installed"))
    assert done.returncode == 1
    assert "not-installed" in done.stderr


@pytest.mark.parametrize("until", ["2000-01-01", "9999-01-01"])
def test_an_accepted_advisory_counts_again_from_its_date(tmp_path: Path, until: str) -> None:
    entry = f'ACCEPTED: Mapping[str, Accepted] = {{"CVE-1": Accepted("{until}", "of no concern")}}'
    changed = tmp_path / "audit.py"
    text = AUDIT.read_text()
    assert text.count("ACCEPTED: Mapping[str, Accepted] = {}") == 1
    changed.write_text(text.replace("ACCEPTED: Mapping[str, Accepted] = {}", entry))
    (tmp_path / "lock").write_text(PINS)
    audited(tmp_path, pypi=[package("first", ADVISORY), package("second")])
    done = subprocess.run(
        [sys.executable, changed, "--lock", tmp_path / "lock", "--pip-audit", tmp_path / "pip-audit"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == (1 if until < "2026" else 0), done.stdout
