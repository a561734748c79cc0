"""Runs on this machine: their directories, the launch of their shims, and what became of them."""
