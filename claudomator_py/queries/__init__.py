"""What anyone may ask, from rows to the shapes of the API, and what can be followed while it happens. Reads only."""
