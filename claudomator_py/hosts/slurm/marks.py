"""Files by whose existence a run directory on a cluster says how far the run has come."""

from typing import Final

from claudomator_py.hosts.shim import record

SUBMITTED: Final = "submitted"
"""The directory was submitted to Slurm, or is about to be, and is never submitted again. The file contains the path of
the archive from which its supervisor is imported."""
OVER: Final = (record.EXIT, record.REVOKED)
"""The run is over if one of these exists."""
