"""The shim: a small process that starts the agent of a run, holds it to its limits and records how it ended. It has one
run at a time.

Standard library only, and nothing of ours outside this package: it starts in milliseconds, and once started it needs
no file of the installation, so it outlives both the daemon and an upgrade of it.
"""
