"""Runs: attempts at tasks, what they wrote, and what they ask for while they live."""
