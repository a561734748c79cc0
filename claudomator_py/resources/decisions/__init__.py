"""Decisions: what was decided, of every kind, why, and what became of it."""
