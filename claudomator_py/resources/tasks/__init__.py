"""Tasks: what is to be done, where it stands, and why."""
