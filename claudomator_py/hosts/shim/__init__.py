"""The shim: a small process that starts the agent of a run, enforces its limits and records its end, one run at a time.

It uses only the standard library and this package, so that it starts in milliseconds. Once started it needs no file of
the installation, so that it outlives the daemon and upgrades of it.
"""
