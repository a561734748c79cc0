"""What can be followed while it happens: events, and the output of runs."""
