"""Test modules as pytest rewrites them, compiled once for all workers of a run.

In a fresh clone each worker would rewrite all modules itself, at the same time: half of the CPU of collecting them.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.assertion.rewrite import PYC_TAIL, _read_pyc, _rewrite_test, _write_pyc, assertstate_key, get_cache_dir


def rewrite_once(config: pytest.Config) -> None:
    """Compile what is missing in or below the folders that this run collects."""
    state = config.stash[assertstate_key]
    for path in _modules(config):
        cache = get_cache_dir(path)
        compiled = cache / f"{path.stem}{PYC_TAIL}"
        if _read_pyc(path, compiled) is None:
            cache.mkdir(exist_ok=True)
            source_hash, code = _rewrite_test(path, config)
            _write_pyc(state, code, source_hash, compiled)


def _modules(config: pytest.Config) -> Iterator[Path]:
    if sys.dont_write_bytecode:
        return
    for name in config.args:
        folder = config.invocation_params.dir / name
        if folder.is_dir():
            yield from folder.rglob("test_*.py")
            yield from folder.rglob("conftest.py")
