"""Programs that stand in for Slurm's, on one machine."""

import os
import sys
from pathlib import Path

import pytest

STARTS = """#!/bin/sh
cat > "$0.script"
for option; do case $option in --output=*) log=${option#--output=};; esac; done
sh "$0.script" > "$log" 2>&1 &
echo "7;cluster"
"""
"""Starts what is handed in, as Slurm does, and says its id."""
PLACES = """#!/bin/sh
case $* in *--exclude=n1*) SLURMD_NODENAME=n2;; *) SLURMD_NODENAME=n1;; esac
export SLURMD_NODENAME
cat > "$0.$$"
for option; do case $option in --output=*) log=${option#--output=};; esac; done
sh "$0.$$" > "$log" 2>&1 &
echo "7;cluster"
"""
"""Starts it on one of two nodes, and on the other one for whoever excludes that."""
APART = f"""#!{sys.executable}
import json, os, sys, time
folder = next(word for word in sys.argv if word.startswith("--output=")).partition("=")[2].rpartition("/")[0]
json.dump({{"uid": 1, "node": "n9", "python": "3.9.1", "time": time.time() - 100}}, open(folder + "/held", "w"))
seen = {{"exclusive": False, "renamed": False, "locked": False, "absent": []}}
json.dump(seen, open(folder + "/seen", "w"))
print(8)
"""
"""Is a node whose files are its own for a while, whose clock is late, and whose user is another one."""


SINFO = """#!/bin/sh
case $* in *--version*) echo "slurm 22.05.8"; exit;; esac
for node in {nodes}; do echo "$node|night|up|idle|0/4/0/4|(null)|none"; done
"""
"""Lists idle nodes."""


def fake_commands(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the folder on PATH, with a queue in which each job runs."""
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    program(folder / "scancel", "#!/bin/sh\nexit 0\n")
    program(folder / "squeue", "#!/bin/sh\necho 'RUNNING (None)'\n")
    program(folder / "sinfo", SINFO.format(nodes="n1"))
    return folder


def program(path: Path, text: str) -> None:
    """Write an executable file."""
    path.write_text(text)
    path.chmod(0o755)
