"""Runs on a cluster: Slurm starts the supervisor, and nothing else that it says is relied on.

How far a run has come follows from the files in its directory.
"""

from typing import Final

from claudomator_py.hosts.shim import record

SUBMITTED: Final = "submitted"
"""The directory was submitted to Slurm, or is about to be, and is never submitted again. The file contains the path of
the archive from which its supervisor is imported."""
OVER: Final = (record.EXIT, record.REVOKED)
"""The run is over if one of these exists."""
