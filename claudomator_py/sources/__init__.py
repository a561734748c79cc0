"""The ways in which tasks arrive; each ends in accepting a task."""
