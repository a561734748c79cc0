"""The laboratory: what judges, fits and repeats decisions beside the daemon, which knows nothing of it."""
