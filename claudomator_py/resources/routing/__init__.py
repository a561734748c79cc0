"""Routing: who does a task, or would do it, how that goes, and what was learned of it."""
