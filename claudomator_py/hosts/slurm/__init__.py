"""Runs on a cluster: Slurm carries the supervisor, and is believed in nothing else."""
