"""The client of one run of an agent that speaks the Agent Client Protocol: it starts the agent's program, asks one
thing of it, decides what it may do, and prints events. The standard library alone, started isolated.
"""
