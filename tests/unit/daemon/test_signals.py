"""Signals reach the loop at once, whichever thread the kernel has handle them."""

import subprocess
import sys

import pytest

from tests.patience import PATIENCE_S

# The kernel interrupts another thread than the loop's, as if the signal had come just before the loop began to wait.
PROGRAM = """
import asyncio, os, signal, sys, threading
from pathlib import Path
from claudomator_py.daemon import handle_signals

main = threading.get_native_id()

def sleeps():
    return Path(f"/proc/self/task/{main}/stat").read_text().rpartition(")")[2].split()[0] == "S"

def interrupt(number):
    while not sleeps():
        pass
    signal.pthread_kill(threading.get_ident(), number)
    threading.Event().wait()

async def serve():
    over = asyncio.Event()
    done = {"stop": over.set, "reload": over.set, "leave": over.set}
    handle_signals(asyncio.get_running_loop(), **done)
    threading.Thread(target=interrupt, args=(getattr(signal, sys.argv[1]),), daemon=True).start()
    await over.wait()

asyncio.run(serve())
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_signal_wakes_a_loop_that_has_just_begun_to_wait(name: str) -> None:
    subprocess.run([sys.executable, "-c", PROGRAM, name], timeout=PATIENCE_S, check=True, stdin=subprocess.DEVNULL)
