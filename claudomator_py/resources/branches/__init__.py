"""Branches: taking over what a task has done on its own, or leaving it."""
