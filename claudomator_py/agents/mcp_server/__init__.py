"""The MCP server of a run, which the agent's CLI starts, and by which the agent asks the daemon.

It is a program of its own on the standard library alone: every run starts it, and it answers within 25 ms of CPU time.
"""
