"""The client of a remote agent: a small process under the shim, on the standard library alone, that speaks A2A.

It gets its order on the command line and the prompt on standard input, and prints JSON events. It stands in for the
remote agent: it ends when the agent is done with the task, and cancels the remote task when it is told to stop.
"""
