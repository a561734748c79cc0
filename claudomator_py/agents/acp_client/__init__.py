"""The client of one ACP run: it starts the agent's program, sends the prompt, decides on permissions, and prints
events. It uses the standard library alone, started isolated.
"""
