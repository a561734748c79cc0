"""Where a run works and with what: directories, work trees, environment and secrets."""
