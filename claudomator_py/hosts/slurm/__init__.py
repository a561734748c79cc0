"""Runs on a cluster: Slurm starts the supervisor, and nothing else that it says is relied on. This module calls Slurm's
commands; how far a run has come follows from the files in its directory."""

import os
import subprocess
from collections.abc import Mapping
from typing import Final

from claudomator_py.domain.host import HostSpec
from claudomator_py.hosts.shim import record
from claudomator_py.values import toml_data

SUBMITTED: Final = "submitted"
"""The directory was submitted to Slurm, or is about to be, and is never submitted again. The file contains the path of
the archive from which its supervisor is imported."""
OVER: Final = (record.EXIT, record.REVOKED)
"""The run is over if one of these exists."""
ANSWER_S: Final = 30.0
# SBATCH_*, SQUEUE_* and the like would change what is asked for, and secrets have no business in any of them.
_PASSED: Final = ("HOME", "LANG", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "SLURM_CONF", "TZ", "USER")
_CHOICES: Final = ("partition", "constraint", "account", "qos")


class EngineSilent(OSError):
    """Slurm gave no usable answer; whether it did what was asked is unknown."""


def submission(host: HostSpec, name: str, log: str) -> list[str]:
    """Return the command that submits a script on standard input as a job of that name. log: file for its output."""
    return [
        "sbatch",
        "--parsable",
        "--no-requeue",
        f"--job-name={name}",
        "--open-mode=append",
        f"--output={log.replace('%', '%%')}",
        "--chdir=/",
        # Slurm stores the variables that it is given; without this option it would be given all of this process's.
        "--export-file=/dev/null",
        *(f"--{choice}={value}" for choice in _CHOICES if (value := getattr(host, choice)) is not None),
    ]


def ask(*command: str, text: str = "") -> str:
    """Return what the command prints. text: its standard input. Raises EngineSilent."""
    environ = {name: os.environ[name] for name in _PASSED if name in os.environ}
    try:
        done = subprocess.run(
            command,
            input=text,
            env=environ,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=ANSWER_S,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        # It may have told why it waits: sbatch repeats what the controller refuses for the moment.
        told = _told(command[0], (late.stderr or b"").decode("utf-8", "replace"))
        words = f"{command[0]} has not answered within {ANSWER_S:.0f} seconds"
        raise EngineSilent(f"{words}: {told}" if told else words) from late
    except FileNotFoundError as missing:
        words = f"{command[0]} is not on the daemon's PATH; install Slurm's client (slurm-client)"
        raise EngineSilent(words) from missing
    except OSError as problem:
        raise EngineSilent(f"{command[0]} cannot be started: {problem.strerror}") from problem
    if done.returncode != 0:
        told = _told(command[0], done.stderr)
        raise EngineSilent(f"{command[0]}: " + (f"error: {told}" if told else f"exit {done.returncode}"))
    return done.stdout


def _told(command: str, errors: str) -> str:
    """Return what a command has printed to its standard error, on one line: each message once, without its prefix."""
    lines = (" ".join(line.split()) for line in errors.splitlines())
    messages = (line.removeprefix(f"{command}: ").removeprefix("error: ") for line in lines)
    return "; ".join(dict.fromkeys(message for message in messages if message))


def refusal(words: str) -> str | None:
    """Return in plain words why the cluster takes no job with the host's settings; None if what ``sbatch`` has printed
    says something else, for example about a single job or the moment."""
    return next((plain for pattern, plain in words_of("refusals").items() if pattern in words), None)


def words_of(file: str) -> Mapping[str, str]:
    """Return the plain words by Slurm's own, from the TOML file of that name."""
    return toml_data(__package__, f"{file}.toml")
