"""The command line: one file per group of commands. Data goes to stdout, messages to stderr."""
