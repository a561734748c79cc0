"""Runs on a cluster: Slurm starts the supervisor, and nothing else that it says is relied on."""
