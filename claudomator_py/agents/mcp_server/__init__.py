"""What a run's agent can ask of the daemon, as an MCP server that the agent's CLI starts for that run alone.

A program of its own, of the standard library alone: it is started with every run, and answers within 25 ms of CPU.
"""
