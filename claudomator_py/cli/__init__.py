"""The command line: one module per group of commands. Data goes to stdout, messages to stderr."""
