"""The fence of a run: a program that an agent's CLI starts before each tool call, and that denies what goes too far.

It uses the standard library alone, so that it starts fast and isolated. It fails closed: a call that it cannot judge
is denied.
"""
