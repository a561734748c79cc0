"""Asks an advisory database about every locked package: PyPI's own; with --osv, OSV where that one does not answer.

The gate asks PyPI alone: it needs the package registry in any case, and talks to nobody else.

Exit status 0: nothing is known against them, or no database could be reached, which is said; 1: something is known.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
SERVICES = {"pypi": "PyPI", "osv": "OSV"}
ANSWER_S = 5
"""Seconds for which a database may be silent."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """An advisory that we live with. until: an ISO date, from which it counts again."""

    until: str
    why: str


ACCEPTED: Mapping[str, Accepted] = {}
"""By id. Each entry says why the advisory does not concern us, and is looked at again when its date comes."""


class NotReached(Exception):
    """The database did not answer, or not about these packages, or not in time."""


def main() -> int:
    """Audit, print the result, and return the exit status."""
    options = _options()
    end = time.monotonic() + options.seconds
    for service in ("pypi", "osv") if options.osv else ("pypi",):
        try:
            # One package first: an index that knows no advisories is not asked about all the others.
            _ask(options, service, _first_of(options.lock), end)
            packages = _ask(options, service, options.lock.read_text(), end)
        except NotReached:
            continue
        return _judge(packages, SERVICES[service])
    print("not audited: no advisory database could be reached")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lock", type=Path, default=REPOSITORY / "requirements.lock")
    parser.add_argument("--seconds", type=float, default=20, help="for all of it; what takes longer is not reached")
    parser.add_argument("--osv", action="store_true", help="ask api.osv.dev as well, where PyPI does not answer")
    parser.add_argument("--pip-audit", type=Path, default=Path(sys.executable).with_name("pip-audit"))
    return parser.parse_args()


def _first_of(lock: Path) -> str:
    """The first pin, with its hashes."""
    pins = re.split(r"^(?=[A-Za-z0-9])", lock.read_text(), flags=re.MULTILINE)
    return next(pin for pin in pins if "==" in pin.partition("\n")[0])


def _ask(options: argparse.Namespace, service: str, pins: str, end: float) -> list[Any]:
    """What pip-audit reports of each package. Raises NotReached."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(pins)
        file.flush()
        command = [options.pip_audit, "--requirement", file.name, "--disable-pip", "--require-hashes"]
        command += ["--vulnerability-service", service, "--format", "json", "--progress-spinner", "off"]
        try:
            done = subprocess.run(
                [*command, "--timeout", str(ANSWER_S)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=max(end - time.monotonic(), 0),
                check=False,
            )
            packages: list[Any] = json.loads(done.stdout)["dependencies"]
        except (subprocess.TimeoutExpired, ValueError, KeyError) as silence:
            raise NotReached(service) from silence
    if all("skip_reason" in package for package in packages):
        raise NotReached(service)
    return packages


def _judge(packages: list[Any], database: str) -> int:
    today = datetime.now(UTC).date().isoformat()
    known = []
    for package in packages:
        for advisory in package.get("vulns", ()):
            ids = {advisory["id"], *advisory.get("aliases", ())}
            if any(today < ACCEPTED[one].until for one in ids & ACCEPTED.keys()):
                continue
            fixed = ", ".join(advisory["fix_versions"]) or "no version"
            known.append(f"{package['name']} {package['version']}: {advisory['id']}, fixed in {fixed}")
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    if unknown:
        print(f"{database} does not know {', '.join(unknown)}")
    print("\n".join(known) or f"audited: {database} knows nothing against {len(packages) - len(unknown)} packages")
    return 1 if known else 0


if __name__ == "__main__":
    sys.exit(main())
