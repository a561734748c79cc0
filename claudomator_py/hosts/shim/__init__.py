"""The shim: one small process per run that starts the agent, holds it to its limits and records how it ended.

Standard library only, and nothing of ours outside this package: it starts in milliseconds, and once started it needs
no file of the installation, so it outlives both the daemon and an upgrade of it.
"""
