"""The mailbox of a run as it is read again: by a daemon that starts, and for each result that comes late."""

import json
import os
import subprocess
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pytest

from claudomator_py.agents import hub_runner
from claudomator_py.agents.programs import own_program
from claudomator_py.hosts.local.directory import MAILBOX, RunDirectory

PROGRESS = json.dumps({"type": "progress", "text": "x" * 99_000}).encode()
END = json.dumps({"type": "end", "outcome": "completed", "text": "done"}).encode()
LINES = 400
"""Of progress: 40 MB."""
MAX_BYTES = 4 << 20


def written(folder: Path, lines: Sequence[bytes]) -> RunDirectory:
    with (folder / MAILBOX).open("wb") as file:
        file.writelines(line + b"\n" for line in lines)
    return RunDirectory(folder)


def test_a_mailbox_of_any_size_is_read_within_little_memory(tmp_path: Path) -> None:
    directory = written(tmp_path, [PROGRESS] * LINES + [END])
    tracemalloc.start()
    try:
        count, last = 0, b""
        for line in directory.messages():
            count, last = count + 1, line
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (count, last) == (LINES + 1, END)
    assert peak < MAX_BYTES


def test_the_process_of_a_run_prints_a_mailbox_of_any_size_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, [PROGRESS] * LINES + [END])
    (tmp_path / "prompt.md").write_text("Go on.")
    with (tmp_path / "prompt.md").open() as prompt, (tmp_path / "out").open("wb") as out:
        program = own_program("hub")
        assert subprocess.run(program, stdin=prompt, stdout=out, check=False).returncode == 0
    assert (tmp_path / "out").read_bytes() == (tmp_path / MAILBOX).read_bytes()
    monkeypatch.setattr(hub_runner, "_CHUNK_BYTES", 3 * len(PROGRESS))
    lines, read = hub_runner._lines(tmp_path / MAILBOX, 0)
    assert (len(lines), read) == (2, 2 * (len(PROGRESS) + 1))


def test_a_line_without_end_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("claudomator_py.hosts.local.directory._MAX_LINE_BYTES", 1_000)
    directory = written(tmp_path, [PROGRESS, b"x" * 950 + END * 40, END])
    messages = list(directory.messages())
    assert [line == END for line in messages] == [False, False, True]
    assert max(map(len, messages)) <= 1_000
    monkeypatch.setattr(hub_runner, "_CHUNK_BYTES", 1_000)
    read, results = 0, list[bytes]()
    while read < (tmp_path / MAILBOX).stat().st_size:
        lines, read = hub_runner._lines(tmp_path / MAILBOX, read)
        results += lines
    assert results[-1] == END


def test_what_is_no_file_is_neither_waited_for_nor_followed(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    assert list(directory.messages()) == []
    os.mkfifo(tmp_path / MAILBOX)
    with pytest.raises(OSError, match="is not a file"):
        list(directory.messages())
    (tmp_path / MAILBOX).unlink()
    (tmp_path / "elsewhere").write_bytes(END + b"\n")
    (tmp_path / MAILBOX).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        list(directory.messages())
