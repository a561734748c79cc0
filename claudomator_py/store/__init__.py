"""Tables, the one writer, queries and migrations."""
