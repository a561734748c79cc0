"""Periodic background work that no task waits for."""
