"""The laboratory: tools that evaluate, fit and replay decisions offline. The daemon imports none of it."""
