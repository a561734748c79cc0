"""The overview: everything at a glance."""
