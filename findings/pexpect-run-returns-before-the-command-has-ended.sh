#!/usr/bin/env bash
# pexpect 4.9.0 (PyPI), pexpect.run(): after 30 seconds it returns what the command has printed until then, as the whole
# output, and raises nothing.
#
#   run(command)                            b"begins", and the command goes on, until Python collects garbage
#   run(command, withexitstatus=True)       (b"begins", None), and the command is killed
#   run(command, timeout=-1)                30 seconds, too: -1 stands for the default of spawn()
#   run(command, timeout=None)              waits
#   spawn(command).expect(EOF)              raises TIMEOUT
#
# run() takes the place of os.system() for builds, tests and agents that want a terminal. With a small project all is
# well. Later the output is cut off behind a whole line and looks complete, while the build is still writing files, and
# is killed at some line of Python behind it that has nothing to do with it. None as the status is false like 0, and is
# also what a command has that died by a signal. The documentation names the parameter, not what happens then.
# Source: https://pexpect.readthedocs.io/en/stable/api/pexpect.html ("run function")
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pexpect==4.9.0 2>/dev/null
cd "$folder"
env -i PATH="$PATH" HOME="$folder" timeout 400 "$folder/venv/bin/python" - <<'PYTHON'
import gc, pathlib, time

import pexpect

BUILD = "sh -c 'echo begins; sleep %d; touch finished; echo ends; exit 4'"
finished = pathlib.Path("finished")
seen = {}


def see(name, seconds, run, collects=False, command=BUILD, **options):
    """What run() returns, and whether the command has finished by then, or eight seconds later."""
    finished.unlink(missing_ok=True)
    try:
        output = run(command % seconds if command is BUILD else command, **options)
    except pexpect.ExceptionPexpect as error:
        output = type(error).__name__
    then = finished.exists()
    if collects:
        gc.collect()
    until = time.monotonic() + 8
    while not finished.exists() and time.monotonic() < until:
        time.sleep(0.1)
    seen[name] = (output, then, finished.exists())
    print(f"{name}: {output}, finished: {then}, and 8 seconds later: {finished.exists()}", flush=True)


def expect_the_end(command, **options):
    pexpect.spawn(command, **options).expect(pexpect.EOF)


see("run()", 33, pexpect.run)
see("run(timeout=-1, withexitstatus=True)", 33, pexpect.run, withexitstatus=True, timeout=-1)
see("run(timeout=2), garbage collected", 6, pexpect.run, True, timeout=2)
see("run(timeout=2, withexitstatus=True)", 6, pexpect.run, withexitstatus=True, timeout=2)
see("run(timeout=None, withexitstatus=True)", 6, pexpect.run, withexitstatus=True, timeout=None)
see("run(withexitstatus=True), a signal", 6, pexpect.run, command="sh -c 'kill -9 $$'", withexitstatus=True)
see("spawn(timeout=2).expect(EOF)", 6, expect_the_end, timeout=2)
begins = b"begins\r\n"
expected = [
    (begins, False, True),
    ((begins, None), False, False),
    (begins, False, False),
    ((begins, None), False, False),
    ((b"begins\r\nends\r\n", 4), True, True),
    ((b"", None), False, False),
]
assert list(seen.values())[:-1] == expected, "it has changed"
assert seen["spawn(timeout=2).expect(EOF)"][0] == "TIMEOUT", "it has changed"
PYTHON
# Seen with Python 3.11, twice, 2026-12:
# run(): b'begins\r\n', finished: False, and 8 seconds later: True
# run(timeout=-1, withexitstatus=True): (b'begins\r\n', None), finished: False, and 8 seconds later: False
# run(timeout=2), garbage collected: b'begins\r\n', finished: False, and 8 seconds later: False
# run(timeout=2, withexitstatus=True): (b'begins\r\n', None), finished: False, and 8 seconds later: False
# run(timeout=None, withexitstatus=True): (b'begins\r\nends\r\n', 4), finished: True, and 8 seconds later: True
# run(withexitstatus=True), a signal: (b'', None), finished: False, and 8 seconds later: False
# spawn(timeout=2).expect(EOF): TIMEOUT, finished: False, and 8 seconds later: True
