"""The supervisor as one file, for nodes without Claudomator: an archive next to the runs, to import from.

Its name is a digest of its content. An upgrade of the daemon therefore creates another archive, and waiting jobs still
find theirs.
"""

import hashlib
import importlib.util
import os
import py_compile
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

import claudomator_py
from claudomator_py.hosts import shim
from claudomator_py.hosts.local.directory import CHECK
from claudomator_py.hosts.slurm import OVER, SUBMITTED

_PREFIX: Final = ".supervisor-"
_END: Final = ".zip"
_HALF_MADE_S: Final = 3_600.0
_PACKAGE: Final = Path(str(claudomator_py.__file__)).parent
_BEGIN: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip archive can store, so that equal files give equal archives."""


def supervisor_in(root: str) -> str:
    """Return the path of the archive in that folder; create it if it is missing. Raises OSError."""
    path = f"{root}/{_PREFIX}{_digest()}{_END}"
    if not os.path.exists(path):
        _write(path)
    return path


def remove_others(root: str) -> None:
    """Remove the archives in that folder from which no run's supervisor will be imported, such as those of earlier
    versions. Ignores those that cannot be removed. Raises OSError."""
    needed = {os.path.basename(path) for path in (*_awaited(root), supervisor_in(root))}
    with os.scandir(root) as entries:
        old = [entry for entry in entries if entry.name.startswith(_PREFIX) and entry.name not in needed]
    for entry in old:
        with suppress(OSError):
            # An archive without the suffix is being written, or was left by a crash.
            if entry.name.endswith(_END) or time.time() - entry.stat().st_mtime > _HALF_MADE_S:
                os.unlink(entry.path)


def _awaited(root: str) -> Iterator[str]:
    """Yield the archives with which the runs that are not over were submitted. Raises OSError."""
    for submitted in [*Path(root).glob(f"*/{SUBMITTED}"), *Path(root).glob(f"*/{CHECK}*/{SUBMITTED}")]:
        if not any((submitted.parent / name).exists() for name in OVER):
            yield submitted.read_text()


def _content() -> dict[Path, bytes]:
    ours = Path(str(shim.__file__)).parent
    files = [*sorted(ours.glob("*.py")), *(folder / "__init__.py" for folder in (_PACKAGE, ours.parent))]
    return {file.relative_to(_PACKAGE.parent): file.read_bytes() for file in files}


@cache
def _digest() -> str:
    digest = hashlib.sha256(importlib.util.MAGIC_NUMBER)
    for name, text in _content().items():
        digest.update(str(name).encode() + b"\0" + text + b"\0")
    return digest.hexdigest()[:16]


def _write(path: str) -> None:
    """Write the archive with compiled files, too, which other versions of Python ignore."""
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(path), prefix=_PREFIX, delete=False) as new:
        with zipfile.ZipFile(new, "w") as archive, tempfile.TemporaryDirectory() as folder:
            for name, text in _content().items():
                archive.writestr(zipfile.ZipInfo(str(name), _BEGIN), text)
                compiled = py_compile.compile(
                    str(_PACKAGE.parent / name),
                    cfile=f"{folder}/compiled",
                    dfile=str(name),
                    doraise=True,
                    invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
                )
                archive.writestr(zipfile.ZipInfo(f"{name}c", _BEGIN), Path(str(compiled)).read_bytes())
        new.flush()
        os.fsync(new.fileno())
    os.rename(new.name, path)
