"""Where runs take place: a host keeps a run alive without the daemon, in a run directory, under a shim."""
