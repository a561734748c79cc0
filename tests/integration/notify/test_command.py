"""Commands that are told: what they get, and what becomes of those that fail or do not end."""

import json
import os
import sys
import threading
from pathlib import Path

import pytest

from claudomator_py.domain.notice import DeliveryFault, Notice, NoticeKind
from claudomator_py.notify import Command

NOTICE = Notice(id="event-7", kind=NoticeKind.NEEDS_INPUT, at="2026-11-22T02:00:00.000Z", title="a: needs input")


def python(code: str, timeout_s: float = 20.0) -> Command:
    return Command([sys.executable, "-c", code], {"PATH": os.defpath}, timeout_s)


def test_it_reads_the_notice_on_its_standard_input_and_sees_no_other_variables(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    code = f"import json, os, sys; json.dump([json.load(sys.stdin), dict(os.environ)], open({str(out)!r}, 'w'))"
    python(code).send(NOTICE)
    record, variables = json.loads(out.read_text())
    assert Notice.model_validate(record) == NOTICE
    assert variables.pop("LC_CTYPE", "C.UTF-8") == "C.UTF-8"  # Python's own
    assert variables == {
        "PATH": os.defpath,
        "CLAUDOMATOR_NOTICE": "needs_input",
        "CLAUDOMATOR_NOTICE_ID": "event-7",
        "CLAUDOMATOR_NOTICE_TITLE": "a: needs input",
    }


def test_each_notice_is_a_whole_line_for_what_appends_it_to_a_file(tmp_path: Path) -> None:
    out = tmp_path / "notices.jsonl"
    tee = Command(["tee", "-a", str(out)], {"PATH": os.environ["PATH"]}, 20.0)
    tee.send(NOTICE)
    tee.send(NOTICE)
    assert [Notice.model_validate_json(line) for line in out.read_text().splitlines()] == [NOTICE, NOTICE]


def test_it_need_not_read_what_it_is_told() -> None:
    Command(["true"], {"PATH": os.environ["PATH"]}, 20.0).send(NOTICE)


def test_one_that_fails_says_why() -> None:
    with pytest.raises(DeliveryFault, match=r"exited with 3: no network$") as caught:
        python("import sys; print('no network', file=sys.stderr); sys.exit(3)").send(NOTICE)
    assert not caught.value.lasting


def test_one_that_is_not_there_is_not_tried_again() -> None:
    with pytest.raises(DeliveryFault, match="cannot be started") as caught:
        Command(["/no/such/program"], {}, 1.0).send(NOTICE)
    assert caught.value.lasting


def test_one_that_does_not_end_is_ended_with_all_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    child = "import time; time.sleep(600)"
    code = (
        "import os, subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}])\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "time.sleep(600)\n"
    )
    with pytest.raises(DeliveryFault, match="longer than its timeout"):
        python(code, timeout_s=2.0).send(NOTICE)
    for pid in pids.read_text().split():
        await_end(int(pid))


def await_end(pid: int) -> None:
    """Until it has ended, which is a moment after it was killed. One that nobody has waited for yet is a zombie."""
    pause = threading.Event()
    for _ in range(1_000):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except OSError:
            return
        pause.wait(0.01)
    raise AssertionError(f"process {pid} was left")
