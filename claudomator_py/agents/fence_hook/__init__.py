"""The fence of a run: a program that an agent's CLI starts before each tool call, and that denies what goes too far.

Of the standard library alone, so that it starts fast and isolated. It fails closed: where it cannot judge, it denies.
"""
