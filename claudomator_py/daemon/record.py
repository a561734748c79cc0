"""The daemon's record among those of its user, by which a command that stands anywhere finds it."""

import contextlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from claudomator_py.daemon.locks import holder
from claudomator_py.log import get_logger
from claudomator_py.schema.configfile import LoadedConfig
from claudomator_py.schema.configpath import DaemonRecord, digest_of, records_folder

log = get_logger("claudomator")


class PublishedRecord:
    """The record of the daemon on a state folder. A home that cannot be written to costs the record, not the daemon."""

    def __init__(self, state: Path, environ: Mapping[str, str]) -> None:
        self._state = state
        self._folder = records_folder(environ)
        self._path = self._folder / f"{digest_of(os.fsencode(state))[:32]}.json"

    def publish(self, loaded: LoadedConfig) -> None:
        """Write it, whole or not at all, and remove those of daemons that were killed. loaded: what is valid by now."""
        record = DaemonRecord(self._state, loaded.path, loaded.digest)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._remove_stale()
            temporary = self._folder / f".{secrets.token_hex(8)}"
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(record.to_text())
            temporary.replace(self._path)
        except OSError as error:
            log.info("daemon_not_recorded", problem=str(error), note="only its configuration or --state-dir leads here")

    def withdraw(self) -> None:
        """Remove it: the daemon ends."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _remove_stale(self) -> None:
        for path in self._folder.glob("*.json"):
            with contextlib.suppress(OSError, ValueError):
                record = DaemonRecord.from_text(path.read_text(encoding="utf-8", errors="surrogateescape"))
                if record is None or holder(record.state_dir) is None:
                    path.unlink()
