"""A bundle for a bug report: the findings of doctor, the configuration and the daemon's state, without secrets."""

import io
import json
import os
import platform
import sqlite3
import sys
import tarfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from claudomator_py import __version__
from claudomator_py.cli.connect import connect
from claudomator_py.cli.doctor import Finding, redacted
from claudomator_py.client import ClientError
from claudomator_py.domain.redaction import Redactor
from claudomator_py.domain.units import DAY_MS, SECOND_MS, format_instant
from claudomator_py.private_files import create_private
from claudomator_py.schema.settings import Settings

if TYPE_CHECKING:
    from claudomator_py.client.http import Client

FOLDER = "claudomator-report"
MAX_TASKS = 100
README = """The findings of `claudomator doctor --bundle`. Review them before you send them.

doctor.json         the checks, with remedies
about.json          versions
configuration.json  the configuration of this command, with only the names of variables
status.json         the daemon's state
events.json         events of its tasks in the last day
{tasks}
The journal has the log; add what concerns the problem yourself:
  journalctl --user --unit claudomator --since -1h > log.txt
"""
_WITHOUT = "Instructions, results and other texts of people and agents are left out.\n"
_WITH = "Instructions, results and other texts of people and agents are included.\n"


def write_bundle(
    path: Path,
    findings: Sequence[Finding],
    settings: Settings,
    where: tuple[Path | None, Path | None],
    *,
    tasks: bool,
) -> None:
    """Write the bundle into a new file (0600). where: --config and --state-dir. tasks: include people's texts.

    Raises OSError, and FileExistsError if the file exists.
    """
    answers, own = _ask(where, tasks=tasks)
    documents: dict[str, Any] = {
        "doctor.json": [finding.model_dump(mode="json") for finding in findings],
        "about.json": _about(),
        "configuration.json": redacted.configuration(settings),
        **answers,
    }
    texts = {"README.txt": README.format(tasks=_WITH if tasks else _WITHOUT)}
    texts |= {name: json.dumps(document, indent=2) + "\n" for name, document in documents.items()}
    redactor = redacted.known_secrets(settings, os.environ, own)
    cleaned = {name: _clean(text, redactor) for name, text in texts.items()}
    _write(path, cleaned)


def _ask(where: tuple[Path | None, Path | None], *, tasks: bool) -> tuple[dict[str, Any], list[str]]:
    """Return the daemon's answers, or its error in their place, and our own secrets."""
    own = [os.environ.get("CLAUDOMATOR_TOKEN", ""), _token(where)]
    try:
        with connect(*where) as client:
            status = client.status()
            events = list(_events(client, tasks=tasks))
    except ClientError as error:
        return {"status.json": {"error": error.detail}}, own
    return {"status.json": redacted.status(status, tasks=tasks), "events.json": events}, own


def _token(where: tuple[Path | None, Path | None]) -> str:
    from claudomator_py.client.discovery import discover

    try:
        return discover(*where, os.environ, Path.cwd()).token or ""
    except ClientError:
        return ""


def _events(client: "Client", *, tasks: bool) -> Iterator[redacted.Document]:
    """Yield the events of the newest tasks that changed within a day."""
    since = format_instant(int(time.time() * SECOND_MS) - DAY_MS)
    newest = [task for task in client.tasks(limit=MAX_TASKS).items if task.updated_at >= since]
    for task in newest:
        for event in client.why(task.id).events:
            if event.at >= since:
                yield redacted.event(event, tasks=tasks)


def _about() -> dict[str, str]:
    return {
        "claudomator": __version__,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "executable": sys.executable,
        "made": format_instant(int(time.time() * SECOND_MS)),
    }


def _clean(text: str, redactor: Redactor) -> str:
    """Return the text without secrets, and without the path of the user's home."""
    home = os.environ.get("HOME", "")
    text = redactor.redact(text)
    return text.replace(home, "~") if len(home) > 1 else text


def _write(path: Path, texts: dict[str, str]) -> None:
    with create_private(path) as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, text in texts.items():
            data = text.encode("utf-8", "replace")
            member = tarfile.TarInfo(f"{FOLDER}/{name}")
            member.size, member.mode, member.mtime = len(data), 0o600, int(time.time())
            archive.addfile(member, io.BytesIO(data))
