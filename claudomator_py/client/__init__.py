"""A typed HTTP client of the daemon."""
