"""Ways in: each ends in accepting a task."""
