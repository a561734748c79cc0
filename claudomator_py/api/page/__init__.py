"""The operator's page: rendered here, live by event streams, and usable without scripts."""
