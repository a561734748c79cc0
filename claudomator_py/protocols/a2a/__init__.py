"""The daemon as an agent that others reach by A2A, 1.0 and 0.3: its card, and tasks by JSON-RPC."""
