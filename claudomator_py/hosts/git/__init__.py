"""Work trees: a checkout of its own for a task, with a git that takes no orders from the repository."""
