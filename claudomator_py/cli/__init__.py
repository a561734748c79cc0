"""The command line, on the client and the core only."""
