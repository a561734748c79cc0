"""Protocols by which other programs submit tasks and do them: A2A and the hub."""
