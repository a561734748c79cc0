"""The operator's page: rendered on the server, live through event streams, and usable without scripts."""
