"""Run directories, and the shim that supervises a run without the daemon."""
