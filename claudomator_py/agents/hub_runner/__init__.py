"""The process of a run whose agent has connected to the hub: it prints what the hub has heard, and ends with that.

The standard library alone, so that it starts fast and isolated: see ``agents/hub/kind.py``.
"""
