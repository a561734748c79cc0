"""The client of a remote agent: a small process under the shim, with the standard library alone, that speaks A2A.

It is told what to do on its command line, reads the prompt from standard input and prints JSON events. It stands in for
the remote agent: it ends when that is done with the task, and has it cancelled when it is told to end.
"""
